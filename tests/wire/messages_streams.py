"""The recorded streams of Messages, what each must lead to, and a plain second reading of them."""

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from headrace.metering.meter import Meter
from headrace.model.outcome import End
from headrace.model.request import RequestHead
from headrace.model.wire import BodyEnd
from headrace.protocols.messages import Messages
from headrace.protocols.messages_observer import MessagesObserver
from headrace.protocols.voice import Voice
from headrace.relay.clock import Clock
from headrace.relay.machine import Machine
from headrace.relay.trace import Trace
from tests.relay.driver import Client
from tests.wire.reference import BOM, boundaries, payload

FOLDER = Path(__file__).parent / "messages"
ERROR = (
    'event: error\ndata: {"type":"error","error":{"type":"api_error",'
    '"message":"Response stream interrupted, please retry"}}\n\n'
)


class MessagesClient(Client):
    """The driver's client, speaking Messages."""

    def __post_init__(self) -> None:
        self.trace = Trace()
        head = RequestHead("POST", "/v1/messages", "", list(self.headers))
        self.voice = Voice(Messages(), head, "ka")
        self.clock = Clock(self.limits, self.began, self.began)
        self.machine = Machine(self.limits, self.voice, self.clock, self.trace, self.keeps_comments)
        self.meter = Meter(MessagesObserver())

    def answer(self, now: float = 0.0) -> "Client":
        """The attempt's head is there."""
        self.meter = Meter(MessagesObserver())
        self.voice.observer = self.meter.observer
        self.machine.answered(self.meter, now)
        return self.take()


@dataclass(frozen=True)
class Recorded:
    """One stream. `tokens`: input, read from cache, written to cache, output; `reasoning`: of the output."""

    name: str
    end: End = End.COMPLETED
    reason: str = "end_turn"
    tokens: tuple[int | None, ...] = (9, 0, 0, 3)
    reasoning: int | None = None
    lacks: bytes = b""

    @cached_property
    def data(self) -> bytes:
        """As it came."""
        return (FOLDER / f"{self.name}.sse").read_bytes()

    @cached_property
    def removed(self) -> bytes:
        """The one named exception here."""
        return BOM if self.data.startswith(BOM) else b""

    @cached_property
    def delivered(self) -> bytes:
        """What a client must get."""
        return self.data.removeprefix(BOM) + self.lacks

    @cached_property
    def ends(self) -> list[int]:
        """Where the delivered events end."""
        return boundaries(self.delivered)

    @cached_property
    def error(self) -> bytes:
        """The error event in the stream's own line ends: those of its first line."""
        found = re.search(rb"\r\n|\n|\r", self.data)
        assert found is not None
        return ERROR.encode().replace(b"\n", found.group())


STREAMS = (
    Recorded("plain"),
    Recorded("crlf"),
    Recorded("cr"),
    Recorded("mixed"),
    Recorded("bom"),
    Recorded("unnamed"),
    Recorded("no_space"),
    Recorded("ids"),
    Recorded("comments"),
    Recorded("no_last_blank", lacks=b"\n\n"),
    Recorded("no_last_blank_crlf", lacks=b"\r\n"),
    Recorded("thinking", tokens=(9, 0, 0, 40), reasoning=30),
    Recorded("tools", reason="tool_use"),
    Recorded("cache", tokens=(14, 1, 4, 16)),
    Recorded("late_usage", tokens=(9033, 0, 4511, 5)),
    Recorded("two_deltas"),
    Recorded("vertex"),
    Recorded("unknown"),
    Recorded("compaction"),
    Recorded("odd", tokens=(9, None, None, 3)),
    Recorded("utf8"),
    Recorded("max_tokens", End.INCOMPLETE, "max_tokens"),
    Recorded("window", End.INCOMPLETE, "model_context_window_exceeded"),
    Recorded("refusal", End.INCOMPLETE, "refusal"),
    Recorded("pause", reason="pause_turn"),
    Recorded("after_stop"),
    Recorded("failed", End.FAILED, "upstream_error", (9, 0, 0, 1)),
    Recorded("failed_unnamed", End.FAILED, "upstream_error", (9, 0, 0, 1)),
    Recorded("failed_text", End.FAILED, "upstream_error", (9, 0, 0, 1)),
)


@dataclass
class Story:
    """What a client that reads Messages would know after some bytes."""

    events: int = 0
    done: bool = False
    failed: bool = False
    names: list[str] = field(default_factory=list)

    def read(self, block: bytes) -> bool:
        """One block; whether it is an event."""
        name = _name(block)
        data: str | None = ""
        value: object = None
        try:
            data = payload(block)
            if data is None or name == "ping":
                return False
            value = json.loads(data)
        except ValueError:
            if name != "error" and data != "[DONE]":
                return False
        kind = name or (value.get("type") if isinstance(value, dict) else "")
        if kind == "ping":
            return False
        self.events += 1
        self.done = self.done or kind == "message_stop"
        self.failed = self.failed or kind == "error"
        return True


def _name(block: bytes) -> str:
    found = re.findall(rb"(?:^|[\r\n])event: ?([^\r\n]*)", block)
    return found[-1].decode() if found else ""


def relay(stream: Recorded, pieces: list[bytes], how: BodyEnd = BodyEnd.FRAMED) -> Client:
    """The pieces through a machine, to their end."""
    client = MessagesClient().attempt()
    for piece in pieces:
        client.feed(piece)
    return client.over(how)
