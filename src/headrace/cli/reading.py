"""How a client speaks each protocol: the request for a stream, and what each event of the answer says.

It is what `demo` and `try` know of the wire. It shares no code with the gateway's own observers, so that what it reads
is a client's view.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import msgspec

from headrace.http.model_path import encoded
from headrace.model.wire import WireProtocol
from headrace.sse.event import parse


class Sort(Enum):
    """What an event is, as far as a reader of text tells them apart."""

    OUTPUT = "text"
    """It carries text of the answer."""
    OTHER = "event"
    """It carries none: role, usage, finish."""
    KEEPALIVE = "keepalive"
    """It dispatches nothing: a comment, or an empty event."""
    ERROR = "error"
    """The stream's error event."""
    LAST = "end"
    """The protocol's own last event."""


@dataclass(frozen=True, slots=True)
class Said:
    """One event: its sort, and the text that it carries; of an error, its message."""

    sort: Sort
    text: str = ""


class Reading(Protocol):
    """One protocol."""

    @property
    def protocol(self) -> WireProtocol:
        """Which it is."""

    def path(self, model: str) -> str:
        """Where its streams are asked for."""

    def headers(self, key: str) -> dict[str, str]:
        """The request's headers, lower case."""

    def body(self, model: str, prompt: str) -> bytes:
        """The request's body."""

    def said(self, event: bytes) -> Said:
        """What one whole event says. ValueError or msgspec.MsgspecError where it is not of this protocol."""


class _Message(msgspec.Struct):
    message: str = ""


_JSON_TYPE = {"content-type": "application/json"}
_KEEPALIVE = Said(Sort.KEEPALIVE)
_OTHER = Said(Sort.OTHER)


def _output(text: str) -> Said:
    return Said(Sort.OUTPUT, text) if text else _OTHER


def _data(event: bytes) -> bytes | None:
    """The event's data; None where it dispatches nothing. ValueError where it has fields and no data."""
    parsed = parse(event)
    if parsed.data is None and parsed.has_field:
        raise ValueError("an event without a data line")
    return parsed.data or None


# ------------------------------------------------------------------------------------------------------------- chat


