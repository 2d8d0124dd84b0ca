"""Whatever happens to the bytes of a segment: what is whole is read, in order, and nothing else is."""

import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.journal.record import (
    HEAD_BYTES,
    MARKER,
    MOST_FRAME_BYTES,
    MOST_RECORD_BYTES,
    FormatError,
    Rest,
    Scan,
    frame,
    frame_end,
    head,
    head_size,
    next_frame,
    reduced,
    scan,
    seed_of,
)
from headrace.model.entry import Checkpoint, Entry, Opened, Record
from headrace.model.usage import Usage
from tests.journal.entries import NAME, SEED, checkpoint, entry, opened

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
counts = st.integers(0, 2**63 - 1)
records = st.one_of(
    st.builds(Opened, id=texts, at=st.floats(0, 2e9), protocol=texts, key=texts, model=texts, stream=st.booleans()),
    st.builds(Checkpoint, id=texts, duration_s=st.floats(0, 1e6), usage=st.builds(Usage, output_total=counts)),
    st.builds(
        Entry,
        id=texts,
        at=st.floats(0, 2e9),
        duration_s=st.floats(0, 1e6),
        protocol=texts,
        operation=texts,
        key=texts,
        end=texts,
        reason=texts,
        detail=texts,
        usage=st.builds(Usage, input_total=counts, output_total=counts),
    ),
)
lists = st.lists(records, max_size=6, unique_by=lambda record: frame(record, SEED))
RECORDS: list[Record] = [opened(1), entry(1), checkpoint(2), opened(3), entry(2)]


def frames(of: list[Record]) -> list[bytes]:
    return [frame(record, SEED) for record in of]


def all_of(data: bytes, rest: Rest = Rest.NOTHING, most: int = 1 << 30) -> Scan:
    return scan(data, SEED, 0, most, rest)


# ---- whole


@given(lists)
def test_what_was_written_is_read(of: list[Record]) -> None:
    data = b"".join(frames(of))
    for rest in (Rest.NOTHING, Rest.LIVE):
        assert all_of(data, rest) == Scan(of, len(data), 0)


def test_a_record_that_no_reader_would_take() -> None:
    fixed = len(frame(entry(1, reason=""), SEED))
    largest = entry(1, reason="x" * (MOST_FRAME_BYTES - fixed - 2))  # its length takes two bytes more
    assert len(frame(largest, SEED)) == MOST_FRAME_BYTES
    assert all_of(frame(largest, SEED)).records == [largest]
    with pytest.raises(ValueError, match="bytes"):
        frame(entry(1, reason="x" * MOST_RECORD_BYTES), SEED)


@pytest.mark.parametrize("length", [0, MOST_RECORD_BYTES + 1])
def test_a_length_that_no_writer_writes(length: int) -> None:
    """A power cut leaves zeros behind; and nobody waits for a length without end."""
    payload = b"x" * length
    forged = struct.pack(">4sI", MARKER, length)
    forged += zlib.crc32(payload, zlib.crc32(forged[4:], SEED)).to_bytes(4) + payload
    assert frame_end(forged, 0, SEED) == 0
    assert all_of(forged + frame(entry(1), SEED)) == Scan(
        [entry(1)], len(forged) + len(frame(entry(1), SEED)), len(forged)
    )


def test_a_whole_frame_that_holds_no_record_is_damage() -> None:
    """Such as one of a later version, or a text that is none."""
    first, last = frames([entry(1), entry(2)])
    for payload in (b"\x81\xa4type\xa6future", b"\xc0", b"\x81\xa4type\xa2\xff\xff"):
        length = len(payload).to_bytes(4)
        odd = MARKER + length + zlib.crc32(payload, zlib.crc32(length, SEED)).to_bytes(4) + payload
        data = first + odd + last
        assert all_of(data) == Scan([entry(1), entry(2)], len(data), len(odd))
        assert all_of(first + odd, Rest.LIVE) == Scan([entry(1)], len(first + odd), len(odd)), "it is there in full"


# ---- the head


def test_a_head_is_known_again() -> None:
    assert head(SEED).startswith(b"headrace journal 2 ") and len(head(SEED)) == HEAD_BYTES
    assert head_size(head(SEED) + b"more", SEED) == HEAD_BYTES
    for size in range(HEAD_BYTES):
        assert head_size(head(SEED)[:size], SEED) == 0
    assert head_size(head(seed_of("another")), SEED) == 0


@pytest.mark.parametrize("number", [1, 3, 12])
def test_another_format_is_no_damage(number: int) -> None:
    with pytest.raises(FormatError, match=f"has format {number}, and this version of headrace reads 2"):
        head_size(head(SEED, number), SEED)


def test_a_bit_of_a_head_makes_no_other_format() -> None:
    for bit in range(HEAD_BYTES * 8):
        assert head_size(flipped(head(SEED), bit), SEED) == 0


