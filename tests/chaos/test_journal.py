"""A journal that a real process writes, read while it does, and after it was killed."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.journal.place import Position, segment_numbers
from headrace.journal.reader import Batch, is_live, read_all, read_batch, remove, remove_before
from headrace.journal.writer import MIB, RETRY_S, JournalError, Sizes, Writer
from headrace.model.entry import Record
from tests.journal.disk import Loop
from tests.journal.entries import checkpoint, entry, opened, place
from tests.stand.stand import until

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.chaos


@contextmanager
def writing(directory: Path, segment_bytes: int, limit: int = 0) -> Iterator[subprocess.Popen[str]]:
    """The writer's process, once its incarnation is there; killed in the end, where it still runs. What it says is in
    the file `said`: nobody has to read it for it to go on."""
    command = [sys.executable, "-m", "tests.chaos.journal_writer", str(directory), str(segment_bytes), str(limit)]
    pipe = subprocess.PIPE
    with (
        (directory / "said").open("w") as said,
        subprocess.Popen(command, stdin=pipe, stdout=said, stderr=pipe, text=True, cwd=ROOT) as process,
    ):
        try:
            until(lambda: last_said(directory), "the first records")
            yield process
        finally:
            process.kill()


def last_said(directory: Path) -> int:
    """The last number that the writer's process said to be written."""
    whole = [line for line in (directory / "said").read_text().splitlines(keepends=True) if line.endswith("\n")]
    return int(whole[-1]) if whole else 0


class Reading:
    """Reads on from batch to batch, and checks that each number comes once and in order."""

    def __init__(self, directory: Path) -> None:
        self.where = place(directory)
        self.position = Position()
        self.last = 0
        self.damaged = 0

    def read(self, most_bytes: int = 1 << 20) -> Batch:
        batch = read_batch(self.where, self.position, most_bytes)
        for record in batch.records:
            self.last += 1
            assert record.id == entry(self.last).id, "out of order, twice, or lost"
        self.position = batch.after
        self.damaged += batch.damaged_bytes
        return batch

    def read_to_the_end(self) -> None:
        while not self.read().ended:
            pass


def test_a_live_writer_never_looks_dead_and_a_killed_one_always_does(tmp_path: Path) -> None:
    """Through hundreds of rotations, read by two at once; what it said to be written is there after kill -9."""
    with writing(tmp_path, segment_bytes=4000) as process:
        reading, other = Reading(tmp_path), Reading(tmp_path)
        looks = 0
        deadline = time.monotonic() + 30
        while reading.position.segment < 400:
            for one, most in ((reading, 1 << 20), (other, 1500)):
                assert not one.read(most).ended, "it lives"
                remove_before(other.where, min(reading.position, other.position, key=lambda at: at.segment))
                assert is_live(one.where)
                assert not remove(one.where, one.position)
            looks += 1
            assert time.monotonic() < deadline
        process.kill()
        process.wait()
        reading.read_to_the_end()
        other.read_to_the_end()
    assert reading.last == other.last >= last_said(tmp_path) > 400 and looks > 10
    assert not is_live(reading.where) and remove(reading.where, reading.position)


@pytest.mark.parametrize("after", range(5))
def test_killed_at_any_moment(tmp_path: Path, after: int) -> None:
    """What it said to be written is there, and nothing of it twice."""
    with writing(tmp_path, segment_bytes=3000 + 977 * after) as process:
        until(lambda: last_said(tmp_path) >= 100 * after, "more records")
        process.kill()
        process.wait()
    reading = Reading(tmp_path)
    reading.read_to_the_end()
    assert reading.last >= last_said(tmp_path)


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """Half a record is written, by the kernel's own hand; once it may grow again all are there, each once."""
    with writing(tmp_path, segment_bytes=1 << 30, limit=20_011) as process:
        assert process.stderr is not None and process.stdin is not None
        said = [process.stderr.readline() for _ in range(3)]
        assert "cannot be written: File too large" in said[0]
        assert "running exchanges are stopped" in said[1] and said[2] == "full\n"
        reading = Reading(tmp_path)
        reading.read()
        assert reading.where.segment(1).stat().st_size == 20_011 and reading.position.offset < 20_011
        process.stdin.write("\n")
        _, errors = process.communicate()
    assert errors == "the journal has room again\n"
    reading.read_to_the_end()
    assert reading.last == last_said(tmp_path) and not reading.damaged


