"""Gemini: reads a request, and spells an answer as events, as one array or as one object.

The path names the model and what is asked. Order on the wire: thoughts, text, function calls (each whole), candidates
in turn; the last chunk of a candidate has its finishReason; a running total of usage in every chunk. Events end in
CRLF.
"""

import re
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import UNSET

from headrace.simulator.answer import Answer, Asked, Choice, Piece, PieceKind, tokens_from_bytes
from headrace.simulator.composition import EVENT_STREAM, JSON, StreamForm
from headrace.simulator.embeddings import Inputs
from headrace.simulator.gemini_objects import (
    Candidate,
    Chunk,
    Content,
    FunctionCall,
    Part,
    UsageField,
    error_json,
    usage_object,
)
from headrace.simulator.reply import Headers
from headrace.simulator.request import Request, RequestError, body_as, text_of
from headrace.simulator.scenario import ErrorSpec, LineEnd, Scenario, UsageStyle
from headrace.simulator.spelling import Event, data_event

_PATH = re.compile(
    r"/models/(?P<model>.+):(?P<verb>generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents)"
)
_SSE = re.compile(r"(?:^|&)(?:\$|%24)?alt=sse(?:&|$)")
_DIMENSIONS = 768
_REASONS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_IN_EVERY = (UsageStyle.ASKED, UsageStyle.EVERY)
_LAST = (UsageStyle.FINAL, UsageStyle.NULL_AFTER, UsageStyle.ZERO)
_encode = msgspec.json.Encoder().encode


class _Content(msgspec.Struct):
    role: str | None = None
    parts: Any = None


class _Config(msgspec.Struct, rename="camel"):
    candidate_count: int | None = None


class _Item(msgspec.Struct):
    content: _Content | None = None


class _Request(msgspec.Struct, rename="camel"):
    contents: list[_Content] = []
    system_instruction: _Content | None = None
    generation_config: _Config | None = None
    content: _Content | None = None
    requests: list[_Item] = []
    generate_content_request: Any = None


class Speaker:
    """What is spoken at one path (`composition.WireProtocol`)."""

    def __init__(self, model: str, verb: str, events: bool) -> None:
        self._model = model
        self._verb = verb
        self._texts: list[str] = []
        self._array = not events
        self.ENDS_IN_DONE = self._array
        self.form = StreamForm(JSON if self._array else EVENT_STREAM, LineEnd.CRLF)

    def read_request(self, body: bytes) -> Asked:
        """What a POST asks for; raises RequestError."""
        request = body_as(_Request, body)
        contents = list(request.contents)
        if self._verb == "embedContent" and request.content is not None:
            contents = [request.content]
        elif self._verb == "batchEmbedContents":
            contents = [item.content for item in request.requests if item.content is not None]
        if not contents and request.generate_content_request is None:
            raise RequestError("* GenerateContentRequest.contents: contents is not specified")
        self._texts = [text_of(content.parts) for content in contents]
        users = [text for content, text in zip(contents, self._texts, strict=True) if content.role in (None, "user")]
        system = text_of(request.system_instruction.parts) if request.system_instruction is not None else ""
        config = request.generation_config
        return Asked(
            model=self._model,
            stream=self._verb == "streamGenerateContent",
            n=(config.candidate_count if config is not None else None) or 1,
            input=users[-1] if users else "",
            prompt_tokens=tokens_from_bytes(sum(len(text.encode()) for text in (system, *self._texts))),
        )

    def id_from(self, letters: str) -> str:
        return letters[:22]

    def own_headers(self, ms: int) -> Headers:
        """The headers of Google's own that a reply has."""
        return (("server-timing", f"gfet4t7; dur={ms}"), ("x-content-type-options", "nosniff"))

    def error_body(self, status: int, spec: ErrorSpec) -> bytes:
        return error_json(status, spec)

    def events(self, answer: Answer, scenario: Scenario) -> Iterator[Event]:
        """The chunks of a stream; of an array its elements, all but the closing bracket."""
        chunks = _Stream(answer, scenario).chunks()
        if not self._array:
            return (data_event(_encode(chunk), tokens) for chunk, tokens in chunks)
        marks = chain([b"["], repeat(b",\r\n"))
        return (Event(raw=next(marks) + _encode(chunk), tokens=tokens) for chunk, tokens in chunks)

    def done_event(self, payload: str, tokens: int) -> Event:
        """The bracket that closes an array; events have no end of their own, a script can still ask for one."""
        return Event(raw=b"\r\n]", tokens=tokens) if self._array else data_event(payload.encode(), tokens)

    def error_event(self, status: int, spec: ErrorSpec, tokens: int, position: int) -> Event:
        """The error as a chunk; in an array it is the last element, and the array is closed."""
        error = error_json(status, spec)
        if self._array:
            return Event(raw=(b",\r\n" if position else b"[") + error + b"\r\n]", tokens=tokens)
        return data_event(error, tokens)

    def whole(self, answer: Answer, scenario: Scenario) -> bytes:
        """The object of a reply without streaming."""
        match self._verb:
            case "countTokens":
                return _encode({"totalTokens": answer.counts.prompt})
            case "embedContent":
                return _encode({"embedding": self._vectors()[0]})
            case "batchEmbedContents":
                return _encode({"embeddings": self._vectors()})
        style = scenario.content.usage.style
        usage: UsageField = UNSET
        if style is not UsageStyle.NONE:
            usage = usage_object(None if style is UsageStyle.ZERO else answer.counts, scenario.content.usage)
        candidates = [
            Candidate(Content(_joined(choice, list(_parts(choice)))), _reason(choice), choice.index)
            for choice in answer.choices
        ]
        return _encode(
            Chunk(candidates=candidates, usage_metadata=usage, model_version=answer.model, response_id=answer.id)
        )

    def _vectors(self) -> list[dict[str, object]]:
        inputs = Inputs(tuple(text.encode() for text in self._texts), _DIMENSIONS, False)
        return [{"values": inputs.vector(item)} for item in inputs.items]


