"""A client's request: its head as parsed by the listener, and what a protocol reads from its body."""

from dataclasses import dataclass, field

from headrace.model.headers import Headers, first
from headrace.model.wire import Asked, WireProtocol


@dataclass(slots=True)
class RequestHead:
    """The head of one request as the listener checked it. `target` is origin-form, percent-encoding untouched."""

    method: str
    path: str
    query: str
    headers: Headers
    http_1_0: bool = False
    has_body: bool = False
    peer: str = ""

    def header(self, name: bytes) -> bytes | None:
        """The first value of the header `name` (lower case)."""
        return first(self.headers, name)


@dataclass(slots=True)
class Call:
    """What a protocol read from a request: everything that routing, relay and metering need, and the body unchanged.

    Nothing is ever changed in it, but that the line drops the body once it is not needed again.
    """

    protocol: WireProtocol
    operation: str
    """The channel's `paths` key and the entry's word: `chat.completions`, `messages.count_tokens`, …"""
    model: str
    asked: Asked
    body: bytes = field(repr=False)
    wants_usage: bool = True
    """Whether the client itself asked for usage in the stream (chat only; the others always send it)."""
    max_output: int | None = None
    choices: int = 1
    asks_stream: bool = False
    """Passthrough: whether the request says `stream: true`. It decides nothing; the entry tells it."""

    @property
    def stream(self) -> bool:
        """Whether the answer was asked for piece by piece."""
        return self.asked is Asked.EVENTS or self.asked is Asked.ARRAY


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """What goes up: the path below the channel's base URL, the query (no `?`), all headers but the credential's, Host
    and
    Content-Length, and the body in parts to be sent in order."""

    method: str
    path: str
    query: str
    headers: Headers
    body: tuple[bytes | memoryview, ...]
    added_usage: bool = False
    """Whether the gateway asked for usage that the client did not ask for."""

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return sum(len(part) for part in self.body)


@dataclass(frozen=True, slots=True)
class ReplyHead:
    """The head of an upstream's reply."""

    status: int
    headers: Headers

    def header(self, name: bytes) -> bytes | None:
        """The first value of the header `name` (lower case)."""
        return first(self.headers, name)

    @property
    def media_type(self) -> str:
        """The Content-Type without parameters, in lower case; empty where there is none."""
        value = first(self.headers, b"content-type")
        return value.split(b";", 1)[0].strip().lower().decode("latin-1") if value else ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply: what a dialect makes of a problem, or a short answer of the gateway's own."""

    status: int
    headers: Headers
    body: bytes
