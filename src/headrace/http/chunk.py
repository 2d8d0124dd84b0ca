"""Frames of the chunked transfer coding (RFC 9112 section 7.1), for writing; reading is llhttp's.

A frame is the size in hex, CRLF, the data, CRLF. A frame of no data would be the end of the body, so none is ever made.
"""

from typing import Final

FRAME: Final = b"%x\r\n%b\r\n"
"""One frame: `FRAME % (len(data), data)`. The hot path formats it in place, which saves a call (60 ns)."""

SIZE: Final = b"%x\r\n"
CRLF: Final = b"\r\n"

LAST: Final = b"0\r\n\r\n"
"""The last chunk and an empty trailer section: the end of the body."""


MOST_READ: Final = 1024
"""Reads below this size are looked up in HEADS."""

HEADS: Final = tuple(
    next(
        (
            head
            for head in (SIZE % max(1, size - digits - 4) for digits in (1, 2, 3))
            if len(head) + int(head, 16) + 2 == size
        ),
        b"none",
    )
    for size in range(MOST_READ)
)
"""By the size of a read: how it begins if it is exactly one frame as FRAME makes them."""


def frame(data: bytes) -> bytes:
    """`data` as one chunk; nothing for nothing."""
    return FRAME % (len(data), data) if data else b""


def data_of(framed: bytes) -> bytes:
    """What `frame` was given."""
    return framed[framed.index(b"\n") + 1 : -2]


def frame_parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """One chunk in three pieces, so that large data is not copied. `data` must not be empty."""
    if not data:
        raise ValueError("an empty chunk would end the body")
    return SIZE % len(data), data, CRLF
