"""Waiting for what comes by itself."""

import time
from collections.abc import Callable
from typing import TypeVar

WAIT_S = 10.0
T = TypeVar("T")


def until(found: Callable[[], T], what: str = "it", wait_s: float = WAIT_S) -> T:
    """What `found` returns once that is true in a condition; asked again and again for `wait_s`."""
    deadline = time.monotonic() + wait_s
    while not (value := found()):
        assert time.monotonic() < deadline, f"{what} never came"
        time.sleep(0.002)
    return value
