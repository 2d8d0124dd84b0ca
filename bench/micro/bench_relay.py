"""Micro-benchmarks of the path that every streamed event takes, without the kernel.

Run with `pytest --benchmark-only bench/micro`. The figures are microseconds of one core per event of 200 to 300 bytes.
"""

import asyncio
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from headrace.listener.sink import ClientSink
from headrace.metering.meter import Meter
from headrace.model.request import RequestHead
from headrace.model.settings import StreamSettings
from headrace.protocols.chat import Chat
from headrace.protocols.chat_observer import ChatObserver
from headrace.protocols.voice import Voice
from headrace.relay.clock import Clock
from headrace.relay.machine import Machine
from headrace.relay.pump import Pump
from headrace.relay.share import Share
from headrace.relay.timers import Wheel
from headrace.relay.trace import Trace
from headrace.sse.framing import Framer

EVENT = (
    b'data: {"id":"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012","object":"chat.completion.chunk","created":1796071666,'
    b'"model":"gpt-5.6-sol","service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,'
    b'"delta":{"content":" headrace"},"logprobs":null,"finish_reason":null}],"obfuscation":"aB3"}\n\n'
)
EVENTS = 1000


class _Transport:
    """Takes what it is given and does nothing, as cheaply as can be."""

    def write(self, data: bytes) -> None:
        """Drop it."""

    def get_write_buffer_size(self) -> int:
        """Nothing is ever unsent."""
        return 0

    def is_closing(self) -> bool:
        """It stays open."""
        return False


class _Carrier:
    """A connection that is nothing but its transport."""

    will_close = False

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.transport: Any = _Transport()
        self.edge: Any = type("Edge", (), {"loop": loop, "strict": True})()

    def streaming(self) -> None:
        """Nothing to give back."""

    def response_done(self) -> None:
        """Nothing follows."""


@pytest.fixture
def loop() -> Any:
    """A loop that is not run: the path needs its clock only."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def _machine(now: float) -> Machine:
    limits = StreamSettings()
    voice = Voice(Chat(), RequestHead("POST", "/v1/chat/completions", "", []), limits.keepalive_comment)
    machine = Machine(limits, voice, Clock(limits, now, now), Trace())
    machine.begin(now)
    machine.answered(Meter(ChatObserver(added_usage=True)), now)
    machine.feed(EVENT, now)
    machine.step = None
    return machine


def test_framer(benchmark: BenchmarkFixture) -> None:
    """Find where one event ends."""
    framer = Framer()
    framer.feed(EVENT)
    benchmark.pedantic(lambda: [framer.feed(EVENT) for _ in range(EVENTS)], rounds=50, warmup_rounds=5)


def test_observer(benchmark: BenchmarkFixture) -> None:
    """Read one event: usage, finish, features of an estimate."""
    observe = Meter(ChatObserver(added_usage=True)).observe
    benchmark.pedantic(lambda: [observe(EVENT) for _ in range(EVENTS)], rounds=50, warmup_rounds=5)


def test_machine(benchmark: BenchmarkFixture) -> None:
    """All that is decided about one event, and its hash."""
    machine = _machine(1000.0)
    benchmark.pedantic(lambda: [machine.feed(EVENT, 1000.0) for _ in range(EVENTS)], rounds=50, warmup_rounds=5)


def test_relay_path(benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop) -> None:
    """The whole path, from the upstream's bytes to the client's transport."""
    now = loop.time()
    sink = ClientSink(_Carrier(loop), "POST", http_1_0=False)
    pump = Pump(_machine(now), StreamSettings(), sink, Share(loop, Wheel(loop), 1 << 30), [], lambda: None)
    pump.body(EVENT)
    benchmark.pedantic(lambda: [pump.body(EVENT) for _ in range(EVENTS)], rounds=50, warmup_rounds=5)
