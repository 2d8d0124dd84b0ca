"""A record is read as it was written, or not at all."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.journal.record import MAGIC, MOST_RECORD_BYTES, frame, records
from headrace.model.entry import Record
from tests.journal.entries import entry, opened

RECORDS: list[Record] = [opened(1), entry(1), opened(2), entry(2)]
SEGMENT = MAGIC + b"".join(frame(record) for record in RECORDS)


def test_what_was_written_is_read() -> None:
    assert list(records(SEGMENT)) == RECORDS
    assert list(records(MAGIC)) == []


def test_cut_at_every_byte() -> None:
    """A torn tail hides itself and nothing before it; a beginning that is torn holds nothing."""
    ends = [len(MAGIC)]
    for record in RECORDS:
        ends.append(ends[-1] + len(frame(record)))
    for size in range(len(SEGMENT) + 1):
        whole = sum(1 for end in ends[1:] if end <= size)
        assert list(records(SEGMENT[:size])) == RECORDS[:whole]


def test_every_bit_flipped() -> None:
    """No flip invents a record, or changes one."""
    small = MAGIC + frame(opened(1)) + frame(opened(2))
    both = [opened(1), opened(2)]
    for bit in range(len(small) * 8):
        flipped = bytearray(small)
        flipped[bit // 8] ^= 1 << bit % 8
        if bit < len(MAGIC) * 8:
            with pytest.raises(ValueError, match="format 1"):
                list(records(bytes(flipped)))
            continue
        read = list(records(bytes(flipped)))
        assert read in ([], both[:1]), "the flipped one and all behind it are no records"
        assert len(read) == (1 if bit >= (len(MAGIC) + len(frame(opened(1)))) * 8 else 0)


@pytest.mark.parametrize("tail", [b"\0", b"\0" * 8, b"\0" * 4096, b"\xff" * 64, b"\0\0\0\x05\0\0\0\0hello"])
def test_a_tail_of_rubbish(tail: bytes) -> None:
    """A power cut leaves zeros behind, and so does preallocation; eight of them are a length and a right checksum."""
    assert list(records(SEGMENT + tail)) == RECORDS


@given(st.binary(max_size=200))
def test_no_tail_makes_it_raise(tail: bytes) -> None:
    assert list(records(SEGMENT + tail))[: len(RECORDS)] == RECORDS


def test_a_length_without_end() -> None:
    payload = b"x" * 10
    huge = struct.pack(">II", MOST_RECORD_BYTES + 1, zlib.crc32(payload)) + payload
    assert list(records(SEGMENT + huge)) == RECORDS


@pytest.mark.parametrize("segment", [b"x", b"headrace journal 2\n", b"HEADRACE"])
def test_another_format(segment: bytes) -> None:
    with pytest.raises(ValueError, match="format 1"):
        list(records(segment))


def test_a_record_that_no_reader_would_take() -> None:
    """It would hide all that is written behind it."""
    assert len(frame(entry(1, reason="x" * 1000))) < 4096
    with pytest.raises(ValueError, match="bytes"):
        frame(entry(1, reason="x" * MOST_RECORD_BYTES))
