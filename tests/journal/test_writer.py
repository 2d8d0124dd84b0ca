"""The writer loses nothing that it took, whatever the disk does."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.journal import writer as module
from headrace.journal.reader import read_all
from headrace.journal.record import MAGIC, MOST_RECORD_BYTES, frame
from headrace.journal.writer import JournalError, Writer
from headrace.model.entry import Entry, Record, Wire
from headrace.model.usage import Usage
from tests.journal.entries import entry, opened


class Handle:
    """A call to come."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        """Do not call."""
        self.cancelled = True


class Loop:
    """A loop turn by hand; what goes to a thread is done in `work`."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []
        self.later: list[tuple[float, Handle]] = []
        self.threads: list[Callable[[], object]] = []

    def call_soon(self, call: Callable[[], object]) -> None:
        """At the end of the turn."""
        self.soon.append(call)

    def call_later(self, delay: float, call: Callable[[], object]) -> Handle:
        """After some time."""
        handle = Handle(call)
        self.later.append((delay, handle))
        return handle

    def run_in_executor(self, executor: None, call: Callable[..., object], *args: object) -> None:
        """In a thread."""
        self.threads.append(lambda: call(*args))

    def call_soon_threadsafe(self, call: Callable[..., object], *args: object) -> None:
        """From a thread: at the end of the turn."""
        self.soon.append(lambda: call(*args))

    def turn(self) -> None:
        """End the loop turn."""
        calls, self.soon = self.soon, []
        for call in calls:
            call()

    def time_passes(self) -> None:
        """All timers fall due."""
        timers, self.later = self.later, []
        for _, handle in timers:
            if not handle.cancelled:
                handle.call()

    def work(self) -> None:
        """The threads do theirs."""
        calls, self.threads = self.threads, []
        for call in calls:
            call()


class Disk:
    """The calls of `os` that a journal makes, with faults; keeps which descriptors are open."""

    O_WRONLY, O_CREAT, O_EXCL, O_APPEND, O_CLOEXEC = os.O_WRONLY, os.O_CREAT, os.O_EXCL, os.O_APPEND, os.O_CLOEXEC

    def __init__(self) -> None:
        self.room = 1 << 40
        self.no_more_files = False
        self.broken = False
        self.writes = 0
        self.open_files: set[int] = set()
        self.synced: list[int] = []
        self.strerror = os.strerror

    def open(self, path: Path, flags: int, mode: int) -> int:
        """Make a file."""
        if self.no_more_files:
            raise OSError(errno.EMFILE, "too many open files")
        file = os.open(path, flags, mode)
        self.open_files.add(file)
        return file

    def write(self, file: int, data: bytes) -> int:
        """As much as there is room for."""
        assert file in self.open_files, "a descriptor that is not the journal's"
        self.writes += 1
        size = min(len(data), self.room)
        if not size:
            raise OSError(errno.ENOSPC, "no space left on device")
        self.room -= size
        return os.write(file, data[:size])

    def ftruncate(self, file: int, size: int) -> None:
        """Take back."""
        assert file in self.open_files
        if self.broken:
            raise OSError(errno.EIO, "input/output error")
        self.room += os.fstat(file).st_size - size
        os.ftruncate(file, size)

    def fdatasync(self, file: int) -> None:
        """To the disk."""
        assert file in self.open_files
        if self.broken:
            raise OSError(errno.EIO, "input/output error")
        self.synced.append(file)

    def dup(self, file: int) -> int:
        """A second descriptor."""
        assert file in self.open_files
        second = os.dup(file)
        self.open_files.add(second)
        return second

    def close(self, file: int) -> None:
        """Let go."""
        assert file in self.open_files, "a descriptor that is not the journal's"
        self.open_files.remove(file)
        os.close(file)


class Stage:
    """A writer on a disk with faults."""

    def __init__(self, directory: Path, segment_bytes: int, kept_bytes: int = 1 << 20) -> None:
        self.directory = directory
        self.loop = Loop()
        self.reports: list[str] = []
        self.writer = Writer(
            directory,
            "inc",
            self.loop,  # type: ignore[arg-type]
            segment_bytes=segment_bytes,
            kept_bytes=kept_bytes,
            report=self.reports.append,
        )

    def append(self, *records: Record) -> None:
        for record in records:
            self.writer.append(record)

    def written(self) -> list[Record]:
        return list(read_all(self.directory))

    def segments(self) -> list[str]:
        return sorted(path.name for path in (self.directory / "journal" / "inc").iterdir())


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(module, "os", disk)
    yield disk
    for file in disk.open_files:
        os.close(file)


@pytest.fixture
def stage(tmp_path: Path, disk: Disk) -> Stage:
    return Stage(tmp_path, segment_bytes=1 << 20)


def test_entries_are_written_in_the_loop_turn(stage: Stage) -> None:
    stage.append(entry(2), entry(1))
    assert stage.written() == [], "once, at the turn's end"
    assert len(stage.loop.soon) == 1
    stage.loop.turn()
    assert stage.written() == [entry(2), entry(1)]


