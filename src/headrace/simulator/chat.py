"""OpenAI Chat Completions: reads a request, and spells an answer as chunks or as one object.

Order on the wire: role chunks, deltas (choices take turns), a finish chunk per choice, usage chunk, `[DONE]`.
"""

import random
import string
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from headrace.simulator.answer import Answer, Asked, Choice, Piece, PieceKind, tokens_from_bytes
from headrace.simulator.chat_objects import (
    Call,
    Chunk,
    ChunkChoice,
    Completion,
    CompletionChoice,
    Delta,
    Function,
    Message,
    ToolDelta,
    UsageField,
    usage_object,
)
from headrace.simulator.composition import openai_headers
from headrace.simulator.errors import error_json
from headrace.simulator.request import RequestError, body_as, text_of
from headrace.simulator.scenario import ErrorSpec, ReasoningField, RoleStyle, Scenario, UsageStyle
from headrace.simulator.spelling import Event, data_event

PATH = "/chat/completions"
ENDS_IN_DONE = True
_PADDING = string.ascii_letters + string.digits
_NO_EXTRA_CHUNK = (UsageStyle.NONE, UsageStyle.EVERY, UsageStyle.FINISH)
_encode = msgspec.json.Encoder().encode


class _Turn(msgspec.Struct):
    role: str = ""
    content: Any = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class _Request(msgspec.Struct):
    model: str = ""
    messages: list[_Turn] = []
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: int | None = None


def read_request(body: bytes) -> Asked:
    """What a POST …/chat/completions asks for; raises RequestError."""
    request = body_as(_Request, body)
    if not request.model:
        raise RequestError("you must provide a model parameter")
    n = 1 if request.n is None else request.n
    if not 1 <= n <= 128:
        raise RequestError("Invalid 'n': integer out of range. Expected a value from 1 to 128.", "n")
    options = request.stream_options or _StreamOptions()
    texts = [(turn.role, text_of(turn.content)) for turn in request.messages]
    return Asked(
        model=request.model,
        stream=bool(request.stream),
        include_usage=bool(options.include_usage),
        include_obfuscation=options.include_obfuscation is not False,
        n=n,
        input=next((text for role, text in reversed(texts) if role == "user"), ""),
        prompt_tokens=tokens_from_bytes(sum(len(text.encode()) for _, text in texts)),
    )


def id_from(letters: str) -> str:
    return f"chatcmpl-{letters}"


def events(answer: Answer, scenario: Scenario) -> Iterator[Event]:
    """The generated events of a stream, `[DONE]` not included."""
    return _Stream(answer, scenario).events()


def done_event(payload: str, tokens: int) -> Event:
    return data_event(payload.encode(), tokens)


def error_event(status: int, spec: ErrorSpec, tokens: int, position: int) -> Event:
    """OpenAI's error in a stream: a data line without event line."""
    return data_event(error_json(status, spec), tokens)


error_body = error_json
own_headers = openai_headers


def whole(answer: Answer, scenario: Scenario) -> bytes:
    """The `chat.completion` object of a reply without streaming."""
    usage = scenario.content.usage
    style = usage.style
    counted: UsageField = UNSET if style is UsageStyle.NONE else usage_object(answer.counts, usage)
    if style is UsageStyle.ZERO:
        counted = usage_object(None, usage)
    choices = [_whole_choice(choice, scenario) for choice in answer.choices]
    made = Completion(id=answer.id, created=answer.created, model=answer.model, choices=choices, usage=counted)
    return _encode(made)


def _whole_choice(choice: Choice, scenario: Scenario) -> CompletionChoice:
    calls = [Call(id=call.id, function=Function(call.name, call.arguments.text)) for call in choice.calls]
    message = Message(
        content=choice.text.text if choice.speaks else None,
        refusal=choice.refusal.text or None,
        tool_calls=calls or UNSET,
    )
    if choice.reasoning.pieces:
        setattr(message, scenario.spelling.reasoning_field.value, choice.reasoning.text)
    return CompletionChoice(choice.index, message, None, choice.finish_reason)


