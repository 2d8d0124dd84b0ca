"""Micro-benchmarks of the path that every streamed event takes, without the kernel.

Run with `pytest --benchmark-only bench/micro`. A round is 1,000 events, so milliseconds per round are microseconds of
one core per event.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from headrace.listener.sink import ClientSink
from headrace.metering.meter import Meter
from headrace.model.request import RequestHead
from headrace.model.settings import StreamSettings
from headrace.protocols.chat import Chat
from headrace.protocols.chat_observer import ChatObserver
from headrace.protocols.gemini_observer import GeminiObserver
from headrace.protocols.interface import Observer
from headrace.protocols.messages_observer import MessagesObserver
from headrace.protocols.responses_observer import ResponsesObserver
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
RESPONSES_EVENT = (
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":12,"item_id":'
    b'"msg_68af4030baa48193b0b43b4c2a176a1a","output_index":0,"content_index":0,"delta":" headrace","logprobs":[],'
    b'"obfuscation":"aB3dE"}\n\n'
)
MESSAGES_EVENT = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":'
    b'" headrace"}}\n\n'
)
GEMINI_EVENT = (
    b'data: {"candidates": [{"content": {"parts": [{"text": " headrace"}],"role": "model"},"index": 0}],"usageMeta'
    b'data": {"promptTokenCount": 8,"candidatesTokenCount": 12,"totalTokenCount": 20},"modelVersion": "gemini-3-pro",'
    b'"responseId": "aBcDeFgHiJ"}\r\n\r\n'
)
EVENTS = 1000
OBSERVERS: dict[str, tuple[Callable[[], Observer], bytes]] = {
    "chat": (lambda: ChatObserver(added_usage=True), EVENT),
    "responses": (ResponsesObserver, RESPONSES_EVENT),
    "messages": (MessagesObserver, MESSAGES_EVENT),
    "gemini": (lambda: GeminiObserver(array=False), GEMINI_EVENT),
}


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

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.transport: Any = _Transport()
        self.edge: Any = type("Edge", (), {"loop": loop, "strict": True})()

    def will_close(self) -> bool:
        """It stays open."""
        return False

    def streaming(self) -> None:
        """Nothing to give back."""

    def response_done(self) -> None:
        """Nothing follows."""


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that is not run: the path needs its clock only."""
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def _time(benchmark: BenchmarkFixture, one: Callable[[], object]) -> None:
    def many() -> None:
        for _ in range(EVENTS):
            one()

    benchmark.pedantic(many, rounds=50, warmup_rounds=5)  # type: ignore[no-untyped-call]


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
    _time(benchmark, lambda: framer.feed(EVENT))


@pytest.mark.parametrize("protocol", OBSERVERS)
def test_observer(benchmark: BenchmarkFixture, protocol: str) -> None:
    """Read one event: usage, end, features of an estimate."""
    make, event = OBSERVERS[protocol]
    observe = Meter(make()).observe
    observe(event)
    _time(benchmark, lambda: observe(event))


def test_machine(benchmark: BenchmarkFixture) -> None:
    """All that is decided about one event, and its hash."""
    machine = _machine(1000.0)
    _time(benchmark, lambda: machine.feed(EVENT, 1000.0))


def test_relay_path(benchmark: BenchmarkFixture, loop: asyncio.AbstractEventLoop) -> None:
    """The whole path, from the upstream's bytes to the client's transport."""
    now = loop.time()
    sink = ClientSink(_Carrier(loop), "POST", http_1_0=False)
    share = Share(loop, Wheel(loop), 1 << 30)
    pump = Pump(_machine(now), StreamSettings(), sink, share, [], lambda: None, lambda outcome: None)
    pump.body(EVENT)
    _time(benchmark, lambda: pump.body(EVENT))
