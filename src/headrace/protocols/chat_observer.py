"""Reads Chat Completions responses: one stream event by event, or one whole completion.

Wire facts (OpenAI's published types): a chunk has `choices[].delta`, `choices[].finish_reason` per choice, and usage
either null or an object; usage is recognised by being non-null, never by empty choices (a moderation chunk has none
either). The stream's own end is `data: [DONE]`; it is good when every choice that began has a finish_reason.
"""

import json
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from headrace.model.outcome import End, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.usage import Usage
from headrace.model.wire import BodyEnd, Plain, Sight
from headrace.protocols.chat_usage import Counts, InputDetails, OutputDetails, usage_from
from headrace.protocols.features import Features
from headrace.protocols.lenient import as_kind, whole, word
from headrace.protocols.openai_fault import problem_from_error
from headrace.protocols.plain import chat_texts
from headrace.protocols.usage_form import MOST_TIER
from headrace.sse.event import parse

MOST_WORD = 200
"""Characters that are kept of the upstream's own words: they go into the entry, which is small."""
_PLAIN = Plain(b"data: {", b'"finish_reason":null', b'"error"')
_INCOMPLETE = frozenset(("length", "content_filter"))
_INTERRUPTED = Problem(
    Kind.UPSTREAM_INTERRUPTED, "The upstream's stream broke off before its end. Send the whole request again."
)


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct, gc=False):
    function: _Function | None = None
    custom: Any = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None
    audio: Any = None


class _Choice(msgspec.Struct, gc=False):
    index: int = 0
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: Counts | None = None
    error: Any = None
    model: str | None = None
    service_tier: str | None = None


D = TypeVar("D", InputDetails, OutputDetails)
_decode = msgspec.json.Decoder(_Chunk).decode


