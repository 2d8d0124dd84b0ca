"""How records stand in a segment, and how they are found again there, whatever happened to the bytes between them.

    head    "headrace journal 2 " + CRC-32 of that, in hex, and LF
    frame   MARKER, length (4 bytes), CRC-32 (4 bytes, over length and payload), payload: one record as MessagePack
    ...

Numbers are big-endian. Every checksum begins from the incarnation's name, which nobody outside knows, and the marker
is no UTF-8: so no text that a client or an upstream sends can stand in a payload and be taken for a frame. A reader
that finds no whole frame where one should begin looks for the next: it loses what was damaged, nothing behind it, and
invents nothing.
"""

import re
import struct
import zlib
from enum import Enum
from typing import NamedTuple

import msgspec

from headrace.model.entry import Checkpoint, Entry, Opened, Record
from headrace.model.usage import Usage

FORMAT = 2
MARKER = b"\xc1\xffHR"
"""Bytes that no text holds, nor begins any value in MessagePack."""
MOST_RECORD_BYTES = 64 * 1024
"""A payload's. An entry has at most 4 KiB; what is larger is reduced."""
_FRAME = struct.Struct(">4sII")
_length = struct.Struct(">I").pack
MOST_FRAME_BYTES = _FRAME.size + MOST_RECORD_BYTES
_HEAD = re.compile(rb"headrace journal ([0-9]{1,9}) ([0-9a-f]{8})\n")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Record).decode


class Rest(Enum):
    """What lies behind the bytes that are scanned."""

    MORE = "more"
    """More of the same file."""
    LIVE = "live"
    """Its end, where the worker may be about to write."""
    NOTHING = "nothing"
    """Its end, and nobody writes there again."""


class Scan(NamedTuple):
    """The records that were found, where to go on, and how many bytes before that were no record."""

    records: list[Record]
    end: int
    damaged: int


class FormatError(OSError):
    """A segment of a format that this version does not read. Nothing is wrong with it."""


def seed_of(incarnation: str) -> int:
    """What every checksum of an incarnation begins from."""
    return zlib.crc32(incarnation.encode())


def head(seed: int, number: int = FORMAT) -> bytes:
    """What a segment begins with."""
    text = b"headrace journal %d " % number
    return b"%b%08x\n" % (text, zlib.crc32(text, seed))


HEAD_BYTES = len(head(0))


def head_size(segment: bytes, seed: int) -> int:
    """Bytes of the head that `segment` begins with; 0 where that is damaged. FormatError for another format's."""
    found = _HEAD.match(segment)
    if found is None or head(seed, int(found[1])) != found[0]:
        return 0
    if int(found[1]) != FORMAT:
        raise FormatError(f"it has format {int(found[1])}, and this version of headrace reads {FORMAT}")
    return found.end()


def frame(record: Record, seed: int) -> bytes:
    """One record as it is written. ValueError for one that no reader would take."""
    payload = _encode(record)
    size = len(payload)
    if size > MOST_RECORD_BYTES:
        raise ValueError(f"a record of {size} bytes")
    return _FRAME.pack(MARKER, size, zlib.crc32(payload, zlib.crc32(_length(size), seed))) + payload


def frame_end(data: bytes, at: int, seed: int) -> int:
    """Where the frame that begins at `at` ends; 0 where no whole one begins there."""
    if data[at : at + 4] != MARKER or at + _FRAME.size > len(data):
        return 0
    _, length, checksum = _FRAME.unpack_from(data, at)
    start = at + _FRAME.size
    end: int = start + length
    if not 0 < length <= MOST_RECORD_BYTES or end > len(data):
        return 0
    return end if zlib.crc32(data[start:end], zlib.crc32(data[at + 4 : at + 8], seed)) == checksum else 0


def next_frame(data: bytes, at: int, seed: int) -> int:
    """Where the first whole frame at or behind `at` begins; -1 where there is none."""
    at = data.find(MARKER, at)
    while at >= 0 and not frame_end(data, at, seed):
        at = data.find(MARKER, at + 1)
    return at


def scan(data: bytes, seed: int, start: int, most: int, rest: Rest) -> Scan:
    """The records of the frames that begin from `start` on and before `most`.

    With more of the file behind it `data` must reach MOST_FRAME_BYTES beyond `most`. At a live end a frame that is not
    whole is waited for, and `end` stays before it: that it is damaged is known only once a whole one stands behind it.
    Scanning on from `end`, with what has come since, finds the same as scanning all at once.
    """
    records: list[Record] = []
    damaged, at = 0, start
    while at < most and at < len(data):
        end = frame_end(data, at, seed)
        if end:
            try:
                records.append(_decode(data[at + _FRAME.size : end]))
            except msgspec.MsgspecError:  # whole, and yet no record that this version knows
                damaged += end - at
            at = end
            continue
        found = next_frame(data, at + 1, seed)
        if found < 0:
            stop = _stop(data, at, rest)
            return Scan(records, stop, damaged + stop - at)
        damaged += found - at
        at = found
    return Scan(records, at, damaged)


def _stop(data: bytes, at: int, rest: Rest) -> int:
    """How far all is known to be damaged, where no whole frame is in sight from `at` on."""
    match rest:
        case Rest.MORE:
            return max(at, len(data) - MOST_FRAME_BYTES + 1)  # one that begins there may end out of sight
        case Rest.LIVE:
            return at
        case Rest.NOTHING:
            return len(data)


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
            client_request_id=_plain(record.client_request_id),
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
        money=record.money,
        early_open=record.early_open,
        client_request_id=_plain(record.client_request_id),
    )


def _plain(text: str) -> str:
    return text[:200].encode("utf-8", "replace").decode("utf-8")
