"""Reads journals while they are written: from any position on, what is whole, and whether the writer is gone.

A live worker holds a lock on its newest segment and takes the next one's before that is seen, so an incarnation whose
newest segment is not locked, and has no newer one then, is dead. What a segment holds is final once there is a newer
one, or its incarnation is dead; until then an end that is not whole is waited for.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from headrace.journal.place import Incarnation, Position, incarnations, segment_numbers
from headrace.journal.record import HEAD_BYTES, MOST_FRAME_BYTES, FormatError, Rest, head_size, scan, seed_of
from headrace.model.entry import Entry, Record

__all__ = [
    "Batch", "Incarnation", "Position", "bytes_behind", "find_entry", "incarnations", "is_live", "read_all",
    "read_batch", "remove", "remove_before",
]  # fmt: skip

BATCH_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """What one call read. With `after` where the call began and not `ended`, nothing more is there yet."""

    records: tuple[Record, ...]
    after: Position
    damaged_bytes: int
    """Bytes that were no record; of a segment that is missing, its head's."""
    ended: bool
    """The incarnation is dead, and read to its end."""


def read_batch(incarnation: Incarnation, position: Position, most_bytes: int = BATCH_BYTES) -> Batch:
    """The records from `position` on, of one segment, until `most_bytes` are passed. Never waits.

    Read from any position that was returned, and in batches of any size, the records and the count of damaged bytes
    are those of reading all at once. Damage raises nothing; OSError where the disk cannot be read, and FormatError,
    which is one, for a segment of another version's format.
    """
    seed = seed_of(incarnation.name)
    numbers = segment_numbers(incarnation.path)
    later = next((number for number in numbers if number > position.segment), None)
    if position.segment not in numbers:
        if later is None:
            return Batch((), position, 0, ended=not is_live(incarnation))
        lost = 0 if position == Position() else HEAD_BYTES
        return Batch((), Position(later), lost, ended=False)
    dead = False
    if later is None and not is_live(incarnation):
        later = next((number for number in segment_numbers(incarnation.path) if number > position.segment), None)
        dead = later is None
    at_end = Rest.NOTHING if dead or later is not None else Rest.LIVE
    path = incarnation.segment(position.segment)
    data = _read(path, position.offset, most_bytes + MOST_FRAME_BYTES)
    full = len(data) == most_bytes + MOST_FRAME_BYTES
    try:
        start = head_size(data, seed) if not position.offset else 0
    except FormatError as error:
        raise FormatError(errno.EINVAL, f"{error}: let the version that wrote it ingest it", str(path)) from None
    found = scan(data, seed, start, most_bytes, Rest.MORE if full else at_end)
    over = at_end is Rest.NOTHING and not full and found.end == len(data)
    damaged = found.damaged
    after = Position(position.segment, position.offset + found.end)
    if over and later is not None:
        damaged += (later - position.segment - 1) * HEAD_BYTES
        after = Position(later)
    return Batch(tuple(found.records), after, damaged, ended=over and dead)


def bytes_behind(incarnation: Incarnation, position: Position) -> int:
    """How much of its journal lies behind the position."""
    total = 0
    for number in segment_numbers(incarnation.path):
        if number >= position.segment:
            with suppress(FileNotFoundError):
                size = incarnation.segment(number).stat().st_size
                total += size - (position.offset if number == position.segment else 0)
    return max(total, 0)


def is_live(incarnation: Incarnation) -> bool:
    """Whether a process may still write to it. OSError where the disk cannot be read."""
    while numbers := segment_numbers(incarnation.path):
        if _is_locked(incarnation.segment(numbers[-1])):
            return True
        if segment_numbers(incarnation.path)[-1:] == numbers[-1:]:
            return False
    return False


def read_all(directory: Path) -> Iterator[Record]:
    """Every record under a state directory as it is now, incarnation by incarnation, the oldest first. A missing
    directory holds none."""
    for incarnation in incarnations(directory):
        position = Position()
        while True:
            batch = read_batch(incarnation, position)
            yield from batch.records
            if batch.ended or batch.after == position:
                break
            position = batch.after


def find_entry(directory: Path, exchange_id: str) -> Entry | None:
    """The entry of one exchange; `last` means the newest. None where there is none."""
    found: Entry | None = None
    for record in read_all(directory):
        if (
            isinstance(record, Entry)
            and exchange_id in (record.id, "last")
            and (found is None or record.at >= found.at)
        ):
            found = record
    return found


def remove_before(incarnation: Incarnation, position: Position) -> None:
    """Delete the segments that end before `position`: all that was read up to it is held elsewhere."""
    for number in segment_numbers(incarnation.path):
        if number < position.segment:
            incarnation.segment(number).unlink(missing_ok=True)


def remove(incarnation: Incarnation, position: Position) -> bool:
    """Delete a dead incarnation whose end `position` is. Where it lives, or holds more, nothing is deleted, and the
    answer is False."""
    batch = read_batch(incarnation, position)
    if not batch.ended or batch.after != position:
        return False
    remove_before(incarnation, position)
    for path in incarnation.path.iterdir() if incarnation.path.is_dir() else ():
        path.unlink(missing_ok=True)
    if incarnation.path.is_dir():
        incarnation.path.rmdir()
    return True


def _read(path: Path, offset: int, most: int) -> bytes:
    """Up to `most` bytes; fewer only at the end of the file. None of one that has gone meanwhile."""
    parts: list[bytes] = []
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        while most and (data := os.pread(file, most, offset)):
            parts.append(data)
            offset += len(data)
            most -= len(data)
    finally:
        os.close(file)
    return b"".join(parts)


def _is_locked(path: Path) -> bool:
    """Whether a process holds the segment. Asked with a shared lock, so that readers never take one another for a
    writer."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False