# ---- truncated


@given(lists, st.data())
def test_truncated(of: list[Record], data: st.DataObject) -> None:
    """What is whole before the cut is read. At a live end the rest is waited for, at a dead one it is damage."""
    all_frames = frames(of)
    whole = b"".join(all_frames)
    size = data.draw(st.integers(0, len(whole)))
    kept: list[Record] = []
    end = 0
    for record, one in zip(of, all_frames, strict=True):
        if end + len(one) > size:
            break
        kept.append(record)
        end += len(one)
    assert all_of(whole[:size], Rest.LIVE) == Scan(kept, end, 0)
    assert all_of(whole[:size], Rest.NOTHING) == Scan(kept, size, size - end)


def test_cut_at_every_byte() -> None:
    whole = b"".join(frames(RECORDS))
    ends = [0]
    for one in frames(RECORDS):
        ends.append(ends[-1] + len(one))
    for size in range(len(whole) + 1):
        count = sum(1 for end in ends[1:] if end <= size)
        assert all_of(whole[:size], Rest.LIVE) == Scan(RECORDS[:count], ends[count], 0)


# ---- damaged


def flipped(data: bytes, *bits: int) -> bytes:
    changed = bytearray(data)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_bit_flipped() -> None:
    """It costs the record that it is in, and no other."""
    all_frames = frames(RECORDS)
    whole = b"".join(all_frames)
    start = 0
    for number, one in enumerate(all_frames):
        others = RECORDS[:number] + RECORDS[number + 1 :]
        for bit in range(start * 8, (start + len(one)) * 8):
            assert all_of(flipped(whole, bit)) == Scan(others, len(whole), len(one))
        start += len(one)


@given(lists, st.data())
def test_bits_flipped(of: list[Record], data: st.DataObject) -> None:
    all_frames = frames(of)
    whole = b"".join(all_frames)
    bits = data.draw(st.sets(st.integers(0, max(len(whole) * 8 - 1, 0)), max_size=min(6, len(whole))))
    broken = flipped(whole, *bits)
    kept: list[Record] = []
    damaged = start = 0
    for record, one in zip(of, all_frames, strict=True):
        if broken[start : start + len(one)] == one:
            kept.append(record)
        else:
            damaged += len(one)
        start += len(one)
    assert all_of(broken) == Scan(kept, len(whole), damaged)


@given(lists, st.binary(min_size=1, max_size=200), st.data())
def test_a_block_that_was_put_in(of: list[Record], block: bytes, data: st.DataObject) -> None:
    """A frame with a block inside it is not whole; all others are. What is damaged are the block and that frame."""
    all_frames = frames(of)
    whole = b"".join(all_frames)
    at = data.draw(st.integers(0, len(whole)))
    kept: list[Record] = []
    damaged, start = len(block), 0
    for record, one in zip(of, all_frames, strict=True):
        if start < at < start + len(one) and (whole[:at] + block + whole[at:]).find(one, start) < 0:
            damaged += len(one)
        else:
            kept.append(record)
        start += len(one)
    assert all_of(whole[:at] + block + whole[at:]) == Scan(kept, len(whole) + len(block), damaged)


@given(lists, st.data())
def test_a_block_that_was_taken_out(of: list[Record], data: st.DataObject) -> None:
    all_frames = frames(of)
    whole = b"".join(all_frames)
    first, last = sorted((data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, len(whole)))))
    kept: list[Record] = []
    whole_bytes = start = 0
    for record, one in zip(of, all_frames, strict=True):
        end = start + len(one)
        if end <= first or start >= last or first == last:
            kept.append(record)
            whole_bytes += len(one)
        start = end
    broken = whole[:first] + whole[last:]
    found = all_of(broken)
    assert found.end == len(broken)
    if len(found.records) == len(kept):
        assert found == Scan(kept, len(broken), len(broken) - whole_bytes)
        return
    # Equal bytes may close a gap: of two frames that begin or end alike, the rest of both may be one of them, whole.
    left = iter(found.records)
    assert all(record in left for record in kept), "in their order, what else there is between them"
    assert all(record in of for record in found.records)


@given(st.binary(max_size=400))
def test_rubbish_holds_no_record(rubbish: bytes) -> None:
    assert all_of(rubbish) == Scan([], len(rubbish), len(rubbish))
    assert all_of(rubbish, Rest.LIVE) == Scan([], 0, 0), "it may still become something"


@pytest.mark.parametrize("tail", [b"\0", b"\0" * 4096, b"\xff" * 64, MARKER, MARKER * 9, MARKER + b"\0" * 12])
def test_a_tail_of_rubbish(tail: bytes) -> None:
    data = b"".join(frames(RECORDS)) + tail
    assert all_of(data) == Scan(RECORDS, len(data), len(tail))
    more = data + frame(entry(9), SEED)
    assert all_of(more, Rest.LIVE) == Scan([*RECORDS, entry(9)], len(more), len(tail)), "known once one stands behind"