class ChatObserver:
    """One attempt's response. Attributes are those of `protocols.interface.Observer`."""

    __slots__ = (
        "_added_usage", "_counts", "_done", "_finishes", "_problem", "_refused", "_tier", "features", "saw_id",
        "served_model", "usage_is_final",
    )  # fmt: skip

    def __init__(self, added_usage: bool) -> None:
        self._counts: Counts | None = None
        self._tier = ""
        self.features = Features()
        self.served_model = ""
        self.usage_is_final = False
        self.saw_id = False
        self._added_usage = added_usage
        self._done = False
        self._refused = False
        self._finishes: dict[int, str | None] = {}
        self._problem: Problem | None = None

    @property
    def usage(self) -> Usage:
        """Per field the last count that was no null; made when it is asked for, since some upstreams report with every
        chunk. The tier is told of a stream without counts too, so that an estimate is priced by it."""
        return Usage(tier=self._tier) if self._counts is None else usage_from(self._counts, self._tier)

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """The finish reasons by choice index; empty text for a choice that has none."""
        return tuple(reason or "" for _, reason in sorted(self._finishes.items()))

    @property
    def finished(self) -> bool:
        """Whether every choice that began has a finish_reason, or `[DONE]` came."""
        return self._done or (bool(self._finishes) and None not in self._finishes.values())

    @property
    def problem(self) -> Problem | None:
        """What the upstream's error event said."""
        return self._problem

    def observe(self, event: bytes) -> Sight:
        """One whole event."""
        if event[:7] == b"data: {":
            # One data line, as OpenAI sends it. Whatever else the block has makes this fail, and is then taken apart.
            try:
                chunk: _Chunk | None = _decode(event[6:-2])
            except (msgspec.MsgspecError, RecursionError):
                chunk = None
            if chunk is not None:
                return Sight.PROGRESS if self._is_plain_text(chunk) else self._see(chunk)
        parsed = parse(event)
        if parsed.has_id:
            self.saw_id = True
        if parsed.data is None:
            # A block without data dispatches nothing, whatever other fields it has.
            return Sight.HEARTBEAT if parsed.has_field else Sight.COMMENT
        if parsed.data.startswith(b"[DONE]"):
            self._done = True
            return Sight.TERMINAL
        try:
            chunk = _decode(parsed.data)
        except (msgspec.MsgspecError, RecursionError):
            chunk = _read_leniently(parsed.data)
        return self._see(chunk) if chunk is not None else Sight.HEARTBEAT

    def plain_like(self, event: bytes) -> Plain | None:
        """A chunk whose choice is open, and that is no error: it generates something or begins a choice."""
        return _PLAIN

    def observe_plain(self, events: Sequence[bytes]) -> bool:
        """Chunks with content of the one choice that has begun."""
        texts = chat_texts(events) if self.served_model and self._finishes.get(0, "") is None else None
        if texts is None:
            return False
        self.usage_is_final = False
        self.features.run(texts)
        return True

    def ended(self, how: BodyEnd) -> Outcome:
        """What the end of the body means: good behind `[DONE]` or once all choices are finished; a cut in the tail
        loses nothing."""
        if self._problem is not None:
            return Outcome(End.FAILED, self._problem.kind.value, self._problem)
        if not self.finished:
            how_text = "ended" if how is not BodyEnd.CUT else "was cut"
            return Outcome(End.INTERRUPTED, f"upstream {how_text}", _INTERRUPTED)
        if not self._finishes:
            return Outcome(End.INCOMPLETE, "no_finish_reason")
        reasons = [reason for reason in self.finish_reasons if reason]
        for reason in reasons:
            if reason in _INCOMPLETE:
                return Outcome(End.INCOMPLETE, reason)
        if self._refused:
            return Outcome(End.INCOMPLETE, "refusal")
        if len(reasons) < len(self._finishes):
            return Outcome(End.INCOMPLETE, "no_finish_reason")
        return Outcome(End.COMPLETED, reasons[0])

    def observe_body(self, body: bytes) -> Outcome:
        """A whole chat.completion."""
        chunk = _read(body)
        if chunk is None:
            return Outcome(End.COMPLETED, "unreadable")
        self._note(chunk)
        for choice in chunk.choices or ():
            self._finishes[choice.index] = choice.finish_reason[:MOST_WORD] if choice.finish_reason else None
            if choice.message is not None:
                self._count(choice.message)
        self._done = True
        if not self._finishes:
            return Outcome(End.COMPLETED, "")
        return self.ended(BodyEnd.FRAMED)

    def _see(self, chunk: _Chunk) -> Sight:
        choices = chunk.choices
        output, finish = self._choices(choices) if choices else (False, False)
        if output:
            self.usage_is_final = False
        # Per field the last non-null value counts; nothing is summed over chunks.
        if chunk.usage is not None or finish or not self.served_model:
            self._note(chunk)
        if chunk.error and not output:
            self._problem = problem_from_error(chunk.error)
            return Sight.ERROR
        if (finish or output) and self.finished:
            # Also output behind the finish_reason: the tail begins anew, so that what still comes is not cut off.
            return Sight.FINISHED
        return Sight.PROGRESS if output or finish else self._quiet(chunk)

    def _is_plain_text(self, chunk: _Chunk) -> bool:
        """Count the commonest chunk of all, some content of the one choice that has begun: half of the general reading,
        in one call for 0.4 µs less."""
        choices = chunk.choices
        if choices is None or len(choices) != 1 or chunk.usage is not None or chunk.error is not None:
            return False
        choice = choices[0]
        delta = choice.delta
        if delta is None or choice.finish_reason is not None or self._finishes.get(choice.index, "") is not None:
            return False
        text = delta.content
        if not text or not self.served_model or delta.tool_calls or delta.function_call is not None:
            return False
        if delta.reasoning_content or delta.reasoning or delta.refusal:
            return False
        self.usage_is_final = False
        features = self.features
        features.events += 1
        features.text(text)
        return True

    def _choices(self, choices: list[_Choice]) -> tuple[bool, bool]:
        """(whether anything was generated, whether a choice finished)."""
        output = finish = False
        finishes = self._finishes
        for choice in choices:
            if choice.finish_reason:
                finishes[choice.index] = choice.finish_reason[:MOST_WORD]
                finish = True
            elif choice.index not in finishes:
                finishes[choice.index] = None
            if choice.delta is not None and self._count(choice.delta):
                output = True
        return output, finish

    def _quiet(self, chunk: _Chunk) -> Sight:
        if chunk.usage is not None and not chunk.choices:
            if self._added_usage:
                self._added_usage = False
                return Sight.ADDED_USAGE
            return Sight.PROGRESS
        return Sight.PREAMBLE if chunk.choices else Sight.PROGRESS

    def _note(self, chunk: _Chunk) -> None:
        if chunk.model:
            self.served_model = chunk.model[:MOST_WORD]
        if chunk.service_tier:
            self._tier = chunk.service_tier[:MOST_TIER]
        counts = chunk.usage
        if counts is not None:
            if counts.completion_tokens is not None:
                self.usage_is_final = True
            if self._counts is not None:
                counts.underlay(self._counts)
            self._counts = counts

    def _count(self, delta: _Delta) -> bool:
        """Count what was generated; whether there was anything."""
        features = self.features
        seen = False
        for text in (delta.content, delta.reasoning_content, delta.reasoning, delta.refusal):
            if text:
                features.text(text)
                seen = True
        if delta.refusal:
            self._refused = True
        if delta.tool_calls:
            seen = True
            for call in delta.tool_calls:
                self._count_function(call.function)
        if delta.function_call is not None:
            seen = True
            self._count_function(delta.function_call)
        if seen or delta.audio is not None:
            features.events += 1
            return True
        return False

    def _count_function(self, function: _Function | None) -> None:
        if function is None:
            return
        for text in (function.name, function.arguments):
            if text:
                self.features.text(text)


