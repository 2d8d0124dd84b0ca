"""Heads: serialises those of responses, and checks in those of requests what llhttp leaves open.

llhttp, strict, refuses by itself: bare LF, folded lines, white space before a colon or a first field, control
characters, Content-Length that is no number, doubled, or beside Transfer-Encoding, and a coding after `chunked`. Its
words for these become a status in `parser_problem`. Not seen by llhttp, and checked in `read_framing`: Host, the
version, codings before `chunked`, chunked in HTTP/1.0, Expect. White space at a value's end is left by llhttp and cut
by the listener.
"""

import re
from http import HTTPStatus
from typing import Final, NamedTuple

from headrace.model.headers import Headers, every, is_clean_value
from headrace.model.problem import Kind, Problem
from headrace.model.request import Fields

MAX_HEAD: Final = 64 * 1024
"""Bytes of a request's head, counted as they are fed to the parser."""
MAX_FIELDS: Final = 100

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

_STATUS_LINES: Final = {s.value: b"HTTP/1.1 %d %b" % (s.value, s.phrase.encode("ascii")) for s in HTTPStatus} | {
    413: b"HTTP/1.1 413 Content Too Large",
    529: b"HTTP/1.1 529 Overloaded",
}
_join_field = b": ".join
_HOST = re.compile(rb"[\w.~%!$&'()*+,;=:\[\]-]*", re.ASCII)


class Framing(NamedTuple):
    """How a request's body is delimited. `length` is None for a chunked one and 0 where there is no body."""

    length: int | None
    expects_continue: bool = False


NO_BODY: Final = Framing(0)


def response_head(status: int, headers: Headers) -> bytes:
    """A response's head, status line to blank line; always as HTTP/1.1, to HTTP/1.0 clients too (RFC 9112 section 2.3).

    Raises ValueError for CR, LF or NUL in a field. Values that come from elsewhere are to be checked before
    (`model.headers.is_clean_value`); here it is the last guard.
    """
    line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d " % status
    lines = list(map(_join_field, headers))
    if not is_clean_value(b"".join(lines)):  # searched before the line ends are put between: that halves the cost
        raise ValueError(f"CR, LF or NUL in a response header: {_unclean(headers)}")
    return b"\r\n".join((line, *lines, b"\r\n"))


def _unclean(headers: Headers) -> str:
    """Names of the fields that hold what they must not; values are not repeated, they may be secrets."""
    found = [name for name, value in headers if not (is_clean_value(name) and is_clean_value(value))]
    return b", ".join(found).decode("latin-1")


def read_framing(head: Fields, version: str) -> Framing | Problem:
    """How the body of a request is delimited, or why its head is refused.

    Its fields have lower-case names and trimmed values; `version` is llhttp's (`1.1`).
    """
    headers = head.headers
    if len(headers) > MAX_FIELDS:
        return TOO_MANY_FIELDS
    fields = head.index()
    problem = _host_problem(headers, fields)
    if problem is not None:
        return problem
    if version not in {"1.1", "1.0"}:
        return _version_problem(f"HTTP/{version}")
    if b"transfer-encoding" in fields:
        return _chunked(headers, fields, version)
    if b"content-length" not in fields and b"expect" not in fields:
        return NO_BODY
    return _sized(headers, fields, version)


def _host_problem(headers: Headers, fields: dict[bytes, bytes]) -> Problem | None:
    """What is wrong with Host, if anything. Without a doubled name the dict has all fields."""
    host = fields.get(b"host")
    if host is None or (len(fields) != len(headers) and len(every(headers, b"host")) != 1):
        return _bad("Send exactly one Host header.")
    if not _HOST.fullmatch(host):
        return _bad("The Host header holds characters that no host name has; send `host` or `host:port`.")
    return None


