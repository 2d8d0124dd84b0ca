"""How SIGTERM and SIGINT end a command: the first asks it to end in good order, the second ends it at once."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

FORCED = 1
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Within a running loop: the event is set at the first signal; a second one ends the process with code 1."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()

    def on_signal() -> None:
        if asked.is_set():
            _end_at_once()
        asked.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        yield asked
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def _end_at_once() -> None:
    typer.echo("second signal: ended at once", err=True)
    sys.stdout.flush()
    os._exit(FORCED)
