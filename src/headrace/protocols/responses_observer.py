"""Reads Responses: one stream event by event, or one whole object.

Wire facts (OpenAI's published types): an event's `type` says what it is, with or without an
`event:` line. Usage stands in `response.usage` of the events about the response as a whole, null before the last. The
stream's own end is `response.completed`, `response.incomplete` or `response.failed`; `error` (flat or nested) is a
failure too. Events of types that are not known here are progress and nothing else.
"""

from collections.abc import Sequence
from enum import Enum, auto

import msgspec

from headrace.model.outcome import End, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.usage import Usage
from headrace.model.wire import BodyEnd, Plain, Sight
from headrace.protocols.fault import clean_text
from headrace.protocols.features import Features
from headrace.protocols.openai_fault import problem_from_error
from headrace.protocols.plain import responses_texts
from headrace.protocols.responses_failure import Identity
from headrace.protocols.responses_objects import (
    Event,
    Item,
    ResponseObject,
    decode_event,
    read_body,
    read_event,
    read_fault,
    read_object,
)
from headrace.protocols.responses_usage import CALLS, Counts, ToolUsage, image_model, usage_from
from headrace.protocols.usage_form import MOST_TIER, laid_over
from headrace.sse.event import parse

_INTERRUPTED = Problem(
    Kind.UPSTREAM_INTERRUPTED, "The upstream's stream broke off before its end. Send the whole request again."
)
_MOST_REASON = 100


class _Role(Enum):
    """What an event type means here."""

    TEXT = auto()
    """Its `delta` is text that the model generated."""
    REFUSAL = auto()
    """The same, of a refusal."""
    SOUND = auto()
    """Output that is no text."""
    ITEM = auto()
    """An output item begins."""
    PREAMBLE = auto()
    TERMINAL = auto()
    HEARTBEAT = auto()
    ERROR = auto()
    OTHER = auto()


_ROLES = {
    "response.output_text.delta": _Role.TEXT,
    "response.function_call_arguments.delta": _Role.TEXT,
    "response.custom_tool_call_input.delta": _Role.TEXT,
    "response.reasoning_summary_text.delta": _Role.TEXT,
    "response.reasoning_text.delta": _Role.TEXT,
    "response.code_interpreter_call_code.delta": _Role.TEXT,
    "response.mcp_call_arguments.delta": _Role.TEXT,
    "response.shell_call_command.delta": _Role.TEXT,
    "response.audio.transcript.delta": _Role.TEXT,
    "response.refusal.delta": _Role.REFUSAL,
    "response.refusal.done": _Role.REFUSAL,
    "response.audio.delta": _Role.SOUND,
    "response.output_item.added": _Role.ITEM,
    "response.created": _Role.PREAMBLE,
    "response.queued": _Role.PREAMBLE,
    "response.in_progress": _Role.PREAMBLE,
    "response.completed": _Role.TERMINAL,
    "response.incomplete": _Role.TERMINAL,
    "response.failed": _Role.TERMINAL,
    "keepalive": _Role.HEARTBEAT,
    "error": _Role.ERROR,
}


_TEXTS = frozenset(name for name, role in _ROLES.items() if role is _Role.TEXT)
_PLAIN = {name: Plain(b'event: %b\ndata: {"type":"%b",' % (name, name)) for name in map(str.encode, _TEXTS)}
"""By event name: only the name is told by the bytes, so each run of like events learns its own."""


