"""Drives a machine as the pump does, and keeps what a client and an operator would see."""

import json
from dataclasses import dataclass, field, replace
from hashlib import sha256

from headrace.metering.meter import Meter
from headrace.model.outcome import Failure, Outcome
from headrace.model.problem import Problem
from headrace.model.request import RequestHead
from headrace.model.settings import StreamSettings
from headrace.model.wire import BodyEnd
from headrace.protocols.chat import Chat
from headrace.protocols.chat_observer import ChatObserver
from headrace.protocols.voice import Voice
from headrace.relay.clock import Clock
from headrace.relay.machine import Machine
from headrace.relay.state import State
from headrace.relay.trace import Trace

KEEPALIVE = b": ka\n\n"
PATIENT = StreamSettings(
    keepalive=1e9,
    early_open=None,
    early_open_cold=None,
    first_event=1e9,
    stall=1e9,
    stall_with_pings=1e9,
    open=1e9,
    reply=1e9,
    total=1e9,
    end_grace=1e9,
)
"""Limits that never pass."""


def data(text: str = "x", finish: str | None = None, index: int = 0) -> bytes:
    """One chunk with some content, as OpenAI sends it."""
    choice = {"index": index, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
FINISH = data("", "stop")
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}\n\n'
DONE = b"data: [DONE]\n\n"
COMMENT = b": ping\n\n"
ERROR = b'data: {"error":{"message":"busy","type":"server_error","param":null,"code":"server_is_overloaded"}}\n\n'


class Mute:
    """A client's protocol without any form of a keepalive or an error event."""

    def keepalive(self, line_end: bytes | None, saw_id: bool) -> bytes:
        """None is safe."""
        return b""

    def interrupt(self, problem: Problem, line_end: bytes | None, heard: bool) -> bytes:
        """None is known."""
        return b""


@dataclass
class Client:
    """One exchange's machine over its attempts, and everything that came out of it.

    `said` reads as a conversation: `open`, `write …`, `insert …`, `failed …`, `end …`, `abort …`.
    """

    limits: StreamSettings = PATIENT
    added_usage: bool = False
    headers: tuple[tuple[bytes, bytes], ...] = ()
    keeps_comments: bool = True
    mute: bool = False
    began: float = 0.0
    said: list[tuple[str, bytes]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.trace = Trace()
        head = RequestHead("POST", "/v1/chat/completions", "", list(self.headers))
        self.voice = Voice(Chat(), head, "ka")
        self.clock = Clock(self.limits, self.began, self.began)
        voice = Mute() if self.mute else self.voice
        self.machine = Machine(self.limits, voice, self.clock, self.trace, self.keeps_comments)
        self.meter = Meter(ChatObserver(self.added_usage))

    # ---- what happens to it

    def attempt(self, now: float = 0.0, answered: bool = True) -> "Client":
        """A new attempt, whose head comes at once."""
        self.machine.begin(now)
        if answered:
            self.answer(now)
        return self

    def answer(self, now: float = 0.0) -> "Client":
        """The attempt's head is there."""
        self.meter = Meter(ChatObserver(self.added_usage))
        self.voice.observer = self.meter.observer
        self.machine.answered(self.meter, now)
        return self.take()

    def feed(self, piece: bytes, now: float = 0.0) -> "Client":
        """Bytes of the upstream's."""
        out = self.machine.feed(piece, now)
        if out:
            self._write(out)
        return self.take()

    def tick(self, now: float, drained: bool = True) -> "Client":
        """Time goes by."""
        self.machine.tick(now, drained)
        return self.take()

    def over(self, how: BodyEnd = BodyEnd.FRAMED, now: float = 0.0) -> "Client":
        """The upstream's body is over."""
        self.machine.upstream_end(how, now)
        return self.take()

    def end(self, outcome: Outcome, now: float = 0.0) -> "Client":
        """Somebody outside ends it."""
        self.machine.end(outcome, now)
        return self.take()

    def pass_plainly(self, now: float = 0.0) -> "Client":
        """The worker holds too much."""
        out = self.machine.pass_plainly(now)
        if out:
            self._write(out)
        return self.take()

    def take(self) -> "Client":
        """Do what the step says, in the order of its fields."""
        step, self.machine.step = self.machine.step, None
        if step is None:
            return self
        if step.open:
            self._open()
        if step.write:
            self._write(step.write)
        if step.insert:
            assert self.machine.head_sent, "nothing is inserted before the head"
            self.said.append(("insert", step.insert))
        if step.failed is not None:
            self.failures.append(step.failed)
            self.said.append(("failed", step.failed.problem.kind.value.encode()))
        if step.ended:
            assert self.machine.outcome is not None and self.machine.state is State.ENDED
            self.said.append(("abort" if step.abort else "end", self.machine.outcome.end.value.encode()))
        return self

    def _open(self) -> None:
        assert not any(word == "open" for word, _ in self.said), "one head"
        self.said.append(("open", b""))
        self.machine.head_sent = True

    def _write(self, data: bytes) -> None:
        self.machine.head_sent = True
        self.said.append(("write", data))

    # ---- what was seen

    @property
    def heard(self) -> list[tuple[str, bytes]]:
        """What was said since this was last asked."""
        said, self.said = self.said, []
        self._before = [*getattr(self, "_before", []), *said]
        return said

    @property
    def all_said(self) -> list[tuple[str, bytes]]:
        """All that was said."""
        return [*getattr(self, "_before", []), *self.said]

    @property
    def body(self) -> bytes:
        """The body as the client got it."""
        return b"".join(part for word, part in self.all_said if word in ("write", "insert"))

    @property
    def relayed(self) -> bytes:
        """The upstream's part of it."""
        return b"".join(part for word, part in self.all_said if word == "write")

    @property
    def inserted(self) -> list[bytes]:
        """Our own part."""
        return [part for word, part in self.all_said if word == "insert"]

    @property
    def state(self) -> State:
        """Where it stands."""
        return self.machine.state

    @property
    def outcome(self) -> Outcome:
        """How it ended."""
        assert self.machine.outcome is not None, "it has not ended"
        return self.machine.outcome

    def check(self) -> "Client":
        """What holds at any time: hashes and counts agree; insertions cut out, the upstream's bytes are left."""
        trace = self.trace
        assert trace.hash_in() == sha256(self.relayed).hexdigest()
        assert trace.released == len(self.relayed)
        assert trace.inserted == sum(map(len, self.inserted))
        wire = trace.wire(0.0, trace.hash_in(), 0)
        if len(wire.insertions) < 200:
            assert cut_out(self.body, wire.insertions) == self.relayed
        return self


def cut_out(body: bytes, insertions: tuple[tuple[int, int], ...]) -> bytes:
    """`body` without the recorded insertions (offset in the delivered body, length)."""
    kept = []
    position = 0
    for offset, length in insertions:
        assert offset >= position, "insertions are recorded in order and do not overlap"
        kept.append(body[position:offset])
        position = offset + length
    return b"".join([*kept, body[position:]])


def limits(**changed: object) -> StreamSettings:
    """Limits that never pass but for those named."""
    return replace(PATIENT, **changed)  # type: ignore[arg-type]
