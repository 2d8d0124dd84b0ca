"""What one reply shall be: immutable values, in the four parts that the simulator keeps apart.

    Content   what is said            text, tool calls, usage, finish        (answer.py)
    Spelling  how the wire spells it  events, line ends, [DONE]              (chat.py, spelling.py)
    Pacing    when it is written      delays, gaps, writes, heartbeats       (timeline.py, player.py)
    Faults    what goes wrong         status, headers, cuts, framing         (reply.py, timeline.py)

Names and defaults of the script's fields are in docs/reference/simulator.md; `reading.py` turns those into these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

DEFAULT_TEXT = "The headrace carries water to the mill. 水は水車へ流れる。물레방아가 돈다. Всё течёт 🌊🏞️ — naïve café."


class SplitBy(StrEnum):
    """How a text becomes deltas."""

    WORDS = "words"
    CHARACTERS = "characters"
    COUNT = "count"


class UsageStyle(StrEnum):
    """Where the usage object stands in a stream (cases B028, B029)."""

    ASKED = "asked"  # as OpenAI: a last chunk, only if stream_options.include_usage is true; null in the others then
    FINAL = "final"  # a last chunk with choices [], asked or not
    EVERY = "every"  # on every chunk, cumulative
    FINISH = "finish"  # on the chunk that carries finish_reason
    NULL_AFTER = "null_after"  # a usage chunk, then one more with choices [] and usage null
    ZERO = "zero"  # as final, all numbers 0
    NONE = "none"  # never


class RoleStyle(StrEnum):
    """Where `role: assistant` stands in a stream."""

    FIRST = "first"  # a chunk of its own, content ""
    JOINED = "joined"  # in the first delta
    NONE = "none"


class ReasoningField(StrEnum):
    """The member of a delta that carries reasoning; OpenAI's own API has none, the compatible ones differ."""

    REASONING_CONTENT = "reasoning_content"
    REASONING = "reasoning"


class LineEnd(StrEnum):
    """Line ends of generated events."""

    LF = "lf"
    CRLF = "crlf"
    CR = "cr"
    MIXED = "mixed"  # lines end in LF, the blank line is CRLF


class WriteMode(StrEnum):
    """How body bytes are grouped into writes."""

    EVENT = "event"
    BYTE = "byte"
    JOINED = "joined"


class During(StrEnum):
    """Which silence a heartbeat fills."""

    FIRST = "first"  # before the first event
    GAP = "gap"  # between events
    STALL = "stall"  # after the last event: a stall or tail_hold
    ANY = "any"


class How(StrEnum):
    """How a cut ends the connection."""

    RST = "rst"  # TCP reset
    FIN = "fin"  # TCP close without the body's own end
    CLEAN = "clean"  # the body's own end, too early
    STALL = "stall"  # nothing more, connection open


class Framing(StrEnum):
    """How the end of a body is told."""

    CHUNKED = "chunked"
    LENGTH = "length"
    CLOSE = "close"


class Encoding(StrEnum):
    """Content-Encoding that is really applied."""

    IDENTITY = "identity"
    GZIP = "gzip"
    DEFLATE = "deflate"


class RefuseWhen(StrEnum):
    """When the connection is closed without an answer."""

    HEAD = "head"  # the request's head has been read
    BODY = "body"  # the whole request has been read


class CloseHow(StrEnum):
    """How a refused connection is closed."""

    RST = "rst"
    FIN = "fin"


