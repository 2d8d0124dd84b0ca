"""The recorded streams of Messages, what each must lead to, and a plain second reading of them."""

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from headrace.metering.meter import Meter
from headrace.model.outcome import End
from headrace.model.request import RequestHead
from headrace.model.usage import Calls, ExtraUsage, Usage
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


MODEL, OTHER = "claude-opus-4-6", "claude-sonnet-5"
USAGE = Usage(input_total=9, cached_input=0, cache_write=0, cache_write_5m=0, output_total=3)
SPLIT = Usage(
    input_total=9, cached_input=0, cache_write=0, cache_write_5m=0, cache_write_1h=0, output_total=3, tier="standard"
)
THOUGHT = Usage(input_total=9, cached_input=0, cache_write=0, cache_write_5m=0, output_total=40, reasoning=30)
CACHED = Usage(
    input_total=14, cached_input=1, cache_write=4, cache_write_5m=3, cache_write_1h=1, output_total=16, tier="standard"
)
LATE = Usage(input_total=9033, cached_input=0, cache_write=4511, cache_write_5m=4511, output_total=5)
PROVISIONAL = Usage(input_total=9, cached_input=0, cache_write=0, cache_write_5m=0, output_total=1)
COMPACTION = Usage(input_total=100, cached_input=0, cache_write=0, cache_write_5m=0, output_total=20)
COMPACTED = Usage(
    input_total=9, cached_input=0, cache_write=0, cache_write_5m=0, output_total=3,
    extra=(ExtraUsage(kind="compaction", model=MODEL, usage=COMPACTION),),
)  # fmt: skip
ADVICE = Usage(
    input_total=160, cached_input=0, cache_write=0, cache_write_5m=0, output_total=70, tier="priority", geo="us"
)
ADVISED = Usage(
    input_total=20, cached_input=8, cache_write=0, cache_write_5m=0, output_total=6,
    calls=Calls(web_search=2), extra=(ExtraUsage(kind="advisor", model="claude-fable-5", usage=ADVICE),),
    tier="priority", speed="fast", geo="us",
)  # fmt: skip
DECLINED = Usage(
    input_total=83, cached_input=70, cache_write=10, cache_write_5m=10, output_total=5,
    extra=(
        ExtraUsage(
            kind="fallback",
            model=OTHER,
            usage=Usage(input_total=81, cached_input=79, cache_write=0, cache_write_5m=0, output_total=30, reasoning=9),
        ),
    ),
)  # fmt: skip


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
    """One stream. `usage` is what it reports, `served` the model that it says it is of."""

    name: str
    end: End = End.COMPLETED
    reason: str = "end_turn"
    usage: Usage = USAGE
    served: str = MODEL
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
    Recorded("plain", usage=SPLIT),
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
    Recorded("thinking", usage=THOUGHT),
    Recorded("tools", reason="tool_use"),
    Recorded("cache", usage=CACHED),
    Recorded("late_usage", usage=LATE),
    Recorded("two_deltas"),
    Recorded("vertex"),
    Recorded("unknown", served="b"),
    Recorded("compaction", usage=COMPACTED),
    Recorded("advisor", usage=ADVISED),
    Recorded("fallback", usage=DECLINED, served=OTHER),
    Recorded("odd", usage=Usage(input_total=9, output_total=3), served="claude-?"),
    Recorded("utf8"),
    Recorded("max_tokens", End.INCOMPLETE, "max_tokens"),
    Recorded("window", End.INCOMPLETE, "model_context_window_exceeded"),
    Recorded("refusal", End.INCOMPLETE, "refusal"),
    Recorded("pause", reason="pause_turn"),
    Recorded("after_stop"),
    Recorded("failed", End.FAILED, "upstream_error", PROVISIONAL),
    Recorded("failed_unnamed", End.FAILED, "upstream_error", PROVISIONAL),
    Recorded("failed_text", End.FAILED, "upstream_error", PROVISIONAL),
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
