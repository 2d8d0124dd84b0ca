"""Content codings: undoing what a peer applied to a body, in pieces and bounded (RFC 9110 section 8.4).

| coding | as |
| --- | --- |
| gzip, x-gzip | also several members one after the other |
| deflate | with the zlib wrapper that the standard asks for, or without it, as many clients send it |
| br | |
| zstd | also several frames one after the other |
"""

import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Protocol

import brotli
import zstandard

from headrace.model.problem import Kind, Problem

PIECE = 256 * 1024
"""About the most bytes that one step of decoding gives out, however far the input expands."""
MOST_CODINGS = 3
"""How many codings one body may have on top of each other."""

Charge = Callable[[int], Problem | None]
"""Told of bytes that a body takes from now on (negative: gives back); says why it cannot have them."""


class CodingError(Exception):
    """The bytes are not what their Content-Encoding says, or it is not known."""


class Decoder(Protocol):
    """Undoes one coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decoded bytes of `data`, piece by piece. Raises CodingError."""

    @property
    def complete(self) -> bool:
        """Whether what was fed is whole."""


class Zlib:
    """gzip or deflate."""

    __slots__ = ("_gzip", "_machine", "_started")

    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._started = False
        self._machine = zlib.decompressobj(zlib.MAX_WBITS | 16 if gzip else zlib.MAX_WBITS)

    @property
    def complete(self) -> bool:
        """Whether the last member is whole."""
        return self._machine.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decoded bytes of `data`, in pieces of at most PIECE."""
        if data and not self._started:
            self._started = True
            if (
                not self._gzip and data[0] & 0x0F != 8
            ):  # no zlib header: method 8 stands in the low bits of its first byte
                self._machine = zlib.decompressobj(-zlib.MAX_WBITS)
        more = False  # a full piece may not have been all: zlib has taken the input then, and keeps output back
        while data or more:
            if self._machine.eof:
                if not self._gzip:
                    raise CodingError("there are bytes behind its end")
                self._machine = zlib.decompressobj(zlib.MAX_WBITS | 16)
            try:
                piece = self._machine.decompress(data, PIECE)
            except zlib.error as error:
                raise CodingError(str(error)) from None
            if piece:
                yield piece
            data = self._machine.unused_data if self._machine.eof else self._machine.unconsumed_tail
            more = len(piece) == PIECE and not self._machine.eof


class Brotli:
    """br."""

    __slots__ = ("_machine",)

    def __init__(self) -> None:
        self._machine = brotli.Decompressor()

    @property
    def complete(self) -> bool:
        """Whether the stream is whole."""
        return bool(self._machine.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decoded bytes of `data`, in pieces of about PIECE."""
        while True:
            try:
                piece = self._machine.process(data, output_buffer_limit=PIECE)
            except brotli.error as error:
                raise CodingError(str(error)) from None
            data = b""
            if piece:
                yield piece
            more = len(piece) >= PIECE or not self._machine.can_accept_more_data()  # of a full piece it may say it can
            if not more or self._machine.is_finished():
                return


class Zstd:
    """zstd. Input is fed in small steps, since one step's output is only bounded by the input's size."""

    __slots__ = ("_fed", "_machine")

    _STEP = 256

    def __init__(self) -> None:
        self._machine = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        self._fed = False

    @property
    def complete(self) -> bool:
        """Whether the last frame is whole."""
        return self._fed and bool(self._machine.eof)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decoded bytes of `data`: at most a few of zstd's blocks (128 KiB) at a time."""
        position = 0
        while position < len(data):
            self._fed = True
            step = data[position : position + self._STEP]
            position += len(step)
            yield from self._step(step)

    def _step(self, step: bytes) -> Iterator[bytes]:
        while step:
            if self._machine.eof:
                self._machine = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
            try:
                piece = self._machine.decompress(step)
            except zstandard.ZstdError as error:
                raise CodingError(str(error)) from None
            if piece:
                yield piece
            step = self._machine.unused_data if self._machine.eof else b""


def decoder(coding: bytes | None) -> Decoder | None:
    """What undoes `coding`, the value of a Content-Encoding with one coding; None for identity. Raises CodingError."""
    match (coding or b"").strip().lower():
        case b"" | b"identity":
            return None
        case b"gzip" | b"x-gzip":
            return Zlib(gzip=True)
        case b"deflate":
            return Zlib(gzip=False)
        case b"br":
            return Brotli()
        case b"zstd":
            return Zstd()
    raise CodingError(f"the coding {(coding or b'')[:40]!r} is not known")


def uncounted(extra: int) -> Problem | None:
    """Takes any number of bytes."""
    return None


def decode_body(body: bytes, encoding: bytes, limit: int, charge: Charge = uncounted) -> bytes | Problem:
    """A whole body without its codings, the last applied undone first; at most `limit` bytes.

    `charge` hears of the bytes of each piece as it comes, and that they are gone: of each encoded body when it is
    done with, and of what was decoded up to a problem.
    Problems: unsupported_encoding (415), bad_request (a broken or cut body), payload_too_large (decoded).
    """
    names = [name.strip() for name in encoding.split(b",")]
    if len(names) > MOST_CODINGS:
        return Problem(Kind.BAD_REQUEST, f"The body has more than {MOST_CODINGS} encodings. Send it plain.")
    for name in reversed(names):
        try:
            coding = decoder(name)
        except CodingError:
            return Problem(
                Kind.UNSUPPORTED_ENCODING,
                "The body has an encoding that is not known here. Send it plain, or as gzip, deflate, br or zstd.",
            )
        if coding is None:
            continue
        decoded = _decode(body, coding, limit, charge)
        if isinstance(decoded, Problem):
            return decoded
        charge(-len(body))
        body = decoded
    return body


def _decode(body: bytes, coding: Decoder, limit: int, charge: Charge) -> bytes | Problem:
    decoded = BytesIO()  # gives its bytes out without a copy
    problem = _fill(decoded, body, coding, limit, charge)
    if problem is not None:
        charge(-decoded.tell())
        return problem
    return decoded.getvalue()


def _fill(decoded: BytesIO, body: bytes, coding: Decoder, limit: int, charge: Charge) -> Problem | None:
    """Write what `body` decodes to; every byte written has been charged."""
    size = 0
    try:
        for piece in coding.feed(body):
            size += len(piece)
            if size > limit:
                return Problem(
                    Kind.PAYLOAD_TOO_LARGE,
                    f"The decoded body is larger than the {limit} bytes that are taken; send less.",
                )
            problem = charge(len(piece))
            if problem is not None:
                return problem
            decoded.write(piece)
    except CodingError as error:
        return Problem(Kind.BAD_REQUEST, f"The body is not what its Content-Encoding says: {error}.")
    if not coding.complete:
        return Problem(Kind.BAD_REQUEST, "The encoded body is cut short. Send the whole of it.")
    return None
