"""Reads usage in replies of the passthrough families: in one JSON body, or in the events of a stream.

Wire facts (openai-python 3.57.0, types/create_embedding_response.py, completion_usage.py, images_response.py,
image_gen_completed_event.py, audio/transcription.py, audio/transcription_text_done_event.py; Cohere and Jina rerank):
`usage` is a top-level member of the body or of one event, the last in streams; its counts are called prompt_tokens and
completion_tokens, or input_tokens and output_tokens, or total_tokens alone where nothing is generated. Beside it
`svg_usage` is what the model used that drew in SVG. Moderations, image variations and speech in bytes have none;
transcriptions may count seconds instead.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.model.outcome import End, Outcome
from headrace.model.problem import Problem
from headrace.model.usage import NOTHING, ExtraUsage, Usage
from headrace.model.wire import BodyEnd, Plain, Sight, WireProtocol
from headrace.protocols.features import Features
from headrace.protocols.lenient import read_leniently
from headrace.protocols.openai_fault import problem_from_error
from headrace.protocols.usage_form import MOST_MODEL, TOTAL, is_no_sum, laid_over, usage_of
from headrace.sse.event import parse

MOST_WORD = 200
"""Characters that are kept of the upstream's own words: they go into the entry, which is small."""
MOST_CHOICES = 16
_GENERATES_NOTHING = frozenset((WireProtocol.EMBEDDINGS, WireProtocol.MODERATIONS, WireProtocol.RERANK))


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    audio_tokens: int | None = None
    image_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Counts(msgspec.Struct, gc=False):
    """Every spelling of a usage object."""

    prompt_tokens: int | None = None
    input_tokens: int | None = None
    completion_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    input_tokens_details: _Details | None = None
    input_token_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None


class _Drawing(_Counts, gc=False):
    """`svg_usage`."""

    model: str | None = None
    reasoning_tokens: int | None = None


class _Choice(msgspec.Struct, gc=False):
    index: int | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Body(msgspec.Struct, gc=False):
    usage: _Counts | None = None
    svg_usage: _Drawing | None = None
    model: str | None = None
    error: Any = None
    choices: list[_Choice] | None = None


_decode = msgspec.json.Decoder(_Body).decode


class PassthroughObserver:
    """One attempt's response. Attributes are those of `protocols.interface.Observer`."""

    __slots__ = (
        "_counts", "_drawing", "_family", "_finishes", "_problem", "features", "saw_id", "served_model",
        "usage_is_final",
    )  # fmt: skip

    def __init__(self, family: WireProtocol) -> None:
        self._counts: _Counts | None = None
        self._drawing: _Drawing | None = None
        self.features = Features()
        self.served_model = ""
        self.saw_id = False
        self.usage_is_final = False
        self._family = family
        self._finishes: dict[int, str] = {}
        self._problem: Problem | None = None

    @property
    def usage(self) -> Usage:
        """Per field the last count that was no null."""
        return _usage_from(self._counts, self._drawing, self._family) if self._counts is not None else NOTHING

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """The finish reasons of completions, by index."""
        return tuple(reason for _, reason in sorted(self._finishes.items()))

    @property
    def finished(self) -> bool:
        """Never known: only the framing says when the end has come."""
        return False

    @property
    def problem(self) -> Problem | None:
        """What an error event said."""
        return self._problem

    def observe(self, event: bytes) -> Sight:
        """One whole event of a stream."""
        data = parse(event).data
        if data is None:
            return Sight.HEARTBEAT
        if data[:1] != b"{":
            return Sight.PROGRESS
        body = _read(data)
        if body is None:
            return Sight.PROGRESS
        self._see(body)
        if body.error:
            self._problem = problem_from_error(body.error)
            return Sight.ERROR
        return Sight.PROGRESS

    def observe_body(self, body: bytes) -> Outcome:
        """A whole JSON reply."""
        read = _read(body)
        if read is None:
            return Outcome(End.COMPLETED, "unreadable")
        self._see(read)
        return self.ended(BodyEnd.FRAMED)

    def plain_like(self, event: bytes) -> Plain | None:
        """Each family has another; none is common enough."""
        return None

    def observe_plain(self, events: Sequence[bytes]) -> bool:
        """Never asked."""
        return False

    def ended(self, how: BodyEnd) -> Outcome:
        """The end of the body is a good end, unless the upstream said before that it failed."""
        if self._problem is not None:
            return Outcome(End.FAILED, self._problem.kind.value, self._problem)
        return Outcome(End.COMPLETED, "end of body" if how is BodyEnd.FRAMED else "end of connection")

    def _see(self, body: _Body) -> None:
        if body.model:
            self.served_model = body.model[:MOST_WORD]
        for choice in (body.choices or ())[:MOST_CHOICES]:
            if choice.text:
                self.features.text(choice.text)
            if choice.finish_reason:
                self._finishes[choice.index or 0] = choice.finish_reason[:MOST_WORD]
        if body.svg_usage is not None:
            self._drawing = body.svg_usage
        if body.usage is not None:
            self._counts = laid_over(body.usage, self._counts)
            self.usage_is_final = True
        else:
            self.features.events += 1
            self.usage_is_final = False


def error_of(body: bytes) -> Problem | None:
    """The problem in a JSON body that is an error object, or None."""
    read = _read(body)
    return problem_from_error(read.error) if read is not None and read.error else None


def _usage_from(counts: _Counts, drawing: _Drawing | None, family: WireProtocol) -> Usage:
    """The gateway's form. Where the family generates nothing, a total alone is the input, and the output is 0; what
    makes images makes nothing else unless the details say so."""
    fields, flags = _fields(counts)
    if fields["output_total"] is None and family in _GENERATES_NOTHING:
        fields["output_total"] = 0
    if fields["input_total"] is None and counts.total_tokens is not None and fields["output_total"] is not None:
        fields["input_total"] = counts.total_tokens - fields["output_total"]
    if family is WireProtocol.IMAGES and counts.output_tokens_details is None:
        fields["image_output"] = fields["output_total"]
    if drawing is None:
        return usage_of(fields, flags)
    drawn, faults = _fields(drawing)
    drawn["reasoning"] = drawing.reasoning_tokens
    extra = ExtraUsage(kind="svg", model=(drawing.model or "")[:MOST_MODEL], usage=usage_of(drawn, faults))
    return usage_of(fields, flags, extra=(extra,))


def _fields(counts: _Counts) -> tuple[dict[str, int | None], list[str]]:
    """The counts by the names of a usage's fields, and what is wrong with them."""
    into = _known(counts.prompt_tokens, counts.input_tokens)
    out = _known(counts.completion_tokens, counts.output_tokens)
    of_input = counts.prompt_tokens_details or counts.input_tokens_details or counts.input_token_details or _Details()
    of_output = counts.completion_tokens_details or counts.output_tokens_details or _Details()
    fields = {
        "input_total": into,
        "cached_input": of_input.cached_tokens,
        "cache_write": of_input.cache_write_tokens,
        "audio_input": of_input.audio_tokens,
        "image_input": of_input.image_tokens,
        "output_total": out,
        "reasoning": of_output.reasoning_tokens,
        "audio_output": of_output.audio_tokens,
        "image_output": of_output.image_tokens,
    }
    return fields, [TOTAL] if is_no_sum(counts.total_tokens, into, out) else []


def _known(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _read(payload: bytes) -> _Body | None:
    try:
        return _decode(payload)
    except (msgspec.MsgspecError, RecursionError):
        return read_leniently(payload, _Body)
