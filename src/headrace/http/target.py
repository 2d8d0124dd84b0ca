"""Request targets (RFC 9112 section 3.2): what of them is safe to route by, split into path and query.

| form | answer |
| --- | --- |
| `/path?query` | taken; percent-encoding stays as it came |
| `http://host/path?query` | path and query are taken, the authority is dropped; it may hold no user information |
| `*` | with OPTIONS only |
| `host:port` | 405, with its method CONNECT |

Refused with 400, because two readers could take them for different things: a leading `//`, a backslash (also `%5C`),
dot segments, a `#`, bytes that are not printable ASCII, encoded control characters, and a percent sign without two hex
digits. Dot segments are looked for after one decoding of `%2E` and `%2F`, so `/a%2F%2E%2E%2Fb` holds one. An encoded
slash alone is allowed and stays encoded: it is how SDKs write a model name that holds a slash into a path.
"""

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import unquote_plus

from headrace.model.problem import Kind, Problem

REFUSED_METHODS: Final = frozenset({"CONNECT", "TRACE"})

_PLAIN = re.compile(rb"(/(?!/)[a-zA-Z0-9/._:@!$&'()*+,;=~-]*)(?:\?([!-\"$-~]*))?")
"""An origin-form target that is safe if no segment begins with a dot: no `//` in front, no percent sign in the path,
and in the query printable ASCII without `#`."""

_PRINTABLE = re.compile(rb"[!-~]+")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE)
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_ENCODED_DANGER = re.compile(rb"%(?:[01][0-9A-F]|7F|5C)", re.IGNORECASE)
_DOT = re.compile(rb"%2E", re.IGNORECASE)
_SLASH = re.compile(rb"%2F", re.IGNORECASE)


def split_target(method: str, target: bytes) -> tuple[str, str] | Problem:
    """`target` as (path, query), or why it is refused (400, 405). The query comes without its `?`; it may be empty."""
    if method in REFUSED_METHODS:
        return Problem(
            Kind.METHOD_NOT_ALLOWED,
            f"{method} is not available here; send API calls with GET or POST to this server directly.",
            allow="GET, HEAD, POST, DELETE, OPTIONS",
        )
    plain = _PLAIN.fullmatch(target)
    if plain is not None and b"/." not in target:
        path, query = plain.groups()
        return path.decode("ascii"), query.decode("ascii") if query else ""
    if target == b"*":
        if method == "OPTIONS":
            return "*", ""
        return _bad("the target `*` belongs to OPTIONS")
    origin = _origin_form(target)
    if isinstance(origin, Problem):
        return origin
    path, _, query = origin.partition(b"?")
    return _path_problem(path) or (path.decode("ascii"), query.decode("ascii"))


def without_key(query: str) -> str:
    """`query` without the client's key (`key=`, however its name is spelled); all other bytes stay."""
    return without_fields(query, {"key"}) if "=" in query else query


def without_fields(query: str, names: Collection[str]) -> str:
    """`query` without the fields called one of `names` (decoded), however that is spelled; all other bytes stay."""
    return "&".join(part for part in query.split("&") if unquote_plus(part.partition("=")[0]) not in names)


def _origin_form(target: bytes) -> bytes | Problem:
    """The part from the path on; printable ASCII without a fragment."""
    if not _PRINTABLE.fullmatch(target):
        return _bad("it holds bytes that must be percent-encoded")
    if b"#" in target:
        return _bad("a fragment (`#`) is not part of a request target")
    if target.startswith(b"/"):
        return target
    absolute = _ABSOLUTE.fullmatch(target)
    if absolute is None:
        return _bad("it must begin with `/`, or be an http address")
    authority, rest = absolute.groups()
    if not authority or b"@" in authority:
        return _bad("an absolute target needs a host and no user information")
    return rest if rest.startswith(b"/") else b"/" + rest


def _path_problem(path: bytes) -> Problem | None:
    """Why `path` cannot be routed by, or None."""
    if path.startswith(b"//"):
        return _bad("it begins with `//`; take the doubled slash out of the base URL")
    if b"\\" in path or _BAD_ESCAPE.search(path) or _ENCODED_DANGER.search(path):
        return _bad("its path holds a backslash, an encoded control character or a broken percent-encoding")
    segments = _SLASH.sub(b"/", _DOT.sub(b".", path)).split(b"/")
    if b"." in segments or b".." in segments:
        return _bad("its path holds `.` or `..` segments; send the path that they lead to")
    return None


def _bad(reason: str) -> Problem:
    """A 400 that says what is wrong with the target."""
    return Problem(Kind.BAD_REQUEST, f"The request target cannot be used: {reason}.")