def speaker(request: Request) -> Speaker | None:
    """What is spoken at the request's path, if it is one of Gemini's."""
    found = _PATH.search(request.path)
    if found is None or found.end() != len(request.path):
        return None
    _, _, query = request.target.partition("?")
    return Speaker(unquote(found["model"]), found["verb"], _SSE.search(query) is not None)


class _Stream:
    """One answer being spelled; `_said` counts the UTF-8 bytes said so far, from which tokens follow."""

    def __init__(self, answer: Answer, scenario: Scenario) -> None:
        self._answer = answer
        self._usage = scenario.content.usage
        self._said = 0

    def chunks(self) -> Iterator[tuple[Chunk, int]]:
        """(chunk, the tokens said so far)."""
        open_ = [(choice, _ahead(_parts(choice))) for choice in self._answer.choices]
        while open_:
            for entry in tuple(open_):
                choice, parts = entry
                part, last = next(parts)
                if last:
                    open_.remove(entry)
                yield self._candidate(choice, part, last, all_said=not open_)
        style = self._usage.style
        if style in _LAST:
            counts = None if style is UsageStyle.ZERO else self._answer.counts
            yield self._chunk(usage_object(counts, self._usage))
        if style is UsageStyle.NULL_AFTER:
            yield self._chunk(UNSET)

    def _candidate(self, choice: Choice, part: Part | None, last: bool, all_said: bool) -> tuple[Chunk, int]:
        if part is not None:
            self._said += _size(part)
        style = self._usage.style
        usage: UsageField = UNSET
        if style in _IN_EVERY or (style is UsageStyle.FINISH and all_said):
            usage = usage_object(self._answer.counts, self._usage, None if all_said else self._tokens)
        content = Content([part] if part is not None else UNSET)
        reason = _reason(choice) if last else UNSET
        return self._chunk(usage, [Candidate(content, reason, choice.index)])

    def _chunk(self, usage: UsageField, candidates: list[Candidate] | None = None) -> tuple[Chunk, int]:
        answer = self._answer
        chunk = Chunk(model_version=answer.model, response_id=answer.id, usage_metadata=usage)
        if candidates is not None:
            chunk.candidates = candidates
        return chunk, self._tokens

    @property
    def _tokens(self) -> int:
        return min(tokens_from_bytes(self._said), self._answer.counts.completion)


def _parts(choice: Choice) -> Iterator[Part]:
    """The parts of an answer; a function call is whole when its last fragment is there."""
    for piece in choice.pieces():
        if piece.kind is PieceKind.TOOL_START:
            call = choice.calls[piece.tool]
            arguments = msgspec.Raw(call.arguments.text.encode() or b"{}")
            yield Part(function_call=FunctionCall(call.id, call.name, arguments))
        elif piece.kind is not PieceKind.TOOL_ARGUMENTS:
            yield _text(piece)


def _text(piece: Piece) -> Part:
    return Part(piece.text, True) if piece.kind is PieceKind.REASONING else Part(piece.text)


def _ahead(parts: Iterator[Part]) -> Iterator[tuple[Part | None, bool]]:
    """Each part, and whether it is the last; an answer that says nothing has one chunk all the same."""
    part = next(parts, None)
    while True:
        following = next(parts, None)
        yield part, following is None
        part = following


def _joined(choice: Choice, parts: list[Part]) -> list[Part]:
    """The parts of a reply without streaming: one for the thoughts, one for the text."""
    thoughts = "".join(choice.reasoning)
    text = "".join(chain(choice.text, choice.refusal))
    calls = [part for part in parts if part.function_call is not UNSET]
    said = [Part(thoughts, True)] if thoughts else []
    return said + ([Part(text)] if text or not calls else []) + calls


def _size(part: Part) -> int:
    """Bytes that count as output."""
    if not isinstance(part.function_call, FunctionCall):
        return len(part.text.encode()) if isinstance(part.text, str) else 0
    return len(part.function_call.name.encode()) + len(memoryview(part.function_call.args))


def _reason(choice: Choice) -> str:
    if choice.refusal.pieces and choice.finish_reason == "stop":
        return "SAFETY"
    return _REASONS.get(choice.finish_reason, choice.finish_reason)
