"""Reads Anthropic Messages responses: one stream event by event, or one whole message.

    message_start → (content_block_start → content_block_delta* → content_block_stop)* → message_delta+ → message_stop
    `ping` and `error` anywhere; unknown events are relayed and nothing of them is read

Wire facts (anthropic-python 2.14.0 `_streaming.py`): SDKs go by the `event:` line and skip what
has none, an error too. Here the line decides, and `data.type` where there is no line or its name is unknown. Usage in
message_start is provisional; each message_delta holds running totals. An end without message_stop is a broken stream.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from headrace.model.outcome import End, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.usage import Usage
from headrace.model.wire import BodyEnd, Plain, Sight
from headrace.protocols.features import Features
from headrace.protocols.lenient import read_leniently
from headrace.protocols.messages_fault import problem_from_error
from headrace.protocols.messages_usage import Counts, fallback_model, usage_from
from headrace.protocols.plain import messages_texts
from headrace.protocols.usage_form import laid_over
from headrace.sse.event import parse

MOST_WORD = 200
"""Characters that are kept of the upstream's own words: they go into the entry, which is small."""

_INCOMPLETE = frozenset(("max_tokens", "model_context_window_exceeded", "refusal"))
_INTERRUPTED = Problem(
    Kind.UPSTREAM_INTERRUPTED, "The upstream's stream broke off before its end. Send the whole request again."
)
_DELTA_EVENT = b"event: content_block_delta\ndata: {"
_PLAIN = Plain(_DELTA_EVENT)
_DELTA_AT = len(_DELTA_EVENT) - 1
_NAMES = {
    name.encode(): name
    for name in (
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop", "ping", "error",
    )
}  # fmt: skip


class _Piece(msgspec.Struct, gc=False):
    """A delta of a block; only what counts as generated is read. `content` is a compaction's."""

    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    content: str | None = None


class _Delta(msgspec.Struct, gc=False):
    """A content_block_delta."""

    delta: _Piece | None = None


class _Other(msgspec.Struct, gc=False):
    """The model that goes on from here."""

    model: str | None = None


