"""The recorded streams of Gemini, what each must lead to, and a plain second reading of them."""

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from headrace.metering.meter import Meter
from headrace.model.outcome import End
from headrace.model.request import Call, RequestHead
from headrace.model.usage import Calls, Usage
from headrace.model.wire import Asked, BodyEnd, WireProtocol
from headrace.protocols.gemini import Gemini
from headrace.protocols.voice import Voice
from headrace.relay.clock import Clock
from headrace.relay.machine import Machine
from headrace.relay.trace import Trace
from headrace.sse.array import framing
from tests.relay.driver import PATIENT, Client
from tests.wire.reference import BOM, blocks, payload

FOLDER = Path(__file__).parent / "gemini"
USAGE = Usage(input_total=9, output_total=3)
KINDS = Usage(
    input_total=95, cached_input=10, tool_input=15, audio_input=7, image_input=41, video_input=20, document_input=12,
    output_total=33, reasoning=30, audio_output=1, image_output=2, tier="PROVISIONED_THROUGHPUT",
)  # fmt: skip


@dataclass
class GeminiClient(Client):
    """The driver's client, speaking Gemini: events, or one array."""

    array: bool = False

    def __post_init__(self) -> None:
        self.trace = Trace()
        api, asked = Gemini(), Asked.ARRAY if self.array else Asked.EVENTS
        query = "" if self.array else "alt=sse"
        head = RequestHead("POST", "/v1beta/models/m:streamGenerateContent", query, list(self.headers))
        self.call = Call(WireProtocol.GEMINI, "gemini.stream_generate_content", "m", asked, b"{}")
        self.voice = Voice(api, head, "never")
        self.clock = Clock(self.limits, self.began, self.began)
        self.machine = Machine(self.limits, self.voice, self.clock, self.trace, api.keeps_comments, framing(asked))
        self.meter = Meter(api.observer(self.call, False))

    def answer(self, now: float = 0.0) -> "Client":
        """The attempt's head is there."""
        self.meter = Meter(Gemini().observer(self.call, False))
        self.voice.observer = self.meter.observer
        self.machine.answered(self.meter, now)
        return self.take()


@dataclass(frozen=True)
class Recorded:
    """One stream. `usage` is what it reports, `final` whether behind its last output."""

    name: str
    end: End = End.COMPLETED
    reason: str = "STOP"
    usage: Usage = USAGE
    final: bool = True
    lacks: bytes = b""

    @cached_property
    def data(self) -> bytes:
        """As it came."""
        return (FOLDER / f"{self.name}.sse").read_bytes()

    @cached_property
    def removed(self) -> list[bytes]:
        """The named exceptions: a byte order mark, and blocks of comments alone."""
        bom = [BOM] if self.data.startswith(BOM) else []
        return bom + [block for block in blocks(self.data.removeprefix(BOM)) if is_comment(block)]

    @cached_property
    def delivered(self) -> bytes:
        """What a client must get."""
        kept = [block for block in blocks(self.data.removeprefix(BOM)) if not is_comment(block)]
        return b"".join(kept) + self.lacks

    @cached_property
    def line_end(self) -> bytes:
        """Of its first line, but CRLF in place of a CR, which may be half of one."""
        found = re.search(rb"\r\n|\n|\r", self.data)
        assert found is not None
        return b"\n" if found.group() == b"\n" else b"\r\n"


FAILED = ("upstream_error", Usage(input_total=9, output_total=1))
STREAMS = (
    Recorded("plain"),
    Recorded("lf"),
    Recorded("cr"),
    Recorded("mixed"),
    Recorded("bom"),
    Recorded("comments"),
    Recorded("blank_lines"),
    Recorded("ids"),
    Recorded("named"),
    Recorded("no_space"),
    Recorded("two_lines"),
    Recorded("no_finish", reason="none"),
    Recorded("no_finish_at_all", reason="none", usage=FAILED[1], final=False),
    Recorded("finish_alone"),
    Recorded("metadata_first"),
    Recorded("stop_everywhere"),
    Recorded("two"),
    Recorded("early_counts"),
    Recorded("usage_early", final=False),
    Recorded("null_after"),
    Recorded("thoughts", usage=Usage(input_total=9, output_total=33, reasoning=30)),
    Recorded("tools"),
    Recorded("streamed_arguments"),
    Recorded("code", usage=Usage(input_total=14, cached_input=4, tool_input=5, output_total=3)),
    Recorded("media", usage=Usage(input_total=9, output_total=3, image_output=3)),
    Recorded("audio", usage=Usage(input_total=9, audio_input=7, output_total=3, audio_output=3)),
    Recorded("kinds", usage=KINDS),
    Recorded("grounded", usage=Usage(input_total=9, output_total=3, calls=Calls(grounding=1))),
    Recorded("blocked", End.INCOMPLETE, "PROHIBITED_CONTENT", Usage(input_total=9, output_total=0)),
    Recorded("max_tokens", End.INCOMPLETE, "MAX_TOKENS"),
    Recorded("safety", End.INCOMPLETE, "SAFETY", FAILED[1]),
    Recorded("malformed_call", End.INCOMPLETE, "MALFORMED_FUNCTION_CALL"),
    Recorded("continuation", reason="CONTINUATION"),
    Recorded("no_last_blank", lacks=b"\r\n"),
    Recorded("no_last_line_end", lacks=b"\n\n"),
    Recorded("no_last_blank_lf", lacks=b"\n"),
    Recorded("failed", End.FAILED, "upstream_error", Usage(input_total=9, output_total=2)),
    Recorded("failed_bare", End.FAILED, *FAILED),
    Recorded("failed_list", End.FAILED, *FAILED),
    Recorded("error_null"),
    Recorded("odd"),
    Recorded("heartbeats"),
    Recorded("utf8"),
)


