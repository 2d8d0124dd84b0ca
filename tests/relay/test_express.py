"""The express lane: what passes it leaves the same bytes and the same record as the long way."""

from collections.abc import Callable, Iterator

import pytest

from headrace.http.chunk import HEADS, MOST_READ, data_of, frame
from headrace.metering.meter import Meter
from headrace.model.outcome import End, Outcome
from headrace.model.request import RequestHead
from headrace.model.wire import BodyEnd
from headrace.protocols.chat import Chat
from headrace.protocols.chat_observer import ChatObserver
from headrace.protocols.gemini_observer import GeminiObserver
from headrace.protocols.interface import Observer
from headrace.protocols.messages_observer import MessagesObserver
from headrace.protocols.responses_observer import ResponsesObserver
from headrace.protocols.voice import Voice
from headrace.relay.clock import Clock
from headrace.relay.express import MOST
from headrace.relay.machine import Machine
from headrace.relay.pump import Pump
from headrace.relay.share import Share
from headrace.relay.state import State
from headrace.relay.timers import Wheel
from headrace.relay.trace import Trace
from headrace.upstream.framing import take_frames
from tests.relay.driver import limits
from tests.relay.loop import Loop, Sink, Upstream


def chat(text: str, finish: str = "null", more: str = "", index: int = 0) -> bytes:
    return (
        f'data: {{"model":"m","choices":[{{"index":{index},"delta":{{"content":"{text}"}},"finish_reason":{finish}}}]'
        f"{more}}}\n\n"
    ).encode()


def responses(number: int, text: str) -> bytes:
    kind = "response.output_text.delta"
    return (
        f'event: {kind}\ndata: {{"type":"{kind}","sequence_number":{number},"delta":"{text}","logprobs":[]}}\n\n'
    ).encode()


def messages(text: str, member: str = "text") -> bytes:
    return (
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
        f'{{"type":"x","{member}":"{text}"}}}}\n\n'
    ).encode()


def gemini(text: str, tokens: int, more: str = "") -> bytes:
    return (
        f'data: {{"candidates": [{{"content": {{"parts": [{{"text": "{text}"}}]}}{more}}}],'
        f'"usageMetadata": {{"candidatesTokenCount": {tokens}}},"modelVersion": "g"}}\r\n\r\n'
    ).encode()


