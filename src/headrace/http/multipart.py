"""Finds one field of a multipart/form-data body (RFC 7578, RFC 2046 section 5.1) by its boundary; no part is copied.

    --boundary CRLF headers CRLF CRLF value CRLF --boundary … CRLF --boundary--

What decides where a request goes must mean the same here and in the upstream's parser, so every form that two parsers
read differently is refused: lone CR or LF before a boundary, a line that only begins with it, anything before the first
or another boundary behind the last, folded headers, `name*`, a name with escapes, a field that stands twice, is a
file or is spelled in another case.
"""

import re
from collections.abc import Iterator

from headrace.http.splice import Span

MEDIA_TYPE = b"multipart/form-data"
MOST_BOUNDARIES = 10_000
"""How often a body may hold its boundary; forms have some tens of parts."""
MOST_HEADER_BYTES = 16 * 1024
MOST_BOUNDARY_BYTES = 200

_PARAMETER = re.compile(rb';[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=("(?:[^"\\]|\\.)*+"|[^\s;"]++)[ \t]*', re.DOTALL)
_DELIMITER_END = re.compile(rb"[ \t]*+\r\n")
_IDENTITY = frozenset((b"7bit", b"8bit", b"binary"))


class MultipartError(ValueError):
    """The body is no form that every parser reads the same way; the text says why, for the client."""


def boundary_of(content_type: bytes) -> bytes:
    """The boundary that a Content-Type of multipart/form-data names. Raises MultipartError."""
    found = _parameters(content_type.partition(b";")[2]).get(b"boundary", b"")
    if not found or len(found) > MOST_BOUNDARY_BYTES or found.endswith(b" ") or b"\\" in found:
        raise MultipartError("its Content-Type names no usable boundary")
    return found


def field_span(body: bytes, boundary: bytes, name: bytes) -> Span | None:
    """Where the value of the only field `name` stands in `body`; None where the form has none. Raises MultipartError.

    The whole form is checked. It takes one search for the boundary through the body, whatever the parts hold.
    """
    found: Span | None = None
    for start, end in _parts(body, boundary):
        headers_end = body.find(b"\r\n\r\n", start, min(end, start + MOST_HEADER_BYTES))
        if headers_end < 0:
            raise MultipartError("a part's headers have no end, or are too long")
        if _is_field(body[start:headers_end], name):
            if found is not None:
                raise MultipartError(f"it has two parts called {name.decode('latin-1')!r}")
            found = headers_end + 4, end
    return found


def _parts(body: bytes, boundary: bytes) -> Iterator[Span]:
    """Each part from its headers to the line end before the next boundary."""
    begin: int | None = None
    closed = False
    for at, after in _boundaries(body, b"--" + boundary):
        if closed:
            raise MultipartError("there is another boundary behind its end")
        if begin is not None:
            if at - 2 < begin:
                raise MultipartError("a part is empty")
            yield begin, at - 2
        closed = body.startswith(b"--", after)
        line_end = _DELIMITER_END.match(body, after)
        if line_end is None and not closed:
            raise MultipartError("a line begins with the boundary and goes on")
        begin = line_end.end() if line_end is not None else after
    if not closed:
        raise MultipartError("its closing boundary is missing; perhaps it was cut off")


def _boundaries(body: bytes, mark: bytes) -> Iterator[Span]:
    """Each place where a line begins with `mark`, the first at the body's beginning or behind one CRLF."""
    at = body.find(mark)
    if at != 0 and not (at == 2 and body.startswith(b"\r\n")):
        raise MultipartError("it does not begin with its boundary")
    for _ in range(MOST_BOUNDARIES):
        after = at + len(mark)
        if at == 0 or _begins_line(body, at):
            yield at, after
        at = body.find(mark, after)
        if at < 0:
            return
    raise MultipartError("it has too many parts")


def _begins_line(body: bytes, at: int) -> bool:
    """Whether a boundary at `at` stands behind a CRLF; behind half of one it would depend on the reader."""
    if body[at - 2 : at] == b"\r\n":
        return True
    if body[at - 1] in b"\r\n":
        raise MultipartError("a boundary stands behind a lone CR or LF; lines end in CRLF")
    return False


def _is_field(headers: bytes, name: bytes) -> bool:
    """Whether a part's headers name it `name`, which is in lower case."""
    fields = _fields(headers)
    kind, _, rest = fields.get(b"content-disposition", b"").partition(b";")
    parameters = _parameters(rest)
    called = parameters.get(b"name")
    if kind.strip().lower() != b"form-data" or called is None or b"name*" in parameters or b"\\" in called:
        raise MultipartError("a part has no plain name")
    if called.lower() != name:
        return False
    if called != name:
        # Some upstreams read names without regard to case.
        raise MultipartError(f"its part {called.decode('latin-1')!r} must be called {name.decode('latin-1')!r}")
    if b"filename" in parameters or b"filename*" in parameters:
        raise MultipartError(f"its part {name.decode('latin-1')!r} is a file")
    if fields.get(b"content-transfer-encoding", b"binary").lower() not in _IDENTITY:
        raise MultipartError(f"its part {name.decode('latin-1')!r} has a Content-Transfer-Encoding")
    return True


def _fields(headers: bytes) -> dict[bytes, bytes]:
    """A part's header fields, names in lower case."""
    found: dict[bytes, bytes] = {}
    for line in headers.split(b"\r\n") if headers else ():
        field, colon, value = line.partition(b":")
        field = field.strip().lower()
        if not colon or not field or line[:1] in b" \t" or b"\n" in line or b"\r" in line or field in found:
            raise MultipartError("a part's headers are malformed")
        found[field] = value.strip()
    return found


def _parameters(text: bytes) -> dict[bytes, bytes]:
    """`a=b; c="d"`, names in lower case, values without their quotes and with their escapes."""
    found: dict[bytes, bytes] = {}
    text = b";" + text.rstrip(b" \t;") if text.strip(b" \t;") else b""
    position = 0
    while position < len(text):
        match = _PARAMETER.match(text, position)
        if match is None or match[1].lower() in found:
            raise MultipartError("a header's parameters are malformed")
        value = match[2]
        found[match[1].lower()] = value[1:-1] if value.startswith(b'"') else value
        position = match.end()
    return found
