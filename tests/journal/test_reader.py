"""From files and locks to records: in order, each once, and only the dead are called dead."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.journal.place import Incarnation, Position, incarnations
from headrace.journal.reader import Batch, find_entry, is_live, read_all, read_batch, remove, remove_before
from headrace.journal.record import HEAD_BYTES, MOST_FRAME_BYTES, FormatError, frame, head, seed_of
from headrace.model.entry import Record
from tests.journal.entries import SEED, checkpoint, entry, lay, opened, place, segment


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Locked as by a live worker: a lock belongs to an open file, so this one conflicts with the reader's own."""
    file = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(file)


def everything(where: Incarnation, most: int = 1 << 22) -> tuple[list[Record], int, Position, bool]:
    """All that there is, in batches: records, damaged bytes, the last position, whether it ended."""
    position, records, damaged = Position(), list[Record](), 0
    while True:
        batch = read_batch(where, position, most)
        records += batch.records
        damaged += batch.damaged_bytes
        if batch.ended or batch.after == position:
            return records, damaged, batch.after, batch.ended
        position = batch.after


# ---- one incarnation


def test_of_a_dead_one_all_is_read_and_it_ended(tmp_path: Path) -> None:
    where = place(tmp_path)
    lay(where, 1, segment([opened(1), entry(1)]))
    lay(where, 2, last := segment([checkpoint(2)]))
    assert read_batch(where, Position()) == Batch((opened(1), entry(1)), Position(2), 0, ended=False)
    end = Position(2, len(last))
    assert read_batch(where, Position(2)) == Batch((checkpoint(2),), end, 0, ended=True)
    assert read_batch(where, end) == Batch((), end, 0, ended=True), "and so it stays"


def test_of_a_live_one_the_half_written_end_is_waited_for(tmp_path: Path) -> None:
    where = place(tmp_path)
    whole = segment([opened(1), entry(1)])
    known = len(segment([opened(1)]))
    for size in range(known, len(whole)):
        lay(where, 1, whole[:size])
        with held(where.segment(1)):
            assert read_batch(where, Position()) == Batch((opened(1),), Position(1, known), 0, ended=False)
            with where.segment(1).open("ab") as file:
                file.write(whole[size:])
            after = Position(1, len(whole))
            assert read_batch(where, Position(1, known)) == Batch((entry(1),), after, 0, ended=False)


@pytest.mark.parametrize("size", range(HEAD_BYTES))
def test_a_head_that_is_not_whole(tmp_path: Path, size: int) -> None:
    """A power cut between the making of a segment and its first bytes."""
    where = place(tmp_path)
    lay(where, 1, segment([entry(1)]))
    lay(where, 2, head(SEED)[:size])
    with held(where.segment(2)):
        assert read_batch(where, Position(2)) == Batch((), Position(2), 0, ended=False)
    assert everything(where) == ([entry(1)], size, Position(2, size), True)


def test_the_torn_tail_of_a_dead_one_is_damage(tmp_path: Path) -> None:
    where = place(tmp_path)
    lay(where, 1, segment([entry(1)]) + frame(entry(2), SEED)[:-1])
    size = where.segment(1).stat().st_size
    assert everything(where) == ([entry(1)], len(frame(entry(2), SEED)) - 1, Position(1, size), True)


def test_an_end_that_is_not_the_last_ones_is_final(tmp_path: Path) -> None:
    """Nobody writes to a segment that has a successor, whoever lives."""
    where = place(tmp_path)
    lay(where, 1, segment([entry(1)]) + b"half")
    lay(where, 2, segment([entry(2)]))
    with held(where.segment(1)), held(where.segment(2)):
        assert read_batch(where, Position()) == Batch((entry(1),), Position(2), 4, ended=False)