KEEPALIVE_S = 10.0
WORDS = [f"w{n} é" if n % 5 == 0 else f"word {n}\\n" for n in range(MOST * 3 + 7)]
DONE = b"data: [DONE]\n\n"
PLAIN_CHAT = [chat(word) for word in WORDS]
STREAMS: dict[str, tuple[Callable[[], Observer], list[bytes]]] = {
    "chat": (lambda: ChatObserver(False), [*PLAIN_CHAT, chat("", '"stop"'), DONE]),
    "two choices": (
        lambda: ChatObserver(False),
        [*(chat(word, index=n % 2) for n, word in enumerate(WORDS)), chat("", '"stop"'), *PLAIN_CHAT],
    ),
    "usage in each": (
        lambda: ChatObserver(False),
        [chat(word, more=f',"usage":{{"completion_tokens":{n}}}') for n, word in enumerate(WORDS)],
    ),
    "empty deltas": (lambda: ChatObserver(False), [*PLAIN_CHAT, *(chat("") for _ in range(40)), *PLAIN_CHAT]),
    "an error": (lambda: ChatObserver(False), [*PLAIN_CHAT, b'data: {"error":{"message":"no"}}\n\n']),
    "comments between": (
        lambda: ChatObserver(False),
        [piece for event in PLAIN_CHAT[:50] for piece in (event, b": ping\n\n")],
    ),
    "an id": (lambda: ChatObserver(False), [*PLAIN_CHAT, b"id: 7\n" + PLAIN_CHAT[0], *PLAIN_CHAT]),
    "text that looks like an end": (
        lambda: ChatObserver(False),
        [*PLAIN_CHAT, *(chat(r"\"finish_reason\":\"stop\" [DONE] \"error\"") for _ in range(40))],
    ),
    "members twice": (
        lambda: ChatObserver(False),
        [*PLAIN_CHAT, *(chat("x", more=',"choices":[]') for _ in range(40)), *PLAIN_CHAT],
    ),
    "a lone CR within": (
        lambda: ChatObserver(False),
        [*PLAIN_CHAT, PLAIN_CHAT[0].replace(b"{", b"{\r", 1), *PLAIN_CHAT],
    ),
    "no JSON": (lambda: ChatObserver(False), [*PLAIN_CHAT, b'data: {"finish_reason":null,,}\n\n', *PLAIN_CHAT]),
    "more than one event in a chunk": (
        lambda: ChatObserver(False),
        [*PLAIN_CHAT, PLAIN_CHAT[0] + PLAIN_CHAT[1], PLAIN_CHAT[2] + chat("", '"stop"') + DONE],
    ),
    "half events": (
        lambda: ChatObserver(False),
        [*PLAIN_CHAT, PLAIN_CHAT[0][:20], PLAIN_CHAT[0][20:], *PLAIN_CHAT, PLAIN_CHAT[1][:-1], b"\n", *PLAIN_CHAT],
    ),
    "responses": (
        ResponsesObserver,
        [
            *(responses(n, word) for n, word in enumerate(WORDS)),
            b'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed"}}\n\n',
        ],
    ),
    "messages": (
        MessagesObserver,
        [*map(messages, WORDS), *(messages(word, "thinking") for word in WORDS), b"event: ping\ndata: {}\n\n"],
    ),
    "messages to the end": (
        MessagesObserver,
        [*map(messages, WORDS), b'event: message_stop\ndata: {"type":"message_stop"}\n\n'],
    ),
    "gemini": (
        GeminiObserver,
        [*(gemini(word, n) for n, word in enumerate(WORDS)), gemini("", 99, ',"finishReason": "STOP"')],
    ),
    "CRLF": (lambda: ChatObserver(False), [event.replace(b"\n", b"\r\n") for event in PLAIN_CHAT]),
}


class Run:
    """One stream through a pump, by the lane or without it."""

    def __init__(self, make: Callable[[], Observer]) -> None:
        chosen = limits(keepalive=KEEPALIVE_S)
        self.loop = Loop()
        self.sink = Sink()
        self.trace = Trace()
        self.observer = make()
        self.meter = Meter(self.observer)
        head = RequestHead("POST", "/v1/chat/completions", "", [])
        clock = Clock(chosen, self.loop.now, self.loop.now)
        self.machine = Machine(chosen, Voice(Chat(), head, "ka"), clock, self.trace)
        share = Share(self.loop, Wheel(self.loop), 10**9)  # type: ignore[arg-type]
        self.pump = Pump(self.machine, chosen, self.sink, share, [], lambda: None, lambda outcome: None)
        self.pump.start()
        self.upstream = Upstream()
        self.pump.begin(self.upstream)
        self.machine.answered(self.meter, self.loop.now)
        self.running = self.loop.task(self.pump.run(200, [], None))
        self.passed = 0

    def feed(self, data: bytes, lane: bool) -> None:
        """One chunk."""
        framed, frames = frame(data), self.upstream.frames if lane and not self.upstream.closed else None
        if frames is not None and frames(framed):
            self.passed += 1
            return
        self.upstream.push(data)

    @property
    def record(self) -> tuple[object, ...]:
        """All that an entry is made of."""
        observer = self.observer
        wire = self.trace.wire(1000.0, "", self.meter.unreadable)
        said = observer.features.counted()
        seen = (observer.usage, said, observer.served_model, observer.saw_id, observer.usage_is_final)
        return self.sink.body, wire, seen, observer.finish_reasons, self.machine.state, self.machine.outcome


