"""Names of the wire: protocols, dialects, operations and the ways in which a body ends."""

from enum import Enum
from typing import NamedTuple


class WireProtocol(Enum):
    """One of the wire APIs that a channel can speak natively."""

    # Members are singletons. Enum's own hash is written in Python and takes 0.3 µs, and a request needs five.
    __hash__ = object.__hash__

    CHAT = "chat"
    RESPONSES = "responses"
    RESPONSES_WS = "responses_ws"
    MESSAGES = "messages"
    GEMINI = "gemini"
    COMPLETIONS = "completions"
    EMBEDDINGS = "embeddings"
    MODERATIONS = "moderations"
    IMAGES = "images"
    AUDIO = "audio"
    VIDEOS = "videos"
    RERANK = "rerank"
    FILES = "files"
    VECTOR_STORES = "vector_stores"


class Dialect(Enum):
    """How errors and lists are spelled."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


class BodyEnd(Enum):
    """How an upstream's body came to its end."""

    FRAMED = "framed"
    """The framing said so: the last chunk, or the last byte of Content-Length."""
    CLOSED = "closed"
    """The connection closed by FIN, and the head had promised nothing else (close-delimited)."""
    CUT = "cut"
    """The connection went away before the framing's end."""


class Asked(Enum):
    """What the request asked for."""

    EVENTS = "events"
    """An event stream."""
    ARRAY = "array"
    """Gemini's stream without `alt=sse`: one JSON array, written bit by bit."""
    JSON = "json"
    """One JSON value."""
    ANYTHING = "anything"
    """Passthrough: whatever comes with a 2xx."""


class Sight(Enum):
    """What an observer saw in one event of a stream."""

    HEARTBEAT = "heartbeat"
    """Keeps a connection warm and carries nothing: never progress, never a first event."""
    PREAMBLE = "preamble"
    """Progress that carries no output yet; held back only with `commit: first_output`."""
    PROGRESS = "progress"
    """Any other event."""
    FINISHED = "finished"
    """Progress after which every output that was begun has ended: only a short tail can follow."""
    ADDED_USAGE = "added_usage"
    """The usage event that the gateway's own injection caused; it is removed."""
    TERMINAL = "terminal"
    """The protocol's own end: nothing that matters follows."""
    ERROR = "error"
    """The upstream reports a failure in the stream."""
    COMMENT = "comment"
    """A heartbeat that is made of comments alone (dropped on Gemini streams, whose SDKs fail on it)."""


class Plain(NamedTuple):
    """How to tell by its bytes that an event of one data line is surely PROGRESS or PREAMBLE. Who needs to know no more
    of it at once may have it observed later, in order."""

    begins: bytes
    """How it begins."""
    needs: bytes = b""
    """What stands in it."""
    lacks: bytes = b"\0"
    """What does not."""
