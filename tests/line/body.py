"""A reply's body compared with its entry: where the insertions stand, and what is left without them."""

import hashlib

from tests.stand.client import Reply
from tests.stand.stand import Stand


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def delivered(stand: Stand, model: str, reply: Reply) -> bytes:
    """The client's body without the insertions, cut out as the entry says where they are; its hash is the entry's."""
    entry = stand.entry(model)
    assert entry.id == reply.id
    body = bytearray(reply.body)
    for offset, length in reversed(entry.wire.insertions):
        del body[offset : offset + length]
    assert sha256(bytes(body)) == entry.wire.hash_in == entry.wire.hash_out
    assert len(body) == entry.wire.released
    assert len(reply.body) - len(body) == entry.wire.inserted
    return bytes(body)


def assert_whole_events(reply: Reply) -> None:
    """Every write ended at an event boundary."""
    for piece in reply.pieces:
        assert piece.data.endswith(b"\n\n"), piece.data[-80:]