def test_opened_is_written_at_once(stage: Stage, disk: Disk) -> None:
    """In one write with what is pending, and in order."""
    disk.writes = 0
    stage.append(entry(1), entry(2), opened(3))
    assert stage.written() == [entry(1), entry(2), opened(3)]
    assert disk.writes == 1
    stage.append(entry(3))
    stage.loop.turn()
    assert stage.written() == [entry(1), entry(2), opened(3), entry(3)] and disk.writes == 2


def test_synced_by_a_thread(stage: Stage, disk: Disk) -> None:
    """One for all that was written since the last, on a descriptor of its own."""
    stage.append(entry(1))
    stage.loop.turn()
    stage.append(entry(2))
    stage.loop.turn()
    assert [delay for delay, _ in stage.loop.later] == [0.2] and disk.synced == []
    stage.loop.time_passes()
    stage.loop.work()
    assert len(disk.synced) == 1 and len(disk.open_files) == 1
    stage.loop.time_passes()
    assert stage.loop.threads == [], "nothing new, no sync"
    stage.append(entry(3))
    stage.loop.turn()
    assert len(stage.loop.later) == 1


def test_closed(stage: Stage, disk: Disk) -> None:
    stage.append(entry(1))
    stage.writer.close()
    assert stage.written() == [entry(1)] and disk.open_files == set() and disk.synced
    stage.loop.turn()
    stage.loop.time_passes()
    assert stage.written() == [entry(1)] and stage.loop.threads == []


def test_closed_before_a_sync(stage: Stage, disk: Disk) -> None:
    stage.append(entry(1))
    stage.loop.turn()
    stage.writer.close()
    stage.loop.time_passes()
    assert stage.loop.threads == [] and disk.open_files == set()


