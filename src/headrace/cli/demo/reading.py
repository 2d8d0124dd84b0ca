"""How the demo speaks a protocol: the request for a stream, and what each event of the answer says."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import msgspec

from headrace.model.wire import WireProtocol


class Sort(Enum):
    """What an event is, as far as the demo tells them apart."""

    OUTPUT = "text"
    """It carries text of the answer."""
    OTHER = "event"
    """It carries none: role, usage, finish."""
    KEEPALIVE = "keepalive"
    """A comment."""
    ERROR = "error"
    """The stream's error event."""
    LAST = "end"
    """The protocol's own last event."""


@dataclass(frozen=True, slots=True)
class Said:
    """One event: its sort, and the text that it carries."""

    sort: Sort
    text: str = ""


class Reading(Protocol):
    """One protocol. Adding one is a class here and its shows in `shows`."""

    @property
    def protocol(self) -> WireProtocol:
        """Which it is."""

    @property
    def path(self) -> str:
        """Where its streams are asked for."""

    def headers(self, key: str) -> dict[str, str]:
        """The request's headers, lower case."""

    def body(self, model: str, prompt: str) -> bytes:
        """The request's body."""

    def said(self, event: bytes) -> Said:
        """What one whole event says. ValueError or msgspec.MsgspecError where it is not of this protocol."""


class _Delta(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    error: dict[str, object] | None = None


class ChatReading:
    """OpenAI Chat Completions."""

    protocol = WireProtocol.CHAT
    path = "/v1/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        """A bearer key, as OpenAI's SDKs send it."""
        return {"authorization": f"Bearer {key}", "content-type": "application/json"}

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
        if event.startswith(b":"):
            return Said(Sort.KEEPALIVE)
        if not event.startswith(b"data:"):
            raise ValueError("an event of chat is a data line")
        data = event.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            return Said(Sort.LAST)
        chunk = msgspec.json.decode(data, type=_Chunk)
        if chunk.error is not None:
            return Said(Sort.ERROR)
        text = "".join(choice.delta.content or "" for choice in chunk.choices)
        return Said(Sort.OUTPUT, text) if text else Said(Sort.OTHER)