class _Block(msgspec.Struct, gc=False):
    """A content block: as it begins in a stream, or whole in a reply without streaming. `to` is a fallback's."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    name: str | None = None
    input: Any = None
    to: _Other | None = None


class _Stop(msgspec.Struct, gc=False):
    """The delta of a message_delta."""

    stop_reason: str | None = None


class _Message(msgspec.Struct, gc=False):
    model: str | None = None
    content: list[_Block] | None = None
    stop_reason: str | None = None
    usage: Counts | None = None


class _Event(msgspec.Struct, gc=False):
    """Every other event. What stands in an event of another type than these belong to is not looked at."""

    type: str | None = None
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Stop | None = None
    usage: Counts | None = None
    error: Any = None


_decode_delta = msgspec.json.Decoder(_Delta).decode
_decode = msgspec.json.Decoder(_Event).decode
_decode_message = msgspec.json.Decoder(_Message).decode


class MessagesObserver:
    """One attempt's response. Attributes are those of `protocols.interface.Observer`."""

    __slots__ = (
        "_counts", "_done", "_model", "_named", "_problem", "_stop_reason", "_unheard", "begun", "features", "saw_id",
        "served_model", "usage_is_final",
    )  # fmt: skip

    def __init__(self) -> None:
        self.features = Features()
        self.served_model = ""
        self.usage_is_final = False
        self.saw_id = False
        self.begun = False
        """Whether any event came that is no heartbeat."""
        self._counts = Counts()
        self._model = ""
        self._stop_reason: str | None = None
        self._done = False
        self._named = False
        self._problem: Problem | None = None
        self._unheard: Problem | None = None

    @property
    def usage(self) -> Usage:
        """Per field the last count that was no null; provisional until a message_delta has come."""
        return usage_from(self._counts, self._model)

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """The stop_reason, if there was one."""
        return (self._stop_reason,) if self._stop_reason is not None else ()

    @property
    def finished(self) -> bool:
        """Whether message_stop came: without it nothing may be cut off."""
        return self._done

    @property
    def problem(self) -> Problem | None:
        """What the upstream's error event said."""
        return self._problem

    def observe(self, event: bytes) -> Sight:
        """One whole event."""
        if event.startswith(_DELTA_EVENT):
            # Nearly every event, as Anthropic spells it. Whatever else the block has makes this fail, and is then
            # taken apart.
            try:
                piece = _decode_delta(event[_DELTA_AT:]).delta
            except (msgspec.MsgspecError, RecursionError):
                piece = None
            if piece is not None:
                text = piece.text
                if text:
                    features = self.features
                    features.events += 1
                    features.text(text)
                    self.usage_is_final = False
                else:
                    self._count(piece)
                self.begun = self._named = True
                return Sight.PROGRESS
        return self._take_apart(event)

    def plain_like(self, event: bytes) -> Plain | None:
        """A piece of a content block, whatever is in it."""
        return _PLAIN

    def observe_plain(self, events: Sequence[bytes]) -> bool:
        """Pieces of text."""
        texts = messages_texts(events, _DELTA_AT)
        if texts is None:
            return False
        self.begun = self._named = True
        self.usage_is_final = False
        self.features.run(texts)
        return True

    def ended(self, how: BodyEnd) -> Outcome:
        """What the end of the body means: good behind message_stop only."""
        if self._problem is not None:
            return Outcome(End.FAILED, self._problem.kind.value, self._problem)
        if self._done:
            return self._good_end()
        words = "was cut" if how is BodyEnd.CUT else "ended"
        if self._unheard is not None:
            detail = f"an error event without a name: {self._unheard.detail}"
            return Outcome(End.INTERRUPTED, f"upstream {words}", replace(_INTERRUPTED, detail=detail))
        return Outcome(End.INTERRUPTED, f"upstream {words}", _INTERRUPTED)

    def observe_body(self, body: bytes) -> Outcome:
        """A whole message, or a count of tokens, which uses none."""
        try:
            message: _Message | None = _decode_message(body)
        except (msgspec.MsgspecError, RecursionError):
            message = read_leniently(body, _Message)
        if message is None:
            return Outcome(End.COMPLETED, "unreadable")
        self._note(message)
        self.usage_is_final = message.usage is not None and message.usage.output_tokens is not None
        self._done = True
        return self._good_end()

    def _good_end(self) -> Outcome:
        reason = self._stop_reason or ""
        return Outcome(End.INCOMPLETE if reason in _INCOMPLETE else End.COMPLETED, reason)

    # ---- one event, in any spelling

    def _take_apart(self, event: bytes) -> Sight:
        parsed = parse(event)
        if parsed.has_id:
            self.saw_id = True
        if parsed.data is None:
            # A block without data dispatches nothing, whatever other fields it has.
            return Sight.HEARTBEAT if parsed.has_field else Sight.COMMENT
        name = _NAMES.get(parsed.name, "")
        if name == "ping":
            return Sight.HEARTBEAT
        data = parsed.data
        if name == "content_block_delta":
            return self._see_delta(data, named=True)
        seen = _read(data)
        if seen is None:
            return self._unreadable(name, data)
        kind = name or seen.type or ""
        if kind == "ping":
            return Sight.HEARTBEAT
        if kind == "content_block_delta":
            return self._see_delta(data, named=False)
        if kind == "error" or (not kind and seen.error):
            return self._see_error(seen.error, heard=bool(name))
        self.begun = True
        self._named = self._named or bool(name)
        return self._see(kind, seen)

    def _unreadable(self, name: str, data: bytes) -> Sight:
        """A payload that is no JSON. SDKs raise all the same on an event that is called error."""
        if name == "error":
            return self._see_error(data.decode("utf-8", "replace"), heard=True)
        if data.startswith(b"[DONE]"):
            self.begun = True
            return Sight.PROGRESS
        return Sight.HEARTBEAT

    def _see(self, kind: str, seen: _Event) -> Sight:
        match kind:
            case "message_start":
                message = seen.message or _Message()
                self._note(message)
                return Sight.PROGRESS if message.content else Sight.PREAMBLE
            case "content_block_start":
                return Sight.PROGRESS if self._count_block(seen.content_block or _Block()) else Sight.PREAMBLE
            case "message_delta":
                self._see_stop(seen)
            case "message_stop":
                self._done = True
                return Sight.TERMINAL
        return Sight.PROGRESS

    def _see_delta(self, data: bytes, named: bool) -> Sight:
        try:
            seen: _Delta | None = _decode_delta(data)
        except (msgspec.MsgspecError, RecursionError):
            seen = read_leniently(data, _Delta)
        if seen is None:
            return Sight.HEARTBEAT
        self.begun = True
        self._named = self._named or named
        self._count(seen.delta or _Piece())
        return Sight.PROGRESS

    def _see_stop(self, seen: _Event) -> None:
        if seen.delta is not None and seen.delta.stop_reason is not None:
            self._stop_reason = seen.delta.stop_reason[:MOST_WORD]
        if seen.usage is not None:
            if seen.usage.output_tokens is not None:
                self.usage_is_final = True
            self._overlay(seen.usage)

    def _see_error(self, error: object, heard: bool) -> Sight:
        """An error. One without its name among events that have theirs is skipped by SDKs, so it ends nothing: what
        follows, or the end of the body, decides."""
        problem = problem_from_error(error)
        if not heard and self._named:
            self._unheard = problem
            return Sight.PROGRESS
        self.begun = True
        self._problem = problem
        return Sight.ERROR

    # ---- what is kept

    def _note(self, message: _Message) -> None:
        if message.model:
            self._model = self.served_model = message.model[:MOST_WORD]
        if message.stop_reason is not None:
            self._stop_reason = message.stop_reason[:MOST_WORD]
        for block in message.content or ():
            self._count_block(block)
        if message.usage is not None:
            self._overlay(message.usage)

    def _overlay(self, usage: Counts) -> None:
        self._counts = laid_over(usage, self._counts)
        if served := fallback_model(usage.iterations):
            self.served_model = served[:MOST_WORD]

    def _count(self, piece: _Piece) -> None:
        for text in (piece.text, piece.thinking, piece.partial_json, piece.content):
            if text:
                self.features.events += 1
                self.features.text(text)
                self.usage_is_final = False

    def _count_block(self, block: _Block) -> bool:
        """Count what a block holds already; whether it is more than the empty beginning of a text. A fallback's names
        the model that goes on, long before the counts do."""
        if block.to is not None and block.to.model:
            self.served_model = block.to.model[:MOST_WORD]
        texts = [block.text, block.thinking, block.name]
        if block.input:
            texts.append(json.dumps(block.input, ensure_ascii=False))
        for text in texts:
            if text:
                self.features.text(text)
        output = any(texts) or block.type not in ("text", "thinking", None)
        if output:
            self.features.events += 1
            self.usage_is_final = False
        return output


def _read(data: bytes) -> _Event | None:
    try:
        return _decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return read_leniently(data, _Event)