def _chunked(headers: Headers, fields: dict[bytes, bytes], version: str) -> Framing | Problem:
    """The framing of a body with Transfer-Encoding."""
    if b"content-length" in fields:
        return _bad("Send Content-Length or Transfer-Encoding, not both.")
    if version == "1.0":
        return _bad("HTTP/1.0 has no Transfer-Encoding; send Content-Length, or use HTTP/1.1.")
    if [value.lower() for value in every(headers, b"transfer-encoding")] != [b"chunked"]:
        return CODING_UNKNOWN
    return _expecting(None, fields, version)


def _sized(headers: Headers, fields: dict[bytes, bytes], version: str) -> Framing | Problem:
    """The framing of a body with Content-Length, or of none."""
    if len(fields) != len(headers) and len(set(every(headers, b"content-length"))) > 1:
        return _bad("The Content-Length headers differ; send exactly one.")
    length = fields.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 20:
        return _bad("Content-Length must be a decimal number.")
    return _expecting(int(length), fields, version)


def _expecting(length: int | None, fields: dict[bytes, bytes], version: str) -> Framing | Problem:
    """The framing with what Expect says. HTTP/1.0 clients cannot read an interim response (RFC 9110 section 10.1.1)."""
    expect = fields.get(b"expect")
    if expect is None:
        return NO_BODY if length == 0 else Framing(length)
    if expect.lower() != b"100-continue":
        return Problem(
            Kind.BAD_REQUEST, "The only Expect header served here is `100-continue`; leave it out.", status=417
        )
    return Framing(length, version == "1.1" and length != 0)


def parser_problem(reason: str, in_body: bool) -> Problem:
    """The problem behind llhttp's `reason` for giving up: 501 for codings, 505 for versions, else 400."""
    if in_body:
        return _bad("The chunked body is malformed; check the HTTP library, or send Content-Length.", reason)
    if reason.startswith(("Invalid `Transfer-Encoding`", "Request has invalid `Transfer-Encoding`", "Empty Transfer-")):
        return CODING_UNKNOWN
    if reason == "Invalid HTTP version":
        return _version_problem("this version")
    if reason == "Pause on PRI/Upgrade":
        return _version_problem("HTTP/2")
    for sign, message in _PARSER_MESSAGES:
        if sign in reason:
            return _bad(message, reason)
    return _bad("This is not a valid HTTP/1.1 request; check the HTTP library or the proxy in between.", reason)


_PARSER_MESSAGES: Final = (
    ("present with", "Send Content-Length or Transfer-Encoding, not both."),
    ("Content-Length", "Send exactly one Content-Length, a decimal number."),
    ("url", "The request target cannot be used: it holds characters that must be percent-encoded."),
    ("method", "This is not HTTP, or an unknown method; send plain HTTP/1.1 (https:// needs the TLS port)."),
    ("header", "A header line is malformed: no spaces before the colon, no folded lines, no control characters."),
    (
        "after start line",
        "A header line is malformed: no spaces before the colon, no folded lines, no control characters.",
    ),
)


def _version_problem(version: str) -> Problem:
    """A 505."""
    return Problem(
        Kind.BAD_REQUEST, f"{version} is not served here; use HTTP/1.1, or a proxy in front that speaks it.", status=505
    )


def _bad(message: str, detail: str = "") -> Problem:
    """A 400."""
    return Problem(Kind.BAD_REQUEST, message, detail=detail)


HEAD_TOO_LARGE: Final = Problem(
    Kind.BAD_REQUEST, f"The request's head is larger than {MAX_HEAD} bytes; send fewer or shorter headers.", status=431
)
TOO_MANY_FIELDS: Final = Problem(
    Kind.BAD_REQUEST, f"The request has more than {MAX_FIELDS} headers; send fewer.", status=431
)
FRAMING_TOO_LARGE: Final = Problem(
    Kind.BAD_REQUEST, "The body's chunk extensions or trailers are too large; send none.", status=431
)
CODING_UNKNOWN: Final = Problem(
    Kind.BAD_REQUEST, "The only Transfer-Encoding served here is `chunked`, once and alone.", status=501
)