@dataclass(frozen=True, slots=True)
class Chunks:
    """The split of a text: `size` words or characters to a delta, or `size` deltas in all."""

    by: SplitBy = SplitBy.WORDS
    size: int = 1


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function call; `arguments` is JSON text, sent in `pieces` fragments."""

    name: str
    arguments: str
    id: str | None = None
    pieces: int = 3


@dataclass(frozen=True, slots=True)
class ChoiceSpec:
    """One choice. `text` None: the default text, unless it calls tools or refuses; several strings: the deltas."""

    text: tuple[str, ...] | None = None
    chunks: Chunks = Chunks()
    repeat: int = 1
    echo: bool = False
    reasoning: str = ""
    refusal: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class UsageSpec:
    """Token counts; None is computed from the text. `object` (JSON) replaces the whole usage object."""

    style: UsageStyle = UsageStyle.ASKED
    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    cached: int = 0
    reasoning: int | None = None
    object: bytes | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """What is said. `n` None: as many choices as the request asks for."""

    choices: tuple[ChoiceSpec, ...] = (ChoiceSpec(),)
    n: int | None = None
    usage: UsageSpec = UsageSpec()
    id: str | None = None
    created: int | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptedEvent:
    """An event of the script's own: `lines` (field name, value) to be spelled, or `raw` bytes as they are."""

    lines: tuple[tuple[bytes, bytes], ...] = ()
    raw: bytes = b""
    repeat: int = 1
    delay_s: float | None = None


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the wire spells it. `events` and `raw` replace every generated event."""

    stream: bool | None = None
    role: RoleStyle = RoleStyle.FIRST
    done: bool | str | None = None  # None: yes, except after an error event
    obfuscation: bool = False
    reasoning_field: ReasoningField = ReasoningField.REASONING_CONTENT
    events: tuple[ScriptedEvent, ...] | None = None
    raw: bytes | None = None
    preamble: bytes = b""
    line_end: LineEnd | None = None  # None: the protocol's own
    space: bool = True


@dataclass(frozen=True, slots=True)
class Writes:
    """Grouping into writes: by `mode`; or pieces of `size` bytes; or cut `at` offsets (→ pause in s before the rest).

    Offsets count body bytes, or bytes of event `in_event`, where negative ones count from its end.
    """

    mode: WriteMode = WriteMode.EVENT
    size: int = 0
    at: Mapping[int, float] = field(default_factory=dict)
    in_event: int | None = None
    gap_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Bytes written every `every_s` of silence, at most `limit` in one silence."""

    form: bytes = b": ping\n\n"
    every_s: float = 1.0
    during: During = During.ANY
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Pacing:
    """`gaps`: seconds before the event of that index; the other events have `gap_s`, event 0 `first_delay_s`."""

    head_delay_s: float = 0.0
    first_delay_s: float = 0.0
    gap_s: float = 0.0
    gaps: Mapping[int, float] = field(default_factory=dict)
    writes: Writes = Writes()
    heartbeats: tuple[Heartbeat, ...] = ()


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """An error; None members come from the status."""

    message: str | None = None
    type: str | None = None
    code: str | int | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """An early end: after `after_events` events and `extra` bytes of the next (negative: all but so many), or after
    `at_byte` body bytes, or after `head_bytes` of the head; with none of them where the body would have ended."""

    how: How = How.RST
    after_events: int | None = None
    extra: int = 0
    at_byte: int | None = None
    head_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """A connection closed without an answer."""

    when: RefuseWhen
    how: CloseHow = CloseHow.FIN


@dataclass(frozen=True, slots=True)
class Faults:
    """What the HTTP reply does differently. `headers`: name → values that replace the generated ones; () removes."""

    status: int = 200
    headers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    content_type: str | None = None
    body: bytes | None = None
    content_encoding: Encoding = Encoding.IDENTITY
    error: ErrorSpec = ErrorSpec()
    error_first: bool = False
    error_at: int | None = None
    cut: Cut | None = None
    tail_hold_s: float = 0.0
    framing: Framing | None = None
    trailers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    surplus: bytes = b""
    refuse: Refuse | None = None
    keep_alive: bool = True
    close_idle_after_s: float | None = None
    ignore_request_body: bool = False
    interim: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """One reply; or, with `sequence`, one reply per request in turn; or one by the request's credential."""

    name: str = "default"
    content: Content = Content()
    spelling: Spelling = Spelling()
    pacing: Pacing = Pacing()
    faults: Faults = Faults()
    sequence: tuple["Scenario", ...] = ()
    by_credential: Mapping[str, "Scenario"] = field(default_factory=dict)
