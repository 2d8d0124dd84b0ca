"""A roll with the limits in the worker's memory: what the old worker's streams hold is held against its successor's."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.line.spending import SPENDING, secret_of
from tests.stand import procfs
from tests.stand.client import Client
from tests.stand.gateway import GatewayProcess
from tests.stand.stand import Stand
from tests.stand.waiting import until
from tests.stand.wire import CHAT, TEXT, chat, error_in, request, texts

pytestmark = pytest.mark.skipif(not procfs.IS_THERE, reason="processes are looked at through /proc")

ENDLESS = {"text": "word ", "repeat": 100_000, "gap": 0.02}


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    """One worker, whose streams may go on behind a roll."""
    with Stand(tmp_path, SPENDING.replace("drain: 5s", "drain: 60s"), process=True) as one:
        yield one


def rolled(stand: Stand) -> int:
    """Roll it; the pid of the old worker, which goes on with its streams."""
    gateway = stand.gateway
    assert isinstance(gateway, GatewayProcess)
    old, heard = gateway.child("worker 0"), len(gateway.said)
    gateway.signal(signal.SIGUSR2)
    until(lambda: gateway.has_said("the workers are rolled", heard), "the roll")
    assert gateway.child("worker 0") != old
    return old


def begin(stand: Stand, client: Client, key: str, **more: Any) -> None:
    """A stream whose first event is there."""
    model = stand.model("priced", ENDLESS)
    client.send(request(chat(model, **more), key=secret_of(key)))
    client.head()
    client.read(until=b"data: ")


def code_for(stand: Stand, key: str, **more: Any) -> object:
    """What a new connection's request is refused with; None where it is answered."""
    reply = stand.ask(chat(stand.model("priced", {"events": CHAT}), **more), key=secret_of(key))
    if reply.status == 200:
        assert texts(reply.body) == TEXT
        return None
    return error_in(reply.body)["code"]


def test_an_open_stream_keeps_its_place_and_its_minute_over_rolls(stand: Stand) -> None:
    for _ in range(9):
        assert code_for(stand, "minute") is None
    with stand.connect() as client:
        begin(stand, client, "single")
        old = rolled(stand)
        assert code_for(stand, "single") == "concurrency_limit_exceeded"
        assert code_for(stand, "minute") is None
        assert code_for(stand, "minute") == "rate_limit_exceeded", "ten a minute, nine of them before the roll"
        rolled(stand)
        assert code_for(stand, "single") == "concurrency_limit_exceeded", "the first one's stream runs still"
    until(lambda: code_for(stand, "single") is None, "the place that the stream has given back")
    until(lambda: not procfs.is_alive(old), "the end of the first worker")


def test_a_hold_is_held_against_the_successor(stand: Stand) -> None:
    with stand.connect() as client:
        begin(stand, client, "fifty", max_tokens=2000)
        rolled(stand)
        assert code_for(stand, "fifty") == "insufficient_quota"
    until(lambda: code_for(stand, "fifty") is None, "what the stream did not spend")


def test_what_a_killed_worker_held_is_free_again(stand: Stand) -> None:
    with stand.connect() as client:
        begin(stand, client, "single")
        old = rolled(stand)
        assert code_for(stand, "single") == "concurrency_limit_exceeded"
        os.kill(old, signal.SIGKILL)
        until(lambda: code_for(stand, "single") is None, "the place of the dead")