@dataclass(frozen=True)
class RecordedArray:
    """One streamed array."""

    name: str
    end: End = End.COMPLETED
    reason: str = "STOP"
    tokens: tuple[int | None, int | None] = (9, 3)
    elements: int = 3

    @cached_property
    def data(self) -> bytes:
        """As it came."""
        return (FOLDER / f"{self.name}.json").read_bytes()


ARRAYS = (
    RecordedArray("google"),
    RecordedArray("dense"),
    RecordedArray("spaces"),
    RecordedArray("deep", elements=2),
    RecordedArray("one", elements=1),
    RecordedArray("failed_array", End.FAILED, "upstream_error", (9, 1), 2),
)


def is_comment(block: bytes) -> bool:
    """Whether a block is made of comment lines alone; blank lines alone are none."""
    lines = [line for line in re.split(rb"\r\n|\r|\n", block) if line]
    return bool(lines) and all(line.startswith(b":") for line in lines)


@dataclass
class Story:
    """What a client that reads Gemini would know after some bytes."""

    events: int = 0
    failed: bool = False
    torn: bool = False
    finishes: dict[object, str] = field(default_factory=dict)
    blocked: bool = False
    counted: bool = False
    """Whether output has been counted behind the last of it."""

    def good(self, how: BodyEnd) -> bool:
        """Whether this end of the body loses nothing that a client could know of."""
        reasons = list(self.finishes.values())
        over = (bool(reasons) and "" not in reasons and "CONTINUATION" not in reasons) or (self.blocked and not reasons)
        if self.failed or (over and self.counted):
            return True
        if how is BodyEnd.CLOSED:
            return any(reasons) or self.blocked
        return how is BodyEnd.FRAMED and not self.torn

    def read(self, block: bytes) -> bool:
        """Take one block; whether it is an event."""
        text = _text(block)
        value = _json(text)
        if not isinstance(value, dict):
            self.torn = text.lstrip().startswith(("{", "[")) and b"data:" in block
            return False
        self.torn = False
        self.events += 1
        self._note(value)
        return True

    def _note(self, value: dict[str, Any]) -> None:
        spoke = False
        for candidate in value.get("candidates") or ():
            content = candidate.get("content")
            spoke = spoke or bool(isinstance(content, dict) and content.get("parts"))
            reason = candidate.get("finishReason") or ""
            index = candidate.get("index") if isinstance(candidate.get("index"), int) else 0
            self.finishes[index] = reason or self.finishes.get(index, "")
        self.failed = self.failed or bool(value.get("error") and not spoke)
        self.blocked = self.blocked or "promptFeedback" in value
        usage = value.get("usageMetadata")
        if usage is None:
            self.counted = self.counted and not spoke
        elif usage.get("candidatesTokenCount") or usage.get("thoughtsTokenCount") or self.blocked:
            self.counted = True
        elif spoke:
            self.counted = False


def _text(block: bytes) -> str:
    try:
        text = payload(block)
    except UnicodeDecodeError:
        return "{"  # only a torn character reads so here
    if text is not None:
        return text
    bare = block.decode("utf-8", "replace").strip()
    return bare if '"error"' in bare else ""


def _json(text: str) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value[0] if isinstance(value, list) and value else value


def relay(stream: Recorded | RecordedArray, pieces: list[bytes], how: BodyEnd = BodyEnd.FRAMED) -> GeminiClient:
    """The pieces through a machine, to their end."""
    client = GeminiClient(PATIENT, array=isinstance(stream, RecordedArray))
    client.attempt()
    for piece in pieces:
        client.feed(piece)
    client.over(how)
    return client
