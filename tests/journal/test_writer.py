"""The writer loses nothing that it took, whatever the disk does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.journal import segment as segment_module
from headrace.journal import syncer as syncer_module
from headrace.journal.place import segment_numbers
from headrace.journal.reader import is_live, read_all
from headrace.journal.record import HEAD_BYTES, MOST_RECORD_BYTES, frame
from headrace.journal.writer import RETRY_S, JournalError, Sizes, Writer
from headrace.model.entry import Entry, Record, Wire
from headrace.model.usage import Usage
from tests.journal.disk import Disk, Loop
from tests.journal.entries import SEED, checkpoint, entry, opened, place

SIZE = len(frame(entry(1), SEED))
SMALL = Sizes(segment=1 << 20, reserve=10 * SIZE, step=5 * SIZE, kept=1 << 20)


class Stage:
    """A writer on a disk with faults."""

    def __init__(self, directory: Path, sizes: Sizes = SMALL) -> None:
        self.directory = directory
        self.loop = Loop()
        self.reports: list[str] = []
        self.full = 0
        """How often the running exchanges were to be stopped."""
        self.writer = Writer(
            place(directory),
            self.loop,  # type: ignore[arg-type]
            sizes=sizes,
            report=self.reports.append,
            on_full=self._on_full,
        )

    def _on_full(self) -> None:
        self.full += 1

    def append(self, *records: Record) -> None:
        for record in records:
            self.writer.append(record)

    def put(self, *records: Record) -> None:
        """Append, and end the turn."""
        self.append(*records)
        self.loop.turn()

    def refuses(self, record: Record, why: str = "no space left") -> None:
        with pytest.raises(JournalError, match=why):
            self.append(record)

    def written(self) -> list[Record]:
        return list(read_all(self.directory))

    def segments(self) -> list[int]:
        return segment_numbers(place(self.directory).path)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    for module in (segment_module, syncer_module):
        monkeypatch.setattr(module, "os", disk)
    monkeypatch.setattr(segment_module, "preallocate", disk.preallocate)
    yield disk
    for file in disk.open_files.copy():
        disk.close(file)


@pytest.fixture
def stage(tmp_path: Path, disk: Disk) -> Stage:
    return Stage(tmp_path)


# ---- written


def test_entries_are_written_in_the_loop_turn(stage: Stage, disk: Disk) -> None:
    disk.writes = 0
    stage.append(entry(2), checkpoint(1), entry(1))
    assert stage.written() == [], "once, at the turn's end"
    assert len(stage.loop.soon) == 1
    stage.loop.turn()
    assert stage.written() == [entry(2), checkpoint(1), entry(1)]
    assert disk.writes == 1


def test_opened_is_written_at_once(stage: Stage, disk: Disk) -> None:
    """In one write with what is pending, and in order."""
    disk.writes = 0
    stage.append(entry(1), entry(2), opened(3))
    assert stage.written() == [entry(1), entry(2), opened(3)]
    assert disk.writes == 1
    stage.put(entry(3))
    assert stage.written() == [entry(1), entry(2), opened(3), entry(3)] and disk.writes == 2


def test_it_lives_until_it_is_closed(stage: Stage, disk: Disk) -> None:
    assert is_live(place(stage.directory))
    stage.append(entry(1))
    stage.writer.close()
    assert not is_live(place(stage.directory))
    assert stage.written() == [entry(1)] and disk.open_files == set() and disk.synced
    stage.loop.turn()
    stage.loop.time_passes()
    stage.writer.close()
    assert stage.written() == [entry(1)] and stage.loop.threads == [] and stage.reports == []
    with pytest.raises(JournalError, match="closed"):
        stage.append(opened(3))


def test_an_incarnation_is_new(stage: Stage, tmp_path: Path, disk: Disk) -> None:
    with pytest.raises(OSError, match="not empty"):
        Stage(tmp_path)
    assert len(disk.open_files) == 1 and len(list(place(tmp_path).path.parent.iterdir())) == 1
    stage.append(opened(1))
    assert stage.written() == [opened(1)]


def test_nothing_is_left_of_one_that_cannot_be_made(tmp_path: Path, disk: Disk) -> None:
    for fault in ("no_more_files", "broken"):
        setattr(disk, fault, True)
        with pytest.raises(OSError, match=r"files|error"):
            Stage(tmp_path)
        setattr(disk, fault, False)
        assert list(place(tmp_path).path.parent.iterdir()) == [] and not disk.open_files


# ---- segments


def test_rotation(tmp_path: Path, disk: Disk) -> None:
    """Whole records stay together; the old segment gives back its room, is synced and closed by a thread."""
    stage = Stage(tmp_path, Sizes(segment=HEAD_BYTES + 2 * SIZE + 10, reserve=10 * SIZE, step=0, kept=1 << 20))
    room = disk.room
    for number in range(1, 8):
        stage.put(entry(number))
    assert stage.written() == [entry(number) for number in range(1, 8)]
    assert stage.segments() == [1, 2, 3, 4]
    assert disk.synced == [] and len(stage.loop.threads) == 3 and len(disk.open_files) == 4
    stage.loop.work()
    assert len(disk.synced) == 3 and len(disk.open_files) == 1
    assert disk.room == room - 7 * SIZE - 3 * HEAD_BYTES, "one reserve"
    stage.writer.close()
    assert disk.room == room - 7 * SIZE - 3 * HEAD_BYTES + 10 * SIZE, "none"


def test_a_record_larger_than_a_segment(tmp_path: Path, disk: Disk) -> None:
    stage = Stage(tmp_path, Sizes(segment=50, reserve=10 * SIZE, step=0))
    stage.put(entry(1))
    assert stage.segments() == [1]
    stage.put(entry(2))
    assert stage.written() == [entry(1), entry(2)] and stage.segments() == [1, 2]


@pytest.mark.parametrize("fault", ["files", "room", "room for the head"])
def test_a_rotation_that_fails(tmp_path: Path, disk: Disk, fault: str) -> None:
    """The old segment goes on while it has room, and it is tried again after a step."""
    stage = Stage(tmp_path, Sizes(segment=HEAD_BYTES + SIZE, reserve=10 * SIZE, step=2 * SIZE))
    stage.put(entry(1))
    disk.no_more_files = fault == "files"
    disk.room = {"files": 1 << 30, "room": 0, "room for the head": HEAD_BYTES}[fault]
    stage.put(entry(2), opened(3))
    stage.put(entry(4))
    assert stage.written() == [entry(1), entry(2), opened(3), entry(4)] and stage.segments() == [1]
    assert len(disk.open_files) == 1, "no other descriptor is left"
    assert "cannot begin a new segment" in stage.reports[0]
    assert len(stage.reports) == (1 if fault == "files" else 2), "a full disk is short of room too"
    disk.no_more_files, disk.room = False, 1 << 30
    stage.loop.time_passes(RETRY_S)
    stage.put(entry(5))
    stage.put(entry(6))
    stage.put(entry(7))
    assert stage.segments() == [1, 2, 3]
    stage.loop.work()
    assert stage.written() == [entry(1), entry(2), opened(3), *(entry(number) for number in (4, 5, 6, 7))]
    stage.writer.close()
    assert disk.open_files == set()


# ---- a full disk


def test_room_is_taken_beforehand_and_in_steps(stage: Stage, disk: Disk) -> None:
    assert disk.taken == [15 * SIZE]
    for number in range(1, 6):
        stage.put(entry(number))
    assert len(disk.taken) == 1
    stage.put(entry(6))
    assert disk.taken == [15 * SIZE, 6 * SIZE]
    room = disk.room
    stage.writer.close()
    assert disk.room == room + 15 * SIZE


def test_a_disk_that_fills_up(stage: Stage, disk: Disk) -> None:
    """In this order: nothing new begins; entries go on in the reserve; checkpoints leave its half to them; what does
    not fit waits; running exchanges are stopped; with room again all that waited is there, in order, and each once."""
    stage.append(opened(1))
    disk.room = 0
    for number in range(1, 7):
        stage.put(entry(number))
    stage.refuses(opened(90))
    assert len(stage.reports) == 1 and "short of room: no space left" in stage.reports[0]
    stage.put(checkpoint(91))
    for number in range(7, 11):
        stage.put(entry(number))
    stage.put(checkpoint(92))
    assert stage.written() == [
        opened(1),
        *(entry(number) for number in range(1, 7)),
        checkpoint(91),
        *(entry(number) for number in range(7, 11)),
    ]
    stage.loop.time_passes(RETRY_S)
    for number in range(11, 20):
        stage.put(entry(number))
    assert "cannot be written: no space left" in stage.reports[1] and stage.full == 0
    before = stage.written()
    assert before[-1] == entry(14), "the reserve is used up, to the byte"
    stage.put(checkpoint(93))
    stage.refuses(opened(94))
    stage.loop.time_passes(RETRY_S)
    stage.loop.time_passes(RETRY_S)
    assert stage.full == 1 and "stopped" in stage.reports[2]
    stage.put(entry(20))
    disk.room = 1 << 30
    assert stage.written() == before
    stage.loop.time_passes(RETRY_S)
    assert stage.written() == [*before, *(entry(number) for number in range(15, 21))]
    assert stage.reports[3:] == ["the journal has room again"]
    stage.put(opened(21), checkpoint(21))
    assert stage.written()[-2:] == [opened(21), checkpoint(21)]


def test_room_again_before_the_reserve_is_used_up(stage: Stage, disk: Disk) -> None:
    disk.room = 0
    for number in range(1, 8):
        stage.put(entry(number))
    stage.loop.time_passes(RETRY_S)
    stage.refuses(opened(8))
    disk.room = 1 << 30
    stage.refuses(opened(8))
    stage.loop.time_passes(RETRY_S)
    stage.append(opened(8))
    assert stage.written() == [*(entry(number) for number in range(1, 8)), opened(8)]
    assert [line.split(":")[0] for line in stage.reports] == [
        "the journal is short of room",
        "the journal has room again",
    ]
    assert stage.full == 0


def test_a_disk_that_is_full_again(stage: Stage, disk: Disk) -> None:
    """Each time is one of its own."""
    for time in (1, 2):
        disk.room = 0
        for number in range(time * 100, time * 100 + 20):
            stage.put(entry(number))
        stage.loop.time_passes(RETRY_S)
        assert stage.full == time
        disk.room = 1 << 30
        stage.loop.time_passes(RETRY_S)
    assert stage.written() == [entry(number) for time in (1, 2) for number in range(time * 100, time * 100 + 20)]
    assert len(stage.reports) == 8


def test_a_worker_that_starts_on_a_full_disk(tmp_path: Path, disk: Disk) -> None:
    """It serves, and says to each request why it cannot."""
    disk.room = HEAD_BYTES + 1
    stage = Stage(tmp_path)
    stage.refuses(opened(1))
    disk.room = 1 << 30
    stage.loop.time_passes(RETRY_S)
    stage.append(opened(1))
    assert stage.written() == [opened(1)]


@pytest.mark.parametrize("room", [0, 1, 30])
def test_a_file_system_that_takes_no_room(tmp_path: Path, disk: Disk, room: int) -> None:
    """Said once. The very exchange that cannot be noted hears of it before it costs anything; its entry waits and is
    written once there is room; no half `opened` stands in the file."""
    disk.plain = True
    stage = Stage(tmp_path)
    assert len(stage.reports) == 1 and "takes no room beforehand" in stage.reports[0]
    stage.append(opened(1))
    disk.room = room
    stage.refuses(opened(2))
    size = place(tmp_path).segment(1).stat().st_size
    assert size == HEAD_BYTES + len(frame(opened(1), SEED))
    stage.put(entry(2))
    stage.loop.time_passes(RETRY_S)
    assert stage.written() == [opened(1)] and stage.full == 1
    disk.room = 1 << 30
    stage.loop.time_passes(RETRY_S)
    stage.append(opened(5))
    assert stage.written() == [opened(1), entry(2), opened(5)], "what was refused was not taken"
    assert stage.reports[-1] == "the journal has room again" and len(stage.reports) == 4


@pytest.mark.parametrize("room", range(1, SIZE, 7))
def test_half_an_entry_is_gone_on_with(tmp_path: Path, disk: Disk, room: int) -> None:
    """What a reader may have seen is never taken back, and what is half there is not written twice."""
    disk.plain = True
    stage = Stage(tmp_path)
    stage.append(opened(1))
    disk.room = SIZE + room
    stage.put(entry(1), entry(2), entry(3))
    assert stage.written() == [opened(1), entry(1)]
    disk.room = 1 << 30
    stage.loop.time_passes(RETRY_S)
    assert stage.written() == [opened(1), entry(1), entry(2), entry(3)]
    whole = sum(len(frame(record, SEED)) for record in stage.written())
    assert place(tmp_path).segment(1).stat().st_size == HEAD_BYTES + whole, "no byte too many"


def test_half_an_opened_that_cannot_be_taken_back(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader steps over it."""
    disk.plain = True
    stage = Stage(tmp_path)
    stage.append(opened(1))
    disk.room = 10

    def ftruncate(file: int, size: int) -> None:
        raise OSError(5, "input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "ftruncate", ftruncate)
        stage.refuses(opened(2))
    disk.room = 1 << 30
    stage.loop.time_passes(RETRY_S)
    stage.append(opened(3))
    assert stage.written() == [opened(1), opened(3)]
    stage.put(entry(1))
    assert stage.written() == [opened(1), opened(3), entry(1)]


def test_what_waits_is_bounded(tmp_path: Path, disk: Disk) -> None:
    """What is lost is counted, and said."""
    disk.plain = True
    stage = Stage(tmp_path, Sizes(kept=2 * SIZE))
    disk.room = 0
    stage.put(entry(1))
    stage.put(entry(2), entry(3), entry(4))
    assert len(stage.reports) == 3 and "no more entries" in stage.reports[2]
    disk.room = 1 << 30
    stage.loop.time_passes(RETRY_S)
    assert stage.written() == [entry(1), entry(2)]
    assert stage.reports[3:] == ["the journal has room again; 2 entries are lost"]


def test_much_that_waits_is_written_in_pieces(tmp_path: Path, disk: Disk) -> None:
    """As far as there is room, so that a try that fails again costs little."""
    disk.plain = True
    stage = Stage(tmp_path, Sizes(kept=1 << 30))
    records = [entry(number, reason="x" * 60_000) for number in range(20)]
    disk.room = 0
    stage.put(*records)
    disk.writes = 0
    stage.loop.time_passes(RETRY_S)
    assert disk.writes == 1
    disk.room = 500_000
    stage.loop.time_passes(RETRY_S)
    assert stage.written() == records[:8]
    disk.room = 1 << 30
    stage.loop.time_passes(RETRY_S)
    assert stage.written() == records


def test_lost_at_the_close(stage: Stage, disk: Disk) -> None:
    disk.broken = True
    stage.put(entry(1), entry(2))
    stage.writer.close()
    assert "the journal is closed; 2 entries could not be written and are lost" in stage.reports
    assert disk.open_files == set() and all(handle.cancelled for _, handle in stage.loop.later)
    with pytest.raises(JournalError, match="closed"):
        stage.append(entry(3))


def test_a_disk_with_room_again_at_the_close(tmp_path: Path, disk: Disk) -> None:
    disk.plain = True
    stage = Stage(tmp_path)
    disk.room = 0
    stage.put(entry(1))
    disk.room = 1 << 30
    stage.writer.close()
    assert stage.written() == [entry(1)]


# ---- what cannot be encoded


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
    stage.put(whole, entry(2))
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