def test_readers_do_not_take_each_other_for_a_writer(tmp_path: Path) -> None:
    where = place(tmp_path)
    lay(where, 1, segment([]))
    file = os.open(where.segment(1), os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert not is_live(where)
    finally:
        os.close(file)
    with held(where.segment(1)):
        assert is_live(where)


def test_a_segment_that_is_missing_is_damage(tmp_path: Path) -> None:
    """Of what it held its head is all that is known."""
    where = place(tmp_path)
    for number in (1, 2, 5):
        lay(where, number, segment([entry(number)]))
    where.segment(1).unlink()
    end = Position(5, len(segment([entry(5)])))
    assert everything(where) == ([entry(2), entry(5)], 2 * HEAD_BYTES, end, True), "of 1 nothing is known: not begun"
    where.segment(2).unlink()
    assert read_batch(where, Position(2, 77)) == Batch((), Position(5), HEAD_BYTES, ended=False)


def test_one_that_holds_nothing(tmp_path: Path) -> None:
    """What is left of one that is being removed; a worker makes none."""
    where = place(tmp_path)
    assert read_batch(where, Position()) == Batch((), Position(), 0, ended=True)
    where.path.mkdir(parents=True)
    assert read_batch(where, Position(3, 9)) == Batch((), Position(3, 9), 0, ended=True)


def test_a_position_behind_the_end(tmp_path: Path) -> None:
    """It was read before a power cut, and did not reach the disk."""
    where = place(tmp_path)
    lay(where, 1, segment([entry(1)]))
    behind = Position(1, 10_000)
    assert read_batch(where, behind) == Batch((), behind, 0, ended=True)
    lay(where, 2, segment([entry(2)]))
    assert read_batch(where, behind) == Batch((), Position(2), 0, ended=False)


def test_a_head_with_damage_hides_nothing(tmp_path: Path) -> None:
    where = place(tmp_path)
    lay(where, 1, b"HEADRACE" + segment([entry(1)])[8:])
    assert everything(where)[:2] == ([entry(1)], HEAD_BYTES)
    lay(where, 1, frame(entry(1), SEED))
    assert everything(where)[:2] == ([entry(1)], 0)


def test_another_format_is_left_alone(tmp_path: Path) -> None:
    where = place(tmp_path)
    lay(where, 1, head(SEED, 3) + b"a thing of the future")
    with pytest.raises(FormatError, match=r"format 3.*let the version that wrote it ingest it.*1\.segment"):
        read_batch(where, Position())
    with pytest.raises(FormatError):
        remove(where, Position())
    assert where.segment(1).exists()


def test_a_disk_fault_is_an_error(tmp_path: Path) -> None:
    where = place(tmp_path)
    where.segment(1).mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        read_batch(where, Position())


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.data())
def test_in_any_batches_and_with_any_damage(tmp_path: Path, counts: list[int], data: st.DataObject) -> None:
    """The same as all at once."""
    where = place(tmp_path)
    for path in where.path.glob("*") if where.path.exists() else ():
        path.unlink()
    for number, count in enumerate(counts, 1):
        content = bytearray(segment([entry(number * 1000 + one) for one in range(count)]))
        for at in data.draw(st.sets(st.integers(0, len(content) - 1), max_size=3)):
            content[at] ^= 0x20
        lay(where, number, bytes(content) + data.draw(st.binary(max_size=20)))
    assert everything(where, data.draw(st.integers(1, 5000))) == everything(where)


def test_a_batch_is_bounded(tmp_path: Path) -> None:
    where = place(tmp_path)
    many = [entry(number, reason="x" * 1000) for number in range(200)]
    lay(where, 1, segment(many))
    size = len(frame(many[0], SEED))
    first = read_batch(where, Position(), most_bytes=3 * size)
    assert len(first.records) == 3, "what begins before the bound"
    assert 200 * size > 3 * size + MOST_FRAME_BYTES
    assert everything(where, 3 * size)[0] == many


# ---- all of them


def test_nothing_there(tmp_path: Path) -> None:
    assert list(read_all(tmp_path)) == [] == list(read_all(tmp_path / "absent"))
    assert find_entry(tmp_path, "last") is None


def test_all_records_in_order(tmp_path: Path) -> None:
    early, late = place(tmp_path, "01a"), place(tmp_path, "01b")
    lay(late, 1, of(late, entry(5)))
    lay(early, 10, of(early, entry(3)))
    lay(early, 9, of(early, entry(2)) + b"half")
    with held(early.segment(10)):
        assert list(read_all(tmp_path)) == [entry(2), entry(3), entry(5)], "live or dead"
    assert incarnations(tmp_path) == [early, late]


def test_one_entry(tmp_path: Path) -> None:
    first, second = place(tmp_path, "01a"), place(tmp_path, "01b")
    lay(first, 1, of(first, opened(1), entry(1), entry(2), opened(7)))
    lay(second, 1, of(second, entry(3, at=1.5)))
    assert find_entry(tmp_path, entry(1).id) == entry(1)
    assert find_entry(tmp_path, "last") == entry(2), "by time, not by place"
    assert find_entry(tmp_path, opened(7).id) is None, "it has no entry yet"
    assert find_entry(tmp_path, "hr_unknown") is None


# ---- what is held elsewhere is deleted


def test_segments_before_a_position_are_deleted(tmp_path: Path) -> None:
    where = place(tmp_path)
    for number in (1, 2, 3):
        lay(where, number, segment([entry(number)]))
    remove_before(where, Position(1, 500))
    assert len(list(where.path.iterdir())) == 3
    remove_before(where, Position(3))
    assert [path.name for path in where.path.iterdir()] == ["3.segment"]
    remove_before(place(tmp_path, "absent"), Position(3))


def test_what_was_not_read_is_never_deleted(tmp_path: Path) -> None:
    where = place(tmp_path)
    lay(where, 1, segment([entry(1)]))
    lay(where, 2, segment([entry(2)]))
    end = everything(where)[2]
    (where.path / ".3.segment").touch()  # the worker died in the middle of a rotation
    for early in (Position(), Position(1, 100), Position(2), Position(2, HEAD_BYTES)):
        assert not remove(where, early)
        assert everything(where)[0] == [entry(1), entry(2)]
    with held(where.segment(2)):
        assert not remove(where, end), "it lives"
    assert everything(where)[0] == [entry(1), entry(2)]
    assert remove(where, end) and not where.path.exists()
    assert remove(where, end), "it is gone already"


def of(where: Incarnation, *records: Record) -> bytes:
    """A segment of another incarnation than NAME."""
    seed = seed_of(where.name)
    return head(seed) + b"".join(frame(record, seed) for record in records)