@pytest.fixture
def runs() -> Iterator[list[Run]]:
    made: list[Run] = []
    yield made
    for run in made:
        run.pump.end(Outcome(End.STOPPED, "test"))
        run.loop.step()
        run.loop.close()


@pytest.mark.parametrize("ending", ["framed", "cut", "gone", "stopped"])
@pytest.mark.parametrize("name", STREAMS)
def test_the_record_is_that_of_the_long_way(runs: list[Run], name: str, ending: str) -> None:
    make, pieces = STREAMS[name]
    for lane in (True, False):
        run = Run(make)
        runs.append(run)
        for number, piece in enumerate(pieces):
            run.feed(piece, lane)
            run.loop.advance(0.3 if number % 17 == 0 else 0.004)
        if ending in ("framed", "cut"):
            run.upstream.end(BodyEnd(ending))
        elif ending == "gone":
            run.sink.leave()
        else:
            run.pump.end(Outcome(End.STOPPED, "test"))
    fast, long_way = runs
    assert fast.passed > len(WORDS) // 2 - 3
    assert fast.record == long_way.record


def test_an_end_in_the_lane_is_heard_of(runs: list[Run]) -> None:
    """A member twice can hide a finish_reason from the look; the reading finds it, at the latest with the batch."""
    run = Run(lambda: ChatObserver(False))
    runs.append(run)
    run.feed(PLAIN_CHAT[0], lane=True)
    hidden = chat("x", "null").replace(b'"finish_reason":null', b'"finish_reason":null,"finish_reason" :"stop"')
    for _ in range(MOST):
        run.feed(hidden, lane=True)
    assert run.passed == MOST
    assert run.machine.clock.tailing


def test_nothing_passes_before_the_commit_or_behind_an_end(runs: list[Run]) -> None:
    run = Run(lambda: ChatObserver(False))
    runs.append(run)
    run.feed(PLAIN_CHAT[0], lane=True)
    assert not run.passed
    assert run.machine.outcome is None
    run.feed(DONE, lane=True)
    run.feed(PLAIN_CHAT[0], lane=True)
    assert not run.passed
    assert run.machine.state is State.ENDING


def test_the_keepalive_follows_what_passed(runs: list[Run]) -> None:
    run = Run(lambda: ChatObserver(False))
    runs.append(run)
    for event in PLAIN_CHAT[:5]:
        run.feed(event, lane=True)
    run.loop.advance(KEEPALIVE_S - 1)
    run.feed(PLAIN_CHAT[5], lane=True)
    run.loop.advance(KEEPALIVE_S - 1)
    assert run.trace.keepalives == 0
    run.loop.advance(2)
    assert run.trace.keepalives == 1


def test_frames_of_one_read() -> None:
    """Taken one by one, as long as they are whole, wanted, and framed as we frame."""
    taken: list[bytes] = []

    def frames(data: bytes) -> bool:
        taken.append(data_of(data))
        return b"stop" not in data

    good = frame(b"one") + frame(b"two" * 30)
    assert take_frames(good + frame(b"three")[:-1], frames) == len(good)
    assert taken == [b"one", b"two" * 30]
    assert take_frames(good + frame(b"stop") + frame(b"x"), frames) == len(good)
    for other in (b"0\r\n\r\n", b"03\r\none\r\n", b"3;a\r\none\r\n", b"+3\r\none\r\n", b"A\r\n0123456789\r\n", b"\r\n"):
        assert take_frames(other, frames) == 0
    assert take_frames(frame(b"x" * MOST_READ), frames) == 0
    assert take_frames(frame(b"one"), frames) == 0  # was offered before


def test_heads_are_those_of_our_frames() -> None:
    for size in range(1, MOST_READ):
        framed = frame(b"x" * size)
        if len(framed) < MOST_READ:
            assert framed == HEADS[len(framed)] + b"x" * size + b"\r\n"