# ---- forged


@given(st.binary(max_size=100))
def test_no_text_holds_a_marker(content: bytes) -> None:
    """Whatever a client or an upstream sends: a text in a payload is UTF-8, and the marker is none."""
    forged = frame(entry(666), SEED)
    for name in ("latin-1", "utf-8"):
        text = (forged + content).decode(name, "replace")
        assert next_frame(frame(entry(1, reason=text), SEED), 1, SEED) == -1
        assert MARKER not in frame(entry(1, reason=text), SEED)[1:]


def test_a_forged_frame_is_not_taken_even_as_bytes() -> None:
    """Nobody outside knows the incarnation's name: a frame that does not begin from it is none, wherever it stands."""
    for seed in (0, seed_of(""), seed_of("another"), SEED ^ 1):
        forged = frame(entry(666), seed)
        data = frame(entry(1), SEED) + forged + frame(entry(2), SEED)
        assert all_of(data) == Scan([entry(1), entry(2)], len(data), len(forged))


# ---- in pieces


@settings(max_examples=50)
@given(lists, st.data())
def test_as_it_grows(of: list[Record], data: st.DataObject) -> None:
    """A live segment read again and again, at any moments, gives each record once."""
    whole = b"".join(frames(of))
    found: list[Record] = []
    at = 0
    for size in [*sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=20))), len(whole)]:
        step = scan(whole[at : max(size, at)], SEED, 0, 1 << 30, Rest.LIVE)
        found += step.records
        at += step.end
        assert not step.damaged
    assert (found, at) == (of, len(whole))


@settings(max_examples=50)
@given(lists, st.data())
def test_in_any_batches(of: list[Record], data: st.DataObject) -> None:
    """Damaged or not: the same records and the same count as at once, and any place where a batch ended will do."""
    whole = b"".join(frames(of))
    bits = data.draw(st.sets(st.integers(0, max(len(whole) * 8 - 1, 0)), max_size=min(4, len(whole))))
    hole = data.draw(st.binary(max_size=50))
    broken = flipped(whole, *bits) + hole + b"".join(frames(RECORDS))
    at_once = all_of(broken)
    found: list[Record] = []
    at = damaged = 0
    while at < len(broken):
        most = data.draw(st.integers(1, 300))
        window = broken[at : at + most + MOST_FRAME_BYTES]
        full = len(window) == most + MOST_FRAME_BYTES
        step = scan(window, SEED, 0, most, Rest.MORE if full else Rest.NOTHING)
        assert step.end > 0
        found += step.records
        damaged += step.damaged
        at += step.end
    assert (found, damaged) == (at_once.records, at_once.damaged)


@pytest.mark.parametrize("most", [1, 1000, MOST_FRAME_BYTES, 3 * MOST_FRAME_BYTES])
def test_damage_larger_than_a_batch(most: int) -> None:
    """It is passed in steps: no record that begins in the last bytes of one is missed."""
    hole = b"\0" * (2 * MOST_FRAME_BYTES + 12345)
    broken = frame(entry(1), SEED) + hole + frame(entry(2), SEED)
    found: list[Record] = []
    at = damaged = steps = 0
    while at < len(broken):
        window = broken[at : at + most + MOST_FRAME_BYTES]
        full = len(window) == most + MOST_FRAME_BYTES
        step = scan(window, SEED, 0, most, Rest.MORE if full else Rest.LIVE)
        found += step.records
        damaged += step.damaged
        at += step.end
        steps += 1
        assert step.end > 0
        if most == 1 and steps == 3:  # one byte a step: seen enough
            return
    assert (found, damaged) == ([entry(1), entry(2)], len(hole))


# ---- reduced


def test_what_is_reduced_can_always_be_written() -> None:
    huge = "\ud800" + "x" * MOST_RECORD_BYTES
    for record in (
        Opened(id="hr_1", at=1.0, protocol="chat", key=huge, model=huge, operation=huge, client_request_id=huge),
        Checkpoint(id="hr_1", duration_s=1.0, served_model=huge, usage=Usage(output_total=10**30)),
        Entry(
            id="hr_1",
            at=1.0,
            duration_s=1.0,
            protocol="chat",
            operation=huge,
            key=huge,
            end="completed",
            reason=huge,
            status=10**30,
            client_request_id=huge,
        ),
    ):
        with pytest.raises((ValueError, OverflowError)):
            frame(record, SEED)
        small = reduced(record)
        assert small.id == "hr_1" and all_of(frame(small, SEED)).records == [small]
        assert isinstance(small, Opened) or small.usage.inconsistent == ("unencodable",)


def test_the_seed_is_the_incarnations_own() -> None:
    assert seed_of(NAME) == SEED != seed_of(NAME[:-1] + "4")
