"""Reads Gemini responses: one stream event by event or element by element, or one whole reply.

    chunk (candidates and parts, perhaps a finishReason, perhaps usage)*  →  end of the body

Wire facts (google-genai 3.6.1): a stream has no terminal event, so that STOP in every chunk ends
nothing. finishReason may never come, since proto3 leaves out what is not set. CONTINUATION ends a hop, not the answer.
A blocked prompt has a blockReason and no candidates, and that is a normal end. An array ends with its bracket.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.model.outcome import End, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.usage import Usage
from headrace.model.wire import BodyEnd, Plain, Sight
from headrace.protocols.features import Features
from headrace.protocols.gemini_fault import problem_from_error
from headrace.protocols.gemini_usage import Counts, usage_from
from headrace.protocols.lenient import read_leniently
from headrace.sse.event import Event, parse

MOST_WORD = 200
"""Characters that are kept of the upstream's own words: they go into the entry, which is small."""
_MOST_CANDIDATES = 128
_CONTINUATION = "CONTINUATION"
_GOOD = frozenset(("STOP", _CONTINUATION))
_UNSET = frozenset(("", "FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"))
_INTERRUPTED = Problem(
    Kind.UPSTREAM_INTERRUPTED, "The upstream's stream broke off before its end. Send the whole request again."
)
_NO_RAW = msgspec.Raw(b"")


class _Function(msgspec.Struct, rename="camel", gc=False):
    name: str | None = None
    args: msgspec.Raw = _NO_RAW
    partial_args: msgspec.Raw = _NO_RAW


class _Code(msgspec.Struct, rename="camel", gc=False):
    """Code that the model wrote, or what it said when it ran."""

    code: str | None = None
    output: str | None = None


class _Part(msgspec.Struct, rename="camel", gc=False):
    """A piece of an answer; media, signatures and whatever else there is stay unread."""

    text: str | None = None
    function_call: _Function | None = None
    executable_code: _Code | None = None
    code_execution_result: _Code | None = None


class _Content(msgspec.Struct, gc=False):
    parts: list[_Part] | None = None


class _Grounding(msgspec.Struct, rename="camel", gc=False):
    """What an answer rests on; empty where nothing was searched."""

    web_search_queries: list[Any] | None = None
    grounding_chunks: list[Any] | None = None


class _Candidate(msgspec.Struct, rename="camel", gc=False):
    index: int | None = None
    content: _Content | None = None
    finish_reason: str | None = None
    grounding_metadata: _Grounding | None = None


class _Feedback(msgspec.Struct, rename="camel", gc=False):
    block_reason: str | None = None


class _Chunk(msgspec.Struct, rename="camel", gc=False):
    candidates: list[_Candidate] | None = None
    usage_metadata: Counts | None = None
    prompt_feedback: _Feedback | None = None
    model_version: str | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode
_decode_many = msgspec.json.Decoder(list[_Chunk]).decode


_PLAIN = Plain(b"data: {", lacks=b'"error"')