class _Stream:
    """One answer being spelled; `_said` counts the UTF-8 bytes said so far, from which tokens follow."""

    def __init__(self, answer: Answer, scenario: Scenario) -> None:
        self._answer = answer
        self._usage = scenario.content.usage
        self._role = scenario.spelling.role
        self._reasoning = scenario.spelling.reasoning_field
        self._padded = scenario.spelling.obfuscation and answer.asked.include_obfuscation
        self._said = 0
        style = self._usage.style
        shows_null = answer.asked.include_usage and style not in _NO_EXTRA_CHUNK
        self._idle_usage: UsageField = None if shows_null else UNSET

    def events(self) -> Iterator[Event]:
        if self._role is RoleStyle.FIRST:
            for choice in self._answer.choices:
                content = "" if choice.speaks else None
                yield self._delta(choice.index, Delta(role="assistant", content=content, refusal=None))
        yield from self._turns()
        yield from self._usage_events()

    def _turns(self) -> Iterator[Event]:
        """The choices' deltas in turn; each choice ends with its finish chunk."""
        open_ = [(choice, choice.pieces()) for choice in self._answer.choices]
        fresh = {choice.index for choice, _ in open_} if self._role is RoleStyle.JOINED else set()
        while open_:
            for entry in tuple(open_):
                choice, pieces = entry
                piece = next(pieces, None)
                if piece is None:
                    open_.remove(entry)
                    yield self._finish(choice, last=not open_)
                    continue
                delta = self._delta_from_piece(choice, piece)
                if choice.index in fresh:
                    fresh.discard(choice.index)
                    delta.role = "assistant"
                yield self._delta(choice.index, delta)

    def _delta_from_piece(self, choice: Choice, piece: Piece) -> Delta:
        self._said += len(piece.text.encode())
        match piece.kind:
            case PieceKind.TEXT:
                return Delta(content=piece.text)
            case PieceKind.REASONING:
                if self._reasoning is ReasoningField.REASONING:
                    return Delta(reasoning=piece.text)
                return Delta(reasoning_content=piece.text)
            case PieceKind.REFUSAL:
                return Delta(refusal=piece.text)
            case PieceKind.TOOL_START:
                call = choice.calls[piece.tool]
                self._said += len(call.name.encode())
                start = ToolDelta(piece.tool, call.id, "function", Function(call.name, ""))
                return Delta(tool_calls=[start])
            case PieceKind.TOOL_ARGUMENTS:
                return Delta(tool_calls=[ToolDelta(piece.tool, function=Function(UNSET, piece.text))])

    def _delta(self, index: int, delta: Delta) -> Event:
        return self._chunk([ChunkChoice(index, delta)], self._running_usage(), padded=self._padded)

    def _finish(self, choice: Choice, *, last: bool) -> Event:
        usage = self._running_usage()
        if last and self._usage.style in (UsageStyle.FINISH, UsageStyle.EVERY):
            usage = usage_object(self._answer.counts, self._usage)
        return self._chunk([ChunkChoice(choice.index, Delta(), finish_reason=choice.finish_reason)], usage)

    def _running_usage(self) -> UsageField:
        if self._usage.style is not UsageStyle.EVERY:
            return self._idle_usage
        return usage_object(self._answer.counts, self._usage, completion=self._tokens)

    def _usage_events(self) -> Iterator[Event]:
        style = self._usage.style
        if style in _NO_EXTRA_CHUNK or (style is UsageStyle.ASKED and not self._answer.asked.include_usage):
            return
        counts = None if style is UsageStyle.ZERO else self._answer.counts
        yield self._chunk([], usage_object(counts, self._usage))
        if style is UsageStyle.NULL_AFTER:
            yield self._chunk([], None)

    @property
    def _tokens(self) -> int:
        return min(tokens_from_bytes(self._said), self._answer.counts.completion)

    def _chunk(self, choices: list[ChunkChoice], usage: UsageField, *, padded: bool = False) -> Event:
        answer = self._answer
        chunk = Chunk(id=answer.id, created=answer.created, model=answer.model, choices=choices, usage=usage)
        if padded:
            chunk.obfuscation = "".join(random.choices(_PADDING, k=random.randint(1, 16)))
        return data_event(_encode(chunk), self._tokens)
