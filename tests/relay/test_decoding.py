"""A compressed stream is relayed as what it says; what cannot be decoded is a cut."""

import zlib

import pytest

from headrace.http.coding import decoder
from headrace.model.wire import BodyEnd
from headrace.relay.decoding import Decoding


class Receiver:
    """Notes what comes."""

    def __init__(self) -> None:
        self.data = b""
        self.ends: list[BodyEnd] = []

    def body(self, data: bytes) -> None:
        """Some bytes."""
        assert data and not self.ends
        self.data += data

    def body_end(self, end: BodyEnd) -> None:
        """The end."""
        self.ends.append(end)


def decoding(coding: bytes = b"gzip") -> tuple[Receiver, Decoding]:
    receiver = Receiver()
    undo = decoder(coding)
    assert undo is not None
    return receiver, Decoding(receiver, undo)


def gzip(text: bytes) -> bytes:
    machine = zlib.compressobj(wbits=31)
    return machine.compress(text) + machine.flush()


def test_decoded_byte_by_byte() -> None:
    receiver, it = decoding()
    for byte in gzip(b"data: x\n\n" * 100):
        it.body(bytes([byte]))
    it.body_end(BodyEnd.FRAMED)
    assert receiver.data == b"data: x\n\n" * 100 and receiver.ends == [BodyEnd.FRAMED]


def test_what_cannot_be_decoded_is_a_cut() -> None:
    receiver, it = decoding()
    it.body(b"no gzip at all, but long enough to know")
    it.body(b"more")
    it.body_end(BodyEnd.FRAMED)
    assert receiver.ends == [BodyEnd.CUT], "once"


@pytest.mark.parametrize("end", list(BodyEnd))
def test_an_end_before_the_codings_own_is_a_cut(end: BodyEnd) -> None:
    machine = zlib.compressobj(wbits=31)
    flushed = machine.compress(b"data: x\n\n") + machine.flush(zlib.Z_SYNC_FLUSH)
    receiver, it = decoding()
    it.body(flushed)
    it.body_end(end)
    assert receiver.data == b"data: x\n\n" and receiver.ends == [BodyEnd.CUT]
    receiver, it = decoding()
    it.body(flushed + machine.flush())
    it.body_end(end)
    assert receiver.ends == [end], "as the framing says"
