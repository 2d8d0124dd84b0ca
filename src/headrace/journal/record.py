"""How a record stands in a segment: four bytes of length, four of CRC-32, then MessagePack (big-endian, both over the
payload).

A segment begins with MAGIC, which carries the format's number. A record that is cut short or does not match its
checksum is
a torn tail: it and all behind it are not records.
"""

import struct
import zlib
from collections.abc import Iterator

import msgspec

from headrace.model.entry import Checkpoint, Entry, Opened, Record
from headrace.model.usage import Usage

MAGIC = b"headrace journal 1\n"
MOST_RECORD_BYTES = 1024 * 1024
_FRAME = struct.Struct(">II")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


def frame(record: Record) -> bytes:
    """One record as it is written. ValueError for one that no reader would take, and all behind it neither."""
    payload = _encode(record)
    if len(payload) > MOST_RECORD_BYTES:
        raise ValueError(f"a record of {len(payload)} bytes")
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def reduced(record: Record) -> Record:
    """What `frame` takes in any case: who, when and how it ended, without what an upstream or a client may have made
    unwritable. The usage says so: not `none`, which is no report, but inconsistent."""
    if isinstance(record, Checkpoint):
        return Checkpoint(id=record.id, duration_s=record.duration_s, usage=Usage(inconsistent=("unencodable",)))
    if isinstance(record, Opened):
        return Opened(
            id=record.id,
            at=record.at,
            protocol=record.protocol,
            operation=_plain(record.operation),
            key=_plain(record.key),
            owner=_plain(record.owner),
            model=_plain(record.model),
            stream=record.stream,
        )
    return Entry(
        id=record.id,
        at=record.at,
        duration_s=record.duration_s,
        protocol=record.protocol,
        operation=_plain(record.operation),
        key=_plain(record.key),
        owner=_plain(record.owner),
        model=_plain(record.model),
        stream=record.stream,
        end=record.end,
        reason=_plain(record.reason),
        kind=_plain(record.kind),
        source=_plain(record.source),
        status=record.status if record.status is not None and 0 <= record.status <= 999 else None,
        usage=Usage(inconsistent=("unencodable",)),
        early_open=record.early_open,
    )


def _plain(text: str) -> str:
    return text[:200].encode("utf-8", "replace").decode("utf-8")


def records(segment: bytes) -> Iterator[Record]:
    """The whole records of a segment, in order, up to its end or to a torn tail.

    A beginning that is cut short is a torn tail too. ValueError where it does not begin as a segment of this format.
    """
    if not segment.startswith(MAGIC):
        if MAGIC.startswith(segment):
            return
        raise ValueError("not a journal segment of format 1")
    position = len(MAGIC)
    while position + _FRAME.size <= len(segment):
        length, checksum = _FRAME.unpack_from(segment, position)
        start = position + _FRAME.size
        payload = segment[start : start + length]
        if not 0 < length <= MOST_RECORD_BYTES or len(payload) < length or zlib.crc32(payload) != checksum:
            # Length 0: what a power cut leaves behind is often zeros, and the checksum of nothing is 0 too.
            return
        yield _decode(payload)
        position = start + length