class ResponsesObserver:
    """One attempt's response. Attributes are those of `protocols.interface.Observer`, and `identity`."""

    __slots__ = (
        "_calls", "_counts", "_images_by", "_outcome", "_problem", "_refused", "_tier", "_tools", "features",
        "identity", "saw_id", "served_model", "usage_is_final",
    )  # fmt: skip

    def __init__(self) -> None:
        self._counts = Counts()
        self._images_by = ""
        self._tools: ToolUsage | None = None
        self._calls: dict[str, int] = {}
        self._tier = ""
        self.features = Features()
        self.served_model = ""
        self.usage_is_final = False
        self.saw_id = False
        self.identity = Identity()
        self._outcome: Outcome | None = None
        self._problem: Problem | None = None
        self._refused = False

    @property
    def usage(self) -> Usage:
        """Per field the last count that was no null. Calls and the tier are told without counts too: what was cut off
        before its counts is charged for them."""
        return usage_from(self._counts, self._tools, self._calls, self._tier, self._images_by)

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """The terminal's own word: completed, an incomplete reason, or an error's code."""
        return (self._outcome.reason,) if self._outcome is not None else ()

    @property
    def finished(self) -> bool:
        """Whether the terminal event came."""
        return self._outcome is not None

    @property
    def problem(self) -> Problem | None:
        """What the upstream's `error` event said."""
        return self._problem

    def observe(self, event: bytes) -> Sight:
        """One whole event."""
        line = event.find(b"\n") + 1 if event[:7] == b"event: " else 0
        if event[line : line + 7] == b"data: {":
            # An event line and one data line, as OpenAI sends it, or the latter alone. Whatever else the block has
            # makes this fail, and is then taken apart.
            payload = event[line + 6 : -2]
            try:
                seen = decode_event(payload)
            except (msgspec.MsgspecError, RecursionError):
                pass
            else:
                if seen.type in _TEXTS and self._is_plain_text(seen):
                    return Sight.PROGRESS
                if not seen.type:
                    seen.type = _type_of(event[7 : line - 1] if line else b"", payload)
                return self._see(seen, payload)
        return self._take_apart(event)

    def plain_like(self, event: bytes) -> Plain | None:
        """A piece of text of the same kind."""
        return _PLAIN.get(event[len(b"event: ") : event.find(b"\n")])

    def observe_plain(self, events: Sequence[bytes]) -> bool:
        """Pieces of text of one kind."""
        found = responses_texts(events)
        if found is None or not found[1] <= _TEXTS:
            return False
        self.usage_is_final = False
        self.features.run(found[0])
        self.identity.last_number = found[2]
        self.identity.begun = True
        return True

    def ended(self, how: BodyEnd) -> Outcome:
        """What the end of the body means: only a terminal event is an end."""
        if self._outcome is not None:
            return self._outcome
        how_text = "ended" if how is not BodyEnd.CUT else "was cut"
        return Outcome(End.INTERRUPTED, f"upstream {how_text}", _INTERRUPTED)

    def observe_body(self, body: bytes) -> Outcome:
        """A whole Response, or what `input_tokens` or `compact` answer."""
        response = read_body(body)
        if response is None:
            return Outcome(End.COMPLETED, "unreadable")
        if response.object == "response.input_tokens":
            return Outcome(End.COMPLETED, "")  # a count of tokens is not a use of tokens
        self._note(response)
        for item in response.output or ():
            self.features.events += 1
            self._count_item(item)
        if response.status is None:
            return Outcome(End.COMPLETED, "")
        self._outcome = self._meaning(response.status, response)
        return self._outcome

    def _take_apart(self, event: bytes) -> Sight:
        """Any block at all."""
        parsed = parse(event)
        if parsed.has_id:
            self.saw_id = True
        if parsed.data is None:
            # A block without data dispatches nothing, whatever other fields it has.
            return Sight.HEARTBEAT if parsed.has_field else Sight.COMMENT
        seen = read_event(parsed.data)
        if seen is None:
            # Open Responses ends with [DONE]; alone it says nothing about how the response ended.
            return Sight.PROGRESS if parsed.data.startswith(b"[DONE]") else Sight.HEARTBEAT
        if not seen.type:
            seen.type = _type_of(parsed.name, parsed.data)
        return self._see(seen, parsed.data)

    def _see(self, event: Event, payload: bytes) -> Sight:
        identity = self.identity
        role = _ROLES.get(event.type, _Role.OTHER)
        if role is _Role.ERROR:
            return self._fail(payload)
        if event.sequence_number is not None:
            identity.last_number = event.sequence_number
        if role is _Role.HEARTBEAT:
            return Sight.HEARTBEAT
        identity.begun = True
        if role is _Role.PREAMBLE or role is _Role.TERMINAL:
            return self._see_response(event, role)
        if role is _Role.TEXT or role is _Role.REFUSAL:
            self._refused = self._refused or role is _Role.REFUSAL
            self._count(event.delta)
        elif role is _Role.ITEM and event.item is not None:
            self._count(event.item.name)
            self._count_call(event.item.type)
        elif role is _Role.SOUND:
            self.features.events += 1
            self.usage_is_final = False
        return Sight.PROGRESS

    def _is_plain_text(self, event: Event) -> bool:
        """Count the commonest event of all, a numbered piece of text: half the cost of the general reading."""
        delta = event.delta
        if delta.__class__ is not str or event.sequence_number is None:
            return False
        features = self.features
        features.events += 1
        features.text(delta)
        identity = self.identity
        identity.last_number = event.sequence_number
        identity.begun = True
        self.usage_is_final = False
        return True

    def _count(self, text: object) -> None:
        """Count what was generated."""
        if text.__class__ is str:
            self.usage_is_final = False
            features = self.features
            features.events += 1
            features.text(text)

    def _see_response(self, event: Event, role: _Role) -> Sight:
        """An event about the response as a whole."""
        response = event.response or ResponseObject()
        self._note(response)
        if role is _Role.PREAMBLE:
            return Sight.PREAMBLE
        if self._outcome is None:
            self._outcome = self._meaning(event.type.removeprefix("response."), response)
        return Sight.TERMINAL

    def _fail(self, payload: bytes) -> Sight:
        value = read_object(payload)
        error = value.get("error") or {name: value.get(name) for name in ("code", "message", "param")}
        if isinstance(error, dict) and error.get("status") is None:
            error = {**error, "status": value.get("status")}
        self._problem = problem_from_error(error)
        if self._outcome is None:
            self._outcome = Outcome(End.FAILED, _word(error, self._problem), self._problem)
        return Sight.ERROR

    def _note(self, response: ResponseObject) -> None:
        """Keep what the response says of itself."""
        identity = self.identity
        if response.id:
            identity.id = response.id
        if response.created_at is not None:
            identity.created_at = response.created_at
        if response.model:
            identity.model = self.served_model = response.model
        if response.service_tier:
            self._tier = response.service_tier[:MOST_TIER]
        if response.tools:
            self._images_by = image_model(response.tools) or self._images_by
        if response.tool_usage is not None:
            self._tools = laid_over(response.tool_usage, self._tools)
        counts = response.usage
        if counts is not None:
            if counts.output_tokens is not None:
                self.usage_is_final = True
            self._counts = laid_over(counts, self._counts)

    def _count_call(self, kind: str | None) -> None:
        """Count an item that is a call of one of the provider's own tools."""
        if kind in CALLS:
            self._calls[kind] = self._calls.get(kind, 0) + 1

    def _meaning(self, status: str, response: ResponseObject) -> Outcome:
        match status:
            case "completed" if self._refused:
                return Outcome(End.INCOMPLETE, "refusal")
            case "incomplete":
                details = response.incomplete_details
                reason = details.get("reason") if isinstance(details, dict) else None
                return Outcome(End.INCOMPLETE, _plain(reason) or "incomplete")
            case "failed":
                problem = problem_from_error(response.error or {})
                return Outcome(End.FAILED, _word(response.error, problem), problem)
            case "cancelled":
                return Outcome(End.INCOMPLETE, "cancelled")
            case _:
                return Outcome(End.COMPLETED, _plain(status))

    def _count_item(self, item: Item) -> None:
        """Count what was generated of a whole item."""
        self._count_call(item.type)
        texts = [item.name, item.arguments, item.input]
        for part in (*(item.content or ()), *(item.summary or ())):
            texts += (part.text, part.refusal)
            if part.refusal:
                self._refused = True
        for text in texts:
            if text:
                self.features.text(text)


def error_of(body: bytes, status: int = 200) -> Problem | None:
    """The problem in a JSON body that is an error object and no Response, which owns a member of that name; or None.

    `status` is the reply's.
    """
    read = read_fault(body)
    if read is None or not read.error or read.object == "response":
        return None
    return problem_from_error(read.error, status)


def _type_of(name: bytes, payload: bytes) -> str:
    """The type of an event whose data names none: that of its `event:` line, else an error by its member."""
    named = name.strip().decode("latin-1")
    if named not in _ROLES and read_object(payload).get("error"):
        return "error"
    return named


def _word(error: object, problem: Problem) -> str:
    """Why it failed, in the upstream's own word where it has one."""
    if isinstance(error, dict):
        return _plain(error.get("code")) or _plain(error.get("type")) or problem.kind.value
    return problem.kind.value


def _plain(word: object) -> str:
    """A short word for the records; empty for what is none."""
    if not isinstance(word, str | int) or isinstance(word, bool):
        return ""
    return clean_text(word)[:_MOST_REASON]