def test_a_segment_belongs_to_one_incarnation(stage: Stage, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        Stage(tmp_path, segment_bytes=100)


def test_rotation(tmp_path: Path, disk: Disk) -> None:
    """Whole records stay together; the old segment is synced and closed by a thread."""
    size = len(frame(entry(1)))
    stage = Stage(tmp_path, segment_bytes=len(MAGIC) + 2 * size + 10)
    for number in range(1, 8):
        stage.append(entry(number))
        stage.loop.turn()
    assert stage.written() == [entry(number) for number in range(1, 8)]
    assert stage.segments() == ["1.segment", "2.segment", "3.segment", "4.segment"]
    assert disk.synced == [] and len(stage.loop.threads) == 3
    stage.loop.work()
    assert len(disk.synced) == 3 and len(disk.open_files) == 1
    stage.writer.close()


def test_a_record_larger_than_a_segment(tmp_path: Path, disk: Disk) -> None:
    stage = Stage(tmp_path, segment_bytes=50)
    stage.append(entry(1))
    stage.loop.turn()
    assert stage.segments() == ["1.segment"]
    stage.append(entry(2))
    stage.loop.turn()
    assert stage.written() == [entry(1), entry(2)] and len(stage.segments()) == 2


@pytest.mark.parametrize("room", [0, 1, 30])
def test_a_full_disk(stage: Stage, disk: Disk, room: int) -> None:
    """The very exchange that cannot be noted hears of it before it costs anything; its entry is kept and written once
    there is room; a half record never stands in the file; the operator hears of it once."""
    stage.append(opened(1))
    disk.room = room
    for number in range(2, 5):
        with pytest.raises(JournalError, match="no space left"):
            stage.append(opened(number))
        stage.append(entry(number))
        stage.loop.turn()
        stage.loop.time_passes()
    assert stage.written() == [opened(1)]
    assert len(stage.reports) == 1 and "no space left" in stage.reports[0]
    disk.room = 1 << 30
    stage.append(opened(5))
    kept = [opened(1), entry(2), entry(3), entry(4), opened(5)]
    assert stage.written() == kept, "what was refused was not taken"
    assert stage.reports[1:] == ["the journal is written again"]


def test_room_again_is_found_by_a_timer(stage: Stage, disk: Disk) -> None:
    disk.room = 0
    stage.append(entry(1))
    stage.loop.turn()
    stage.loop.time_passes()
    disk.room = 1 << 30
    assert stage.written() == []
    stage.loop.time_passes()
    assert stage.written() == [entry(1)]
    stage.writer.close()
    assert all(handle.cancelled for _, handle in stage.loop.later)


def test_what_is_kept_is_bounded(tmp_path: Path, disk: Disk) -> None:
    """What is lost is counted, and said."""
    stage = Stage(tmp_path, segment_bytes=1 << 20, kept_bytes=2 * len(frame(entry(1))))
    disk.room = 0
    stage.append(entry(1))
    stage.loop.turn()
    stage.append(entry(2), entry(3), entry(4))
    stage.loop.turn()
    assert len(stage.reports) == 2 and "no more entries" in stage.reports[1]
    disk.room = 1 << 30
    stage.loop.time_passes()
    assert stage.written() == [entry(1), entry(2)]
    assert stage.reports[2:] == ["the journal is written again; 2 entries are lost"]


def test_much_that_waits_is_written_in_pieces(tmp_path: Path, disk: Disk) -> None:
    """As far as there is room, so that a try that fails again costs little."""
    stage = Stage(tmp_path, segment_bytes=1 << 30, kept_bytes=1 << 30)
    records = [entry(number, reason="x" * 100_000) for number in range(12)]
    disk.room = 0
    stage.append(*records)
    stage.loop.turn()
    disk.room = 500_000
    stage.loop.time_passes()
    assert stage.written() == records[:4]
    disk.room = 1 << 30
    stage.loop.time_passes()
    assert stage.written() == records


def test_a_half_record_that_cannot_be_taken_back(stage: Stage, disk: Disk) -> None:
    """Nothing is written behind it: a new segment begins."""
    stage.append(opened(1))
    disk.room, disk.broken = 10, True
    with pytest.raises(JournalError):
        stage.append(opened(2))
    disk.room, disk.broken = 1 << 30, False
    stage.append(opened(3))
    assert stage.written() == [opened(1), opened(3)] and stage.segments() == ["1.segment", "2.segment"]


def test_lost_at_the_close(stage: Stage, disk: Disk) -> None:
    disk.room = 0
    stage.append(entry(1), entry(2))
    stage.writer.close()
    assert stage.reports[-1] == "the journal is closed; 2 entries could not be written and are lost"
    assert disk.open_files == set() and all(handle.cancelled for _, handle in stage.loop.later)
    with pytest.raises(JournalError, match="closed"):
        stage.append(entry(3))


def test_a_failed_sync_is_reported_once(stage: Stage, disk: Disk) -> None:
    def sync(number: int) -> None:
        stage.append(opened(number))
        stage.loop.time_passes()
        stage.loop.work()
        stage.loop.turn()

    disk.broken = True
    sync(1)
    sync(2)
    assert len(stage.reports) == 1 and "input/output error" in stage.reports[0]
    disk.broken = False
    sync(3)
    assert len(stage.reports) == 1 and len(disk.open_files) == 1
    disk.broken = True
    stage.writer.close()
    assert len(stage.reports) == 2 and disk.open_files == set()


@pytest.mark.parametrize(
    "bad",
    [
        {"usage": Usage(input_total=10**25)},
        {"finish_reasons": ("x" * MOST_RECORD_BYTES,)},
        {"reason": "\ud800" + "x" * MOST_RECORD_BYTES},
        {"status": 10**25},
    ],
)
def test_an_entry_that_cannot_be_encoded_is_reduced(stage: Stage, bad: dict[str, Any]) -> None:
    whole = msgspec.structs.replace(entry(1), **bad)
    stage.append(whole, entry(2))
    stage.loop.turn()
    written, other = stage.written()
    assert isinstance(written, Entry) and other == entry(2)
    assert (written.id, written.end, written.at, written.duration_s) == (
        whole.id,
        whole.end,
        whole.at,
        whole.duration_s,
    )
    assert (written.key, written.model, written.wire) == (whole.key, whole.model, Wire())
    assert written.usage == Usage(inconsistent=("unencodable",))
    assert len(stage.reports) == 1 and whole.id in stage.reports[0]


def test_an_opened_that_cannot_be_encoded_is_reduced(stage: Stage) -> None:
    stage.append(msgspec.structs.replace(opened(1), model="m" * MOST_RECORD_BYTES))
    assert stage.written() == [msgspec.structs.replace(opened(1), model="m" * 200)]


def test_a_disk_with_room_again_at_the_close(stage: Stage, disk: Disk) -> None:
    disk.room = 0
    stage.append(entry(1))
    stage.loop.turn()
    disk.room = 1 << 30
    stage.writer.close()
    assert stage.written() == [entry(1)]


@pytest.mark.parametrize("fault", ["files", "room", "some room"])
def test_a_rotation_that_fails(tmp_path: Path, disk: Disk, fault: str) -> None:
    """The old segment stays the journal's own, and no other descriptor is ever touched."""
    stage = Stage(tmp_path, segment_bytes=len(MAGIC) + len(frame(entry(1))) + 10)
    stage.append(entry(1))
    stage.loop.turn()
    disk.no_more_files = fault == "files"
    disk.room = {"files": 1 << 30, "room": 0, "some room": 5}[fault]
    stage.append(entry(2))
    stage.loop.turn()
    with pytest.raises(JournalError):
        stage.append(opened(3))
    assert stage.written() == [entry(1)] and stage.segments() == ["1.segment"]
    assert len(disk.open_files) == 1
    disk.no_more_files, disk.room = False, 1 << 30
    stage.append(entry(4))
    stage.loop.turn()
    stage.loop.work()
    assert stage.written() == [entry(1), entry(2), entry(4)]
    assert "2.segment" in stage.segments()
    stage.writer.close()
    assert disk.open_files == set()