class _ChatDelta(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _ChatChoice(msgspec.Struct):
    delta: _ChatDelta


class _ChatChunk(msgspec.Struct):
    choices: list[_ChatChoice] = []
    error: _Message | None = None


class ChatReading:
    """OpenAI Chat Completions."""

    protocol = WireProtocol.CHAT

    def path(self, model: str) -> str:
        """The same for every model."""
        return "/v1/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        """A bearer key, as OpenAI's SDKs send it."""
        return {"authorization": f"Bearer {key}", **_JSON_TYPE}

    def body(self, model: str, prompt: str) -> bytes:
        """With usage asked for, so that the gateway has nothing to add and nothing to take out."""
        return msgspec.json.encode(
            {
                "model": model,
                "messages": [{"role": "user", "content": prompt}],
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        )

    def said(self, event: bytes) -> Said:
        """Comment, `[DONE]`, error, or chunk."""
        if (data := _data(event)) is None:
            return _KEEPALIVE
        if data.strip() == b"[DONE]":
            return Said(Sort.LAST)
        chunk = msgspec.json.decode(data, type=_ChatChunk)
        if chunk.error is not None:
            return Said(Sort.ERROR, chunk.error.message)
        return _output("".join((choice.delta.content or choice.delta.refusal or "") for choice in chunk.choices))


# -------------------------------------------------------------------------------------------------------- responses


class _Response(msgspec.Struct):
    error: _Message | None = None


class _ResponsesEvent(msgspec.Struct):
    type: str = ""
    delta: msgspec.Raw = msgspec.Raw(b'""')
    message: str = ""
    error: _Message | None = None
    response: _Response | None = None


class ResponsesReading:
    """OpenAI Responses."""

    protocol = WireProtocol.RESPONSES

    def path(self, model: str) -> str:
        """The same for every model."""
        return "/v1/responses"

    def headers(self, key: str) -> dict[str, str]:
        """A bearer key, as OpenAI's SDKs send it."""
        return {"authorization": f"Bearer {key}", **_JSON_TYPE}

    def body(self, model: str, prompt: str) -> bytes:
        """One that leaves nothing stored."""
        return msgspec.json.encode({"model": model, "input": prompt, "stream": True, "store": False})

    def said(self, event: bytes) -> Said:
        """By the `type` in the data; `response.failed` and `error` are errors."""
        if (data := _data(event)) is None:
            return _KEEPALIVE
        found = msgspec.json.decode(data, type=_ResponsesEvent)
        match found.type:
            case "response.output_text.delta" | "response.refusal.delta":
                return _output(msgspec.json.decode(found.delta, type=str))
            case "response.failed":
                error = found.response.error if found.response is not None else None
                return Said(Sort.ERROR, error.message if error is not None else "")
            case "error":
                return Said(Sort.ERROR, found.error.message if found.error is not None else found.message)
            case "response.completed" | "response.incomplete":
                return Said(Sort.LAST)
        return _OTHER


# --------------------------------------------------------------------------------------------------------- messages


class _MessagesDelta(msgspec.Struct):
    text: str = ""


class _MessagesEvent(msgspec.Struct):
    type: str = ""
    delta: _MessagesDelta | None = None
    error: _Message | None = None


MOST_TOKENS = 1024
"""Messages wants a bound; this is room for an answer to a question of one line."""


class MessagesReading:
    """Anthropic Messages."""

    protocol = WireProtocol.MESSAGES

    def path(self, model: str) -> str:
        """The same for every model."""
        return "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        """As Anthropic's SDKs send it."""
        return {"x-api-key": key, "anthropic-version": "2023-06-01", **_JSON_TYPE}

    def body(self, model: str, prompt: str) -> bytes:
        """With the bound that the API requires."""
        return msgspec.json.encode(
            {
                "model": model,
                "max_tokens": MOST_TOKENS,
                "messages": [{"role": "user", "content": prompt}],
                "stream": True,
            }
        )

    def said(self, event: bytes) -> Said:
        """By the `type` in the data."""
        if (data := _data(event)) is None:
            return _KEEPALIVE
        found = msgspec.json.decode(data, type=_MessagesEvent)
        match found.type:
            case "content_block_delta":
                return _output(found.delta.text if found.delta is not None else "")
            case "error":
                return Said(Sort.ERROR, found.error.message if found.error is not None else "")
            case "message_stop":
                return Said(Sort.LAST)
        return _OTHER


# ----------------------------------------------------------------------------------------------------------- gemini


class _Part(msgspec.Struct):
    text: str = ""
    thought: bool = False


class _Content(msgspec.Struct):
    parts: list[_Part] = []


class _GeminiCandidate(msgspec.Struct):
    content: _Content | None = None


class _GeminiChunk(msgspec.Struct):
    candidates: list[_GeminiCandidate] = []
    error: _Message | None = None


class GeminiReading:
    """Gemini generateContent, as server-sent events."""

    protocol = WireProtocol.GEMINI

    def path(self, model: str) -> str:
        """It names the model."""
        return f"/v1beta/models/{encoded(model)}:streamGenerateContent?alt=sse"

    def headers(self, key: str) -> dict[str, str]:
        """As Google's SDKs send it."""
        return {"x-goog-api-key": key, **_JSON_TYPE}

    def body(self, model: str, prompt: str) -> bytes:
        """One turn of the user."""
        return msgspec.json.encode({"contents": [{"role": "user", "parts": [{"text": prompt}]}]})

    def said(self, event: bytes) -> Said:
        """Chunk or error; it has no last event of its own. An empty event keeps the connection alive."""
        if (data := _data(event)) is None:
            return _KEEPALIVE
        chunk = msgspec.json.decode(data, type=_GeminiChunk)
        if chunk.error is not None:
            return Said(Sort.ERROR, chunk.error.message)
        contents = [candidate.content for candidate in chunk.candidates if candidate.content is not None]
        return _output("".join(part.text for content in contents for part in content.parts if not part.thought))


READINGS: dict[WireProtocol, Reading] = {
    reading.protocol: reading for reading in (ResponsesReading(), ChatReading(), MessagesReading(), GeminiReading())
}
"""The protocols that stream text, in the order in which they are preferred."""
