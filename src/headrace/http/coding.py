"""Content codings: undoing what a peer applied to a body, piece by piece and bounded (RFC 9110 section 8.4)."""

import zlib
from collections.abc import Iterator

PIECE = 256 * 1024
"""Most bytes that one step of decoding gives out, however far the input expands."""


class CodingError(Exception):
    """The bytes are not what their Content-Encoding says."""


class Inflater:
    """Decodes gzip (also several members) or deflate (with or without the zlib wrapper that RFC 9110 asks for)."""

    __slots__ = ("_gzip", "_machine", "_started")

    def __init__(self, gzip: bool) -> None:
        self._gzip = gzip
        self._started = False
        self._machine = zlib.decompressobj(zlib.MAX_WBITS | 16 if gzip else zlib.MAX_WBITS)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decoded bytes of `data`, in pieces of at most PIECE. Raises CodingError."""
        if not self._gzip and not self._started and data and data[0] & 0x0F != 8:
            self._machine = zlib.decompressobj(-zlib.MAX_WBITS)
        self._started = self._started or bool(data)
        while data:
            try:
                piece = self._machine.decompress(data, PIECE)
            except zlib.error as error:
                raise CodingError(str(error)) from None
            if piece:
                yield piece
            data = self._machine.unconsumed_tail
            if self._machine.eof:
                data = self._machine.unused_data
                if not self._gzip or not data:
                    return
                self._machine = zlib.decompressobj(zlib.MAX_WBITS | 16)


def decoder(coding: bytes | None) -> Inflater | None:
    """What undoes `coding`, one Content-Encoding's value; None for identity. Raises CodingError where it is not
    known."""
    name = (coding or b"identity").strip().lower()
    if name in (b"identity", b""):
        return None
    if name in (b"gzip", b"x-gzip"):
        return Inflater(gzip=True)
    if name == b"deflate":
        return Inflater(gzip=False)
    raise CodingError(f"the coding {name[:40]!r} is not known")