def error_of(body: bytes, status: int = 200) -> Problem | None:
    """The problem in a JSON body that is an error object instead of a completion, or None; `status` is the reply's."""
    chunk = _read(body)
    if chunk is None or not chunk.error or chunk.choices:
        return None
    return problem_from_error(chunk.error, status)


def _read(body: bytes) -> _Chunk | None:
    try:
        return _decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return _read_leniently(body)


def _read_leniently(payload: bytes) -> _Chunk | None:
    """A second reading: the standard library takes lone surrogates, and members of odd types are left out one by one.

    None where the payload is no JSON at all. JSON that is no object reads as an empty chunk.
    """
    try:
        value = json.loads(payload.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    chunk = _Chunk()
    if not isinstance(value, dict):
        return chunk
    chunk.error = value.get("error")
    chunk.model = word(value.get("model"))
    chunk.service_tier = word(value.get("service_tier"))
    chunk.usage = _lenient_usage(value.get("usage"))
    choices = value.get("choices")
    if isinstance(choices, list):
        chunk.choices = [_lenient_choice(choice) for choice in choices if isinstance(choice, dict)]
    return chunk


def _lenient_choice(value: dict[str, Any]) -> _Choice:
    index = value.get("index")
    return _Choice(
        index=index if isinstance(index, int) else 0,
        delta=_lenient_delta(value.get("delta")),
        message=_lenient_delta(value.get("message")),
        finish_reason=word(value.get("finish_reason")),
    )


def _lenient_delta(value: object) -> _Delta | None:
    if not isinstance(value, dict):
        return None
    delta = _Delta(audio=value.get("audio"))
    delta.content = as_kind(value.get("content"), str)
    delta.refusal = as_kind(value.get("refusal"), str)
    delta.reasoning_content = as_kind(value.get("reasoning_content"), str)
    delta.reasoning = as_kind(value.get("reasoning"), str)
    delta.tool_calls = as_kind(value.get("tool_calls"), list[_ToolCall])
    delta.function_call = as_kind(value.get("function_call"), _Function)
    return delta


def _lenient_usage(value: object) -> Counts | None:
    if not isinstance(value, dict):
        return None
    into, out = value.get("prompt_tokens_details"), value.get("completion_tokens_details")
    return Counts(
        whole(value.get("prompt_tokens")),
        whole(value.get("completion_tokens")),
        whole(value.get("total_tokens")),
        _lenient_details(into, InputDetails) if isinstance(into, dict) else None,
        _lenient_details(out, OutputDetails) if isinstance(out, dict) else None,
    )


def _lenient_details(value: dict[str, Any], kind: type[D]) -> D:
    return kind(**{name: whole(value.get(name)) for name in kind.__struct_fields__})


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