class GeminiObserver:
    """One attempt's response. Attributes are those of `protocols.interface.Observer`.

    `array`: the stream is one JSON array. `generates`: the operation is one that answers with candidates.
    """

    __slots__ = (
        "_blocked", "_closed", "_counts", "_finishes", "_generates", "_is_grounded", "_problem", "_torn", "array",
        "features", "saw_id", "served_model", "usage_is_final",
    )  # fmt: skip

    def __init__(self, array: bool = False, generates: bool = True) -> None:
        self.features = Features()
        self.served_model = ""
        self.usage_is_final = False
        self.saw_id = False
        self.array = array
        self._generates = generates
        self._counts: Counts | None = None
        self._finishes: dict[int, str] = {}
        self._blocked = ""
        self._problem: Problem | None = None
        self._torn = False
        self._closed = False
        self._is_grounded = False

    @property
    def usage(self) -> Usage:
        """The last running total, field by field; made when it is asked for, since every chunk brings one."""
        if self._counts is None:
            return usage_from(Counts(), grounded=self._is_grounded)
        silent = self._is_blocked or not self._generates
        return usage_from(self._counts, silent=silent, grounded=self._is_grounded)

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """The finishReasons by candidate, empty text for one that has none; a blocked prompt's blockReason."""
        if self._is_blocked:
            return (self._blocked,)
        return tuple(reason for _, reason in sorted(self._finishes.items()))

    @property
    def finished(self) -> bool:
        """Whether every candidate that began has a terminal finishReason, and usage has come after the last output."""
        reasons = self._finishes.values()
        over = self._is_blocked or (bool(reasons) and "" not in reasons and _CONTINUATION not in reasons)
        return over and self.usage_is_final

    @property
    def problem(self) -> Problem | None:
        """What the upstream's error said."""
        return self._problem

    @property
    def _is_blocked(self) -> bool:
        return bool(self._blocked) and not self._finishes

    def observe(self, event: bytes) -> Sight:
        """One whole event; of an array one element with what stands around it."""
        if self.array:
            return self._observe_element(event)
        if event[:7] == b"data: {":
            # One data line, as Google sends it. Whatever else the block has makes this fail, and is then taken apart.
            try:
                return self._see(_decode(event[6:]))
            except (msgspec.MsgspecError, RecursionError):
                pass
        parsed = parse(event)
        if parsed.has_id:
            self.saw_id = True
        if parsed.data is None:
            return self._without_data(event, parsed)
        chunk = _read(parsed.data)
        if chunk is None:
            self._torn = parsed.data.lstrip().startswith((b"{", b"["))
            return Sight.HEARTBEAT
        return self._see(chunk)

    def plain_like(self, event: bytes) -> Plain | None:
        """A chunk that is no error; no other ends a stream by itself."""
        return None if self.array else _PLAIN

    def observe_plain(self, events: Sequence[bytes]) -> bool:
        """Chunks of one data line each."""
        try:
            chunks = [_decode(event[6:]) for event in events]
        except (msgspec.MsgspecError, RecursionError):
            return False
        for chunk in chunks:
            self._see(chunk)
        return True

    def ended(self, how: BodyEnd) -> Outcome:
        """What the end of the body means: framed, it is good, unless it tore a chunk apart; closed, behind a
        finishReason; cut, once nothing is missing."""
        if self._problem is not None:
            return Outcome(End.FAILED, self._problem.kind.value, self._problem)
        if self.array:
            good = self._closed
        elif self.finished:
            good = True
        elif how is BodyEnd.CLOSED:
            good = any(self._finishes.values()) or self._is_blocked
        else:
            good = how is BodyEnd.FRAMED and not self._torn
        if good:
            return self._good_end()
        return Outcome(
            End.INTERRUPTED, "upstream was cut" if how is BodyEnd.CUT or self._torn else "upstream ended", _INTERRUPTED
        )

    def observe_body(self, body: bytes) -> Outcome:
        """A whole reply: an answer, a count of tokens, embeddings; or a stream's array where events were asked for."""
        chunks = _read_whole(body)
        if chunks is None:
            return Outcome(End.COMPLETED, "unreadable")
        for chunk in chunks:
            self._see(chunk)
        if self._problem is not None:
            return Outcome(End.FAILED, self._problem.kind.value, self._problem)
        return self._good_end() if self._generates else Outcome(End.COMPLETED, "")

    def _good_end(self) -> Outcome:
        reasons = [reason for reason in self.finish_reasons if reason]
        for reason in reasons:
            if reason not in _GOOD:
                return Outcome(End.INCOMPLETE, reason)
        return Outcome(End.COMPLETED, reasons[0] if reasons else "none")

    # ---- one event in another form

    def _without_data(self, event: bytes, parsed: Event) -> Sight:
        """A block that dispatches nothing. Some servers write an error as bare JSON, and SDKs raise on it; blank lines
        are a heartbeat that every SDK stands, comments are not."""
        if not parsed.has_field:
            return Sight.COMMENT if event.strip(b"\r\n") else Sight.HEARTBEAT
        bare = event.strip()
        if bare.startswith((b"{", b"[")):
            chunks = _read_whole(bare)
            if chunks and chunks[0].error:
                return self._see(chunks[0])
        return Sight.HEARTBEAT

    def _observe_element(self, piece: bytes) -> Sight:
        """Brackets, commas and white space stand around an element; without one they are the end or a heartbeat."""
        start = piece.find(b"{")
        if start < 0:
            self._closed = self._closed or piece.lstrip().startswith(b"]")
            return Sight.TERMINAL if piece.lstrip().startswith(b"]") else Sight.HEARTBEAT
        chunk = _read(piece[start:])
        return self._see(chunk) if chunk is not None else Sight.HEARTBEAT

    # ---- one chunk

    def _see(self, chunk: _Chunk) -> Sight:
        self._torn = False
        output = finish = False
        if chunk.candidates:
            output, finish = self._see_candidates(chunk.candidates)
        if chunk.error and not output:
            self._problem = problem_from_error(chunk.error)
            return Sight.ERROR
        if chunk.model_version and not self.served_model:
            self.served_model = chunk.model_version[:MOST_WORD]
        if chunk.prompt_feedback is not None:
            reason = chunk.prompt_feedback.block_reason or ""
            if reason not in _UNSET:
                self._blocked = reason[:MOST_WORD]
                finish = True
        if output:
            self.usage_is_final = False
        if chunk.usage_metadata is not None:
            self._see_usage(chunk.usage_metadata)
        return Sight.PROGRESS if output or finish else Sight.PREAMBLE

    def _see_usage(self, counts: Counts) -> None:
        """A running total is final as long as it says what the output so far was."""
        self.usage_is_final = counts.has_output or self.usage_is_final or not self.features.events
        if self._counts is not None:
            counts.underlay(self._counts)
        self._counts = counts

    def _see_candidates(self, candidates: list[_Candidate]) -> tuple[bool, bool]:
        """(whether anything was generated, whether a candidate finished)."""
        output = finish = False
        for candidate in candidates:
            index = candidate.index or 0
            reason = candidate.finish_reason
            if reason and reason not in _UNSET:
                self._finishes[index] = reason[:MOST_WORD]
                finish = True
            elif index not in self._finishes and len(self._finishes) < _MOST_CANDIDATES:
                self._finishes[index] = ""
            grounding = candidate.grounding_metadata
            if grounding is not None and (grounding.web_search_queries or grounding.grounding_chunks):
                self._is_grounded = True
            content = candidate.content
            if content is not None and content.parts:
                output = True
                for part in content.parts:
                    self._count(part)
        if output:
            self.features.events += 1
        return output, finish

    def _count(self, part: _Part) -> None:
        """Count what was generated."""
        features = self.features
        if part.text:
            features.text(part.text)
        call = part.function_call
        if call is not None:
            features.text(call.name or "")
            for raw in (call.args, call.partial_args):
                features.text(bytes(raw).decode("utf-8", "replace"))
        for code in (part.executable_code, part.code_execution_result):
            if code is not None:
                features.text(code.code or "")
                features.text(code.output or "")


def _read(data: bytes) -> _Chunk | None:
    try:
        return _decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return read_leniently(data, _Chunk)


def _read_whole(body: bytes) -> list[_Chunk] | None:
    """A reply's chunks: one, or those of an array."""
    if body.lstrip().startswith(b"["):
        try:
            return _decode_many(body)
        except (msgspec.MsgspecError, RecursionError):
            pass
    chunk = _read(body)
    return None if chunk is None else [chunk]
