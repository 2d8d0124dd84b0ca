"""A segment is seen only when it is whole at its beginning and locked."""

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.journal import segment as module
from headrace.journal.reader import is_live
from headrace.journal.record import HEAD_BYTES, head
from headrace.journal.segment import Segment
from tests.journal.disk import Disk
from tests.journal.entries import SEED, place


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(module, "os", disk)
    monkeypatch.setattr(module, "preallocate", disk.preallocate)
    yield disk
    for file in disk.open_files.copy():
        disk.close(file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = place(tmp_path).path
    path.mkdir(parents=True)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_it_is_there_with_its_head_locked(folder: Path, tmp_path: Path, disk: Disk) -> None:
    segment = Segment(folder, 3, SEED, room=1000)
    assert names(folder) == ["3.segment"] and (folder / "3.segment").read_bytes() == head(SEED)
    assert (folder / "3.segment").stat().st_mode & 0o777 == 0o600
    assert is_live(place(tmp_path))
    assert (segment.number, segment.size, segment.left) == (3, HEAD_BYTES, 1000)
    segment.close()
    assert not is_live(place(tmp_path)) and disk.synced


@pytest.mark.parametrize("fault", ["lock", "head", "room", "name"])
def test_nothing_is_seen_of_one_that_could_not_be_made(
    folder: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    if fault == "head":
        disk.room = HEAD_BYTES - 1
    elif fault == "room":
        disk.room = HEAD_BYTES + 999
    elif fault == "name":
        (folder / "3.segment").mkdir()
    else:

        def flock(file: int, how: int) -> None:
            raise OSError(37, "no locks available")

        monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match=r"no space|no locks|directory"):
        Segment(folder, 3, SEED, room=1000)
    assert names(folder) == (["3.segment"] if fault == "name" else []) and not disk.open_files


def test_a_rest_of_a_failed_try_is_no_hindrance(folder: Path, disk: Disk) -> None:
    (folder / ".3.segment").write_bytes(b"a rest of a worker that died here")
    Segment(folder, 3, SEED).close()
    assert names(folder) == ["3.segment"] and (folder / "3.segment").read_bytes() == head(SEED)


def test_room_is_taken_where_it_ends_or_ended_to_be_taken(folder: Path, disk: Disk) -> None:
    segment = Segment(folder, 1, SEED)
    segment.reserve(100, 50)
    assert segment.left == 150 and disk.taken == [150]
    segment.write(b"x" * 50)
    segment.reserve(100, 50)
    assert disk.taken == [150], "there is enough"
    segment.write(b"x")
    segment.reserve(100, 50)
    assert segment.left == 150 and disk.taken == [150, 51]
    segment.write(b"x" * 500)
    assert segment.left == 0
    segment.reserve(100, 50)
    assert segment.left == 150, "from its end on, not from where the room had ended"
    segment.close()


def test_what_was_written_is_known_where_not_all_was(folder: Path, disk: Disk) -> None:
    segment = Segment(folder, 1, SEED)
    disk.room = 10
    with pytest.raises(OSError, match="no space"):
        segment.write(b"x" * 30)
    assert segment.size == HEAD_BYTES + 10
    segment.cut(HEAD_BYTES)
    assert segment.size == HEAD_BYTES == (folder / "1.segment").stat().st_size and disk.room == 10
    segment.write(b"y")
    assert (folder / "1.segment").read_bytes() == head(SEED) + b"y"


def test_it_is_let_go_even_if_it_cannot_be_synced(folder: Path, tmp_path: Path, disk: Disk) -> None:
    segment = Segment(folder, 1, SEED)
    disk.broken = True
    with pytest.raises(OSError, match="input/output"):
        segment.close()
    assert not disk.open_files and not is_live(place(tmp_path))