# ---- a real disk that is full


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "headrace-test", str(folder)]
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a tmpfs: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


class Stage:
    """A writer with 1 MiB of reserve on a real disk, and a loop by hand."""

    def __init__(self, directory: Path) -> None:
        self.loop = Loop()
        self.reports: list[str] = []
        self.full = 0
        self.taken: list[Record] = []
        sizes = Sizes(reserve=MIB, step=MIB // 4)
        self.writer = Writer(place(directory), self.loop, 0.2, sizes, self.reports.append, self._on_full)  # type: ignore[arg-type]

    def put(self, record: Record) -> None:
        self.writer.append(record)
        self.taken.append(record)
        self.loop.turn()

    def put_until_reported(self) -> int:
        """Entries of 2 KiB until the operator hears something; how many."""
        before, count = len(self.reports), 0
        while len(self.reports) == before:
            count += 1
            self.put(entry(len(self.taken), reason="x" * 2000))
        return count

    def _on_full(self) -> None:
        self.full += 1


def fill(folder: Path) -> Path:
    """A file that leaves no room."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(b"x" * 4096)
    return filler


def test_a_real_disk_that_fills_up(small_disk: Path) -> None:
    """Refused, then written in the reserve, then stopped, then all of it there."""
    stage = Stage(small_disk)
    stage.put(opened(1))
    filler = fill(small_disk)
    stage.put_until_reported()
    assert "short of room: No space left on device; 1.0 MiB left" in stage.reports[0]
    with pytest.raises(JournalError, match="No space left"):
        stage.writer.append(opened(0))
    stage.put(checkpoint(1))
    assert stage.put_until_reported() > 400, "a MiB of reserve"
    assert "cannot be written: No space left" in stage.reports[1]
    stage.put(entry(2))
    there = list(read_all(small_disk))
    assert there == stage.taken[: len(there)] and len(there) < len(stage.taken)
    stage.loop.time_passes(RETRY_S)
    assert stage.full == 1
    filler.unlink()
    stage.loop.time_passes(RETRY_S)
    assert stage.reports[3:] == ["the journal has room again"]
    stage.put(opened(3))
    assert list(read_all(small_disk)) == stage.taken
    stage.loop.work()
    stage.writer.close()
    found = place(small_disk).segment(1).stat()
    assert found.st_blocks * 512 <= found.st_size + 4096, "what was taken is given back"


def test_room_is_taken_and_given_back(tmp_path: Path) -> None:
    """On whatever file system the tests run on: a file's blocks and its size."""
    loop, reports = Loop(), list[str]()
    sizes = Sizes(segment=500, reserve=4 * MIB, step=MIB)
    writer = Writer(place(tmp_path), loop, 0.2, sizes, reports.append)  # type: ignore[arg-type]
    if reports:
        writer.close()
        pytest.skip(f"needs a file system that takes room beforehand: {reports[0]}")

    def blocks() -> list[int]:
        where = place(tmp_path)
        return [where.segment(number).stat().st_blocks * 512 for number in segment_numbers(where.path)]

    assert [size >= 5 * MIB for size in blocks()] == [True]
    assert place(tmp_path).segment(1).stat().st_size < 100
    for number in range(6):
        writer.append(entry(number))
        loop.turn()
    loop.work()
    assert [size >= 4 * MIB for size in blocks()] == [False] * (len(blocks()) - 1) + [True]
    writer.close()
    assert max(blocks()) <= 8192
