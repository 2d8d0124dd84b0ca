"""One connection to Valkey, with a wire that the test holds and a loop whose time jumps."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import hiredis
import pytest

from headrace.shared.pipeline import (
    Pipeline,
    Reply,
    number_from_reply,
    spent_from_reply,
    text_from_reply,
)
from tests.shared.stage import MemoryStage


class Wire(asyncio.Transport):
    """What would be a socket."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.end = ""

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.end = "closed"

    def abort(self) -> None:
        self.end = "aborted"


class Watcher:
    """What is told of a connection."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def lost(self, reason: str) -> None:
        self.told.append(reason)

    def slow(self) -> None:
        self.told.append("slow")

    def caught_up(self) -> None:
        self.told.append("caught up")


Scenario = Callable[[Pipeline, Wire, Watcher], Awaitable[None]]


def run(scenario: Scenario, patience_s: float = 1.0) -> None:
    async def whole() -> None:
        watcher, wire = Watcher(), Wire()
        pipeline = Pipeline(patience_s, watcher)
        pipeline.connection_made(wire)
        pipeline.timeout_s = 0.1
        await scenario(pipeline, wire, watcher)

    MemoryStage().run(whole)


def test_what_is_asked_in_one_turn_leaves_in_one_write() -> None:
    async def scenario(pipeline: Pipeline, wire: Wire, watcher: Watcher) -> None:
        asked = [pipeline.ask("ECHO", number) for number in range(3)]
        assert wire.written == []
        await asyncio.sleep(0)
        assert wire.written == [b"".join(b"*2\r\n$4\r\nECHO\r\n$1\r\n%d\r\n" % number for number in range(3))]
        pipeline.data_received(b"$1\r\n0\r\n$1\r\n1\r")
        assert [one.done() for one in asked] == [True, False, False]
        pipeline.data_received(b"\n-ERR no\r\n")
        assert [asked[0].result(), asked[1].result()] == [b"0", b"1"]
        with pytest.raises(hiredis.ReplyError, match="ERR no"):
            await asked[2]
        pipeline.close()
        assert (wire.end, watcher.told) == ("closed", [])

    run(scenario)


def test_a_late_reply_is_told_of_before_and_heard_all_the_same() -> None:
    async def scenario(pipeline: Pipeline, wire: Wire, watcher: Watcher) -> None:
        heard: list[Reply | Exception] = []
        pipeline.send(("GET", "a"), heard.append)
        await asyncio.sleep(0.05)
        pipeline.send(("GET", "b"), heard.append)
        await asyncio.sleep(0.06)
        assert [type(one) for one in heard] == [TimeoutError, TimeoutError]
        pipeline.data_received(b":1\r\n")
        assert watcher.told == ["slow"]
        pipeline.data_received(b":2\r\n")
        assert (heard[2:], watcher.told) == ([1, 2], ["slow", "caught up"])
        pipeline.send(("GET", "c"), heard.append)
        await asyncio.sleep(0.11)
        assert watcher.told == ["slow", "caught up", "slow"]
        pipeline.close()

    run(scenario)


def test_who_stays_slow_is_given_up() -> None:
    async def scenario(pipeline: Pipeline, wire: Wire, watcher: Watcher) -> None:
        heard: list[Reply | Exception] = []
        pipeline.send(("GET", "a"), heard.append)
        await asyncio.sleep(1.01)
        assert [type(one) for one in heard] == [TimeoutError, ConnectionResetError]
        assert (watcher.told, wire.end) == (["slow", "it does not answer"], "aborted")
        with pytest.raises(ConnectionResetError):
            await pipeline.ask("PING")
        pipeline.connection_lost(None)
        assert watcher.told == ["slow", "it does not answer"]

    run(scenario)


def test_a_busy_loop_is_no_slow_server() -> None:
    async def scenario(pipeline: Pipeline, wire: Wire, watcher: Watcher) -> None:
        asked = pipeline.ask("PING")
        loop: Any = asyncio.get_running_loop()
        loop.now += 0.3  # nothing ran meanwhile
        await asyncio.sleep(0.001)
        assert watcher.told == []
        pipeline.data_received(b"+PONG\r\n")
        assert await asked == b"PONG"
        pipeline.close()

    run(scenario)


def test_an_answered_command_leaves_no_limit_behind() -> None:
    async def scenario(pipeline: Pipeline, wire: Wire, watcher: Watcher) -> None:
        for _ in range(30):
            asked = pipeline.ask("PING")
            await asyncio.sleep(0.09)
            pipeline.data_received(b"+PONG\r\n")
            assert await asked == b"PONG"
        assert watcher.told == []
        pipeline.close()

    run(scenario)


@pytest.mark.parametrize("wrong", [b"HTTP/1.1 400 Bad Request\r\n"])
def test_another_protocol_ends_it(wrong: bytes) -> None:
    async def scenario(pipeline: Pipeline, wire: Wire, watcher: Watcher) -> None:
        asked = pipeline.ask("PING")
        pipeline.data_received(wrong)
        assert watcher.told == ["it does not speak Valkey's protocol"]
        with pytest.raises(ConnectionResetError):
            await asked

    run(scenario)


def test_a_closed_connection_fails_all_that_was_asked() -> None:
    async def scenario(pipeline: Pipeline, wire: Wire, watcher: Watcher) -> None:
        asked = [pipeline.ask("PING"), pipeline.ask("PING")]
        asked[0].cancel()
        pipeline.connection_lost(None)
        assert watcher.told == ["it closed the connection"]
        with pytest.raises(ConnectionResetError):
            await asked[1]

    run(scenario)


def test_values_of_replies() -> None:
    assert [text_from_reply(one) for one in (b"a", 1, None)] == ["a", "", ""]
    assert [number_from_reply(one) for one in (7, b"9007199254740993", None)] == [7, 9007199254740993, 0]
    assert spent_from_reply([None, b"10", b"4"], 1) == 6
