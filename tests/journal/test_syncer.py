"""One sync at a time, for all that was written since the last; faults are said once."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.journal import segment as segment_module
from headrace.journal import syncer as module
from headrace.journal.segment import Segment
from headrace.journal.syncer import Syncer
from tests.journal.disk import Disk, Loop
from tests.journal.entries import SEED

SYNC_S = 0.2


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    for one in (segment_module, module):
        monkeypatch.setattr(one, "os", disk)
    yield disk
    for file in disk.open_files.copy():
        disk.close(file)


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def segment(tmp_path: Path, disk: Disk) -> Segment:
    return Segment(tmp_path, 1, SEED)


@pytest.fixture
def syncer(loop: Loop, tmp_path: Path, reports: list[str]) -> Syncer:
    return Syncer(loop, SYNC_S, [tmp_path, tmp_path.parent], reports.append)  # type: ignore[arg-type]


def test_one_for_all_that_was_written(loop: Loop, syncer: Syncer, segment: Segment, disk: Disk) -> None:
    for _ in range(3):
        syncer.due(segment)
    assert [delay for delay, _ in loop.later] == [SYNC_S] and not loop.threads
    loop.time_passes()
    assert len(loop.threads) == 1 and not disk.synced
    loop.work()
    assert disk.synced == [segment.file] and not loop.later, "nothing new, no sync"
    syncer.due(segment)
    loop.time_passes()
    loop.work()
    assert len(disk.synced) == 2


def test_a_slow_disk_has_one_at_a_time(loop: Loop, syncer: Syncer, segment: Segment, disk: Disk) -> None:
    syncer.due(segment)
    loop.time_passes()
    for _ in range(5):
        syncer.due(segment)
        loop.time_passes()
    assert len(loop.threads) == 1
    loop.work()
    assert [delay for delay, _ in loop.later] == [SYNC_S], "what was written meanwhile"
    loop.time_passes()
    loop.work()
    assert len(disk.synced) == 2 and not loop.later


def test_new_names_are_synced_with_the_first(
    loop: Loop, syncer: Syncer, segment: Segment, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    open_ = disk.open

    def open_noted(path: Path, flags: int, mode: int = 0o777) -> int:
        opened.append(path)
        return open_(path, flags, mode)

    monkeypatch.setattr(disk, "open", open_noted)
    for _ in range(2):
        syncer.due(segment)
        loop.time_passes()
        loop.work()
    assert opened == [tmp_path.parent, tmp_path] and disk.open_files == {segment.file}
    syncer.retire(segment, tmp_path)
    loop.work()
    assert not disk.open_files
    second = Segment(tmp_path, 2, SEED)
    opened.clear()
    syncer.due(second)
    loop.time_passes()
    loop.work()
    assert opened == [tmp_path]


def test_a_retired_segment_is_not_synced_again(
    loop: Loop, syncer: Syncer, segment: Segment, disk: Disk, tmp_path: Path
) -> None:
    syncer.due(segment)
    syncer.retire(segment, tmp_path)
    loop.time_passes()
    assert len(loop.threads) == 1
    loop.work()
    assert len(disk.synced) == 1 and not disk.open_files


def test_faults_in_a_row_are_said_once(
    loop: Loop, syncer: Syncer, segment: Segment, disk: Disk, reports: list[str], tmp_path: Path
) -> None:
    def sync() -> None:
        syncer.due(segment)
        loop.time_passes()
        loop.work()

    disk.broken = True
    sync()
    sync()
    assert len(reports) == 1 and "cannot be synced to the disk: input/output error" in reports[0]
    disk.broken = False
    sync()
    assert len(reports) == 1 and len(disk.open_files) == 1
    disk.broken = True
    syncer.retire(segment, tmp_path)
    loop.work()
    assert len(reports) == 2 and not disk.open_files


def test_at_the_close_all_is_synced(
    loop: Loop, syncer: Syncer, segment: Segment, disk: Disk, reports: list[str]
) -> None:
    syncer.due(segment)
    syncer.close(segment)
    assert disk.synced and not disk.open_files and not reports
    loop.time_passes()
    assert not loop.threads


def test_a_close_waits_for_the_sync_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a real loop and the real thread: no descriptor is closed under it."""
    order: list[str] = []
    syncing, go_on = threading.Event(), threading.Event()
    sync = Segment.sync

    def slow(segment: Segment) -> None:
        if not order:
            order.append("begun")
            syncing.set()
            assert go_on.wait(10)
        sync(segment)
        order.append("synced")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        syncer = Syncer(loop, 0.0, [tmp_path], order.append)
        segment = Segment(tmp_path, 1, SEED)
        syncer.due(segment)
        await asyncio.to_thread(syncing.wait, 10)
        syncer.due(segment)
        threading.Timer(0.05, go_on.set).start()
        syncer.close(segment)
        order.append("closed")
        await asyncio.sleep(0)

    monkeypatch.setattr(Segment, "sync", slow)
    asyncio.run(main())
    assert order == ["begun", "synced", "synced", "closed"]
