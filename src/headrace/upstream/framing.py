"""The rules for a reply's framing beyond what llhttp refuses by itself."""

from enum import Enum

from headrace.http.chunk import HEADS, MOST_READ
from headrace.model.headers import Headers
from headrace.model.ports import TakeFrame
from headrace.model.request import Fields

MAX_HEAD = 64 * 1024
MAX_FIELDS = 200
_MOST_LINE = 5
_END = b"\r\n\r\n"


class Framing(Enum):
    """How a reply's head says where its body ends."""

    CHUNKED = "chunked"
    COUNTED = "counted"
    """By Content-Length."""
    NONE = "none"
    """Not at all: at the end of the connection, or there is no body."""


class MalformedError(Exception):
    """A reply that the parser lets pass and we do not."""


def framing_of(head: Fields) -> Framing:
    """The framing. Raises MalformedError for a transfer encoding that we cannot undo."""
    codings = head.every(b"transfer-encoding")
    if codings:
        if any(value.strip().lower() != b"chunked" for value in codings):
            raise MalformedError("a transfer encoding other than chunked")
        return Framing.CHUNKED
    return Framing.NONE if head.header(b"content-length") is None else Framing.COUNTED


def wire_size(headers: Headers) -> int:
    """Bytes that header lines take, with colon, blank and line end."""
    return sum(len(name) + len(value) + 4 for name, value in headers)


def ends_clean(framing: Framing, data: bytes) -> bool:
    """Whether the read that completed a reply ends where the reply does, but for blank lines behind a counted body.

    The parser reports other surplus bytes; blank lines it skips, and they too were not asked for.
    """
    return framing is Framing.COUNTED or (_END.endswith(data[-4:]) and not data.endswith(_END + b"\r\n"))


def take_frames(data: bytes, frames: TakeFrame) -> int:
    """Offer the chunks at the beginning of a read one by one, but for a single one: that was offered before.

    How many bytes were taken.
    """
    at = 0
    while (line := data.find(b"\r\n", at, at + _MOST_LINE)) > 0:
        try:
            end = line + 4 + int(data[at:line], 16)
        except ValueError:
            break
        if end > len(data) or end - at >= MOST_READ or data[at : line + 2] != HEADS[end - at]:
            break
        if end - at == len(data) or not frames(data[at:end]):
            break
        at = end
    return at
