"""The head of an upstream request as bytes: one framing, one Host, and no value that could begin a line of its own."""

from headrace.model.channel import BaseUrl
from headrace.model.request import UpstreamRequest

_OWN = frozenset(
    (b"host", b"content-length", b"transfer-encoding", b"connection", b"expect", b"keep-alive", b"upgrade")
)
"""What the connection decides: whatever stands in the request's headers under these names is left out."""

_BODILESS = frozenset(("GET", "HEAD", "DELETE", "OPTIONS"))


class UnsafeHeadError(ValueError):
    """A method, target, name or value holds a character that must not stand in a head."""


def head_bytes(base: BaseUrl, request: UpstreamRequest) -> bytes:
    """The request line and all header lines with the final blank line.

    Content-Length is always the body's; it is left out for an empty GET, HEAD, DELETE or OPTIONS.
    Raises UnsafeHeadError.
    """
    target = f"{base.path}{request.path}?{request.query}" if request.query else base.path + request.path
    line = f"{request.method} {target} HTTP/1.1\r\nhost: {base.authority}"
    length = request.length
    own = 1
    if length or request.method not in _BODILESS:
        line += f"\r\ncontent-length: {length}"
        own = 2
    lines = [name + b": " + value for name, value in request.headers if name not in _OWN]
    try:
        head = b"\r\n".join((line.encode("ascii"), *lines, b"\r\n"))
    except UnicodeEncodeError as error:
        raise UnsafeHeadError("the target is not ASCII") from error
    # One line end for each line and the two of the end: any more came out of a value.
    ends = len(lines) + own + 2
    if head.count(b"\n") != ends or head.count(b"\r") != ends or b"\0" in head:
        raise UnsafeHeadError("a header value holds CR, LF or NUL")
    if line.count(" ") - own != 2:
        raise UnsafeHeadError("the target holds a blank")
    return head
