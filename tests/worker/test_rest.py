"""What a starting worker knows of budgets: the figures on the disk, and what journals hold beyond them."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.journal.place import Incarnation, Position, incarnations
from headrace.journal.reader import bytes_behind
from headrace.journal.record import frame, head, seed_of
from headrace.link.figures import FIGURES_FILE, Figures, JournalPosition, OpenCharge
from headrace.model.allowance import Spent
from headrace.model.catalogue import CatalogueParts
from headrace.model.entry import Checkpoint, Entry, Money, Opened, Record
from headrace.model.estimate import Learned
from headrace.model.key import Key
from headrace.model.limits import Budget, Window
from headrace.model.owner import Owner
from headrace.model.purses import Budgets
from headrace.worker import rest
from headrace.worker.rest import Start, read_start

ROOT = Path(__file__).resolve().parent.parent.parent
SECRET = bytes(range(32))
HOUR = 3600
NOW = 1_000_000.0 * HOUR + 60
START = 1_000_000 * HOUR
BUDGETS = Budgets.of(
    CatalogueParts(
        keys=(Key("dev", b"1", owner="team", budget=Budget(1, Window.HOUR)), Key("free", b"2")),
        owners=(Owner("team", budget=Budget(1, Window.TOTAL)),),
    )
)
DEV, TEAM = f"key:dev|hour|{START}", "owner:team|total|0"


def opened(id: str, key: str = "dev", at: float = NOW) -> Opened:
    return Opened(id=id, at=at, protocol="chat", key=key, owner="team" if key == "dev" else "")


def reached(id: str, counted: int) -> Checkpoint:
    return Checkpoint(id=id, duration_s=1.0, money=Money(counted=counted))


def ended(id: str, counted: int, key: str = "dev", at: float = NOW) -> Entry:
    return Entry(
        id=id,
        at=at,
        duration_s=1.0,
        protocol="chat",
        operation="",
        key=key,
        owner="team" if key == "dev" else "",
        end="completed",
        reason="stop",
        money=Money(counted=counted),
    )


class Disk:
    """A state directory: journals, and the figures of a moment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []

    def journal(self, name: str, *records: Record, number: int = 1) -> Incarnation:
        """Append to a segment of a worker that is dead."""
        where = Incarnation.of(self.folder, "node", 0, name)
        where.path.mkdir(parents=True, exist_ok=True)
        path, seed = where.segment(number), seed_of(name)
        begin = b"" if path.exists() else head(seed)
        with path.open("ab") as file:
            file.write(begin + b"".join(frame(one, seed) for one in records))
        return where

    def end_of(self, where: Incarnation, *open: OpenCharge, number: int = 1) -> JournalPosition:
        return JournalPosition(number, where.segment(number).stat().st_size, open)

    def figures(
        self, *spent: Spent, at: float = NOW - 1, positions: dict[str, JournalPosition] | None = None
    ) -> Figures:
        made = Figures(at=at, spent=spent, positions=positions or {}, learned={"m": Learned(output_p95=9)})
        FIGURES_FILE.write(self.folder, SECRET, made)
        return made

    def start(self, budgets: Budgets = BUDGETS, now: float = NOW) -> dict[str, Spent]:
        found = read_start(self.folder, SECRET, budgets, now, self.said.append)
        return {one.purse: one for one in found.spent}


@contextmanager
def alive(where: Incarnation, number: int = 1) -> Iterator[None]:
    """Its worker lives."""
    file = os.open(where.segment(number), os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_without_figures_nothing_is_known_whatever_the_journals_hold(disk: Disk) -> None:
    disk.journal("a", ended("1", 5))
    assert read_start(disk.folder, SECRET, BUDGETS, NOW, disk.said.append) == Start()
    assert not disk.said
    (disk.folder / "figures").write_bytes(b"damaged")
    assert read_start(disk.folder, SECRET, BUDGETS, NOW, disk.said.append) == Start()
    assert "writes a new one" in disk.said[0]


def test_what_is_behind_the_position_is_added_and_what_lies_before_it_is_not(disk: Disk) -> None:
    where = disk.journal("a", ended("1", 5), ended("2", 7))
    position = disk.end_of(where)
    disk.journal("a", ended("3", 11), ended("4", 13, key="free"))
    disk.figures(Spent(purse=DEV, settled=100, parts={"a": 12, "b": 1}), Spent(purse=TEAM), positions={"a": position})
    assert disk.start() == {
        DEV: Spent(purse=DEV, settled=100, parts={"a": 23, "b": 1}),
        TEAM: Spent(purse=TEAM, parts={"a": 11}),
    }


def test_a_journal_that_has_not_been_taken_from_counts_whole(disk: Disk) -> None:
    disk.journal("a", ended("1", 5))
    disk.journal("a", ended("2", 7), number=2)
    disk.journal("b", ended("3", 11))
    disk.figures(Spent(purse=TEAM))
    assert disk.start()[TEAM].parts == {"a": 12, "b": 11}


def test_a_dead_workers_open_exchanges_count_as_far_as_they_had_come(disk: Disk) -> None:
    where = disk.journal("a", opened("1"), opened("2"), opened("3"), opened("4"), reached("2", 20), reached("3", 30))
    open = [OpenCharge(str(n), "dev", "team", NOW, counted) for n, counted in ((1, 0), (2, 20), (3, 30), (4, 0))]
    position = disk.end_of(where, *open)
    disk.journal("a", opened("5"), reached("5", 1), reached("5", 50), opened("6"), reached("3", 33), ended("1", 1000))
    disk.figures(Spent(purse=TEAM), positions={"a": position})
    assert disk.start()[TEAM].parts == {"a": 20 + 33 + 50 + 1000}


def test_a_live_workers_open_exchanges_are_its_own_to_settle(disk: Disk) -> None:
    where = disk.journal("a", opened("1"), reached("1", 50), ended("2", 7))
    disk.figures(Spent(purse=TEAM))
    with alive(where):
        assert disk.start()[TEAM].parts == {"a": 7}
    assert disk.start()[TEAM].parts == {"a": 57}


def test_each_amount_counts_in_the_window_that_its_exchange_began_in(disk: Disk) -> None:
    disk.journal("a", ended("1", 5, at=START - 1), ended("2", 7, at=START))
    disk.figures(Spent(purse=DEV), Spent(purse=TEAM))
    found = disk.start()
    assert (found[DEV].parts, found[TEAM].parts) == ({"a": 7}, {"a": 12})


def test_a_window_that_has_begun_since_the_figures_were_written_has_what_the_journals_hold(disk: Disk) -> None:
    before = f"key:dev|hour|{START - HOUR}"
    disk.journal("a", ended("1", 7))
    disk.figures(Spent(purse=before, settled=99), at=START - 5.0)
    found = disk.start()
    assert found[DEV] == Spent(purse=DEV, parts={"a": 7})
    assert TEAM not in found, "it had begun, and the figures should have it: it is not known"
    disk.figures(Spent(purse=before), at=START + 5.0)
    assert DEV not in disk.start()


def test_without_budgets_no_journal_is_read(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.journal("a", ended("1", 5))
    disk.figures()
    monkeypatch.setattr(rest, "incarnations", None)
    found = read_start(disk.folder, SECRET, Budgets({}), NOW, disk.said.append)
    assert found == Start((), {"m": Learned(output_p95=9)})


def test_a_journal_that_is_taken_and_deleted_meanwhile_is_in_newer_figures(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = disk.journal("a", ended("1", 5))
    disk.figures(Spent(purse=TEAM))
    calls: list[int] = []

    def taken(folder: Path) -> list[Incarnation]:
        """The control process takes it just before it is looked for."""
        calls.append(1)
        if len(calls) == 1:
            disk.figures(Spent(purse=TEAM, parts={"a": 5}), positions={"a": disk.end_of(where)})
            where.segment(1).unlink()
            where.path.rmdir()
        return incarnations(folder)

    monkeypatch.setattr(rest, "incarnations", taken)
    assert disk.start()[TEAM].parts == {"a": 5}
    assert len(calls) == 2


def test_too_much_is_not_read_and_said(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    where = disk.journal("a", ended("1", 5))
    disk.figures(Spent(purse=TEAM, settled=3))
    monkeypatch.setattr(rest, "MOST_BYTES", bytes_behind(where, Position()) - 1)
    assert disk.start()[TEAM] == Spent(purse=TEAM, settled=3)
    assert "bytes of journal are not in the database" in disk.said[0]


def test_a_journal_that_cannot_be_read_keeps_the_others_from_nobody(disk: Disk) -> None:
    disk.journal("b", ended("2", 7))
    where = disk.journal("a")
    where.segment(1).write_bytes(head(seed_of("a"), 9))
    disk.figures(Spent(purse=TEAM))
    assert disk.start()[TEAM].parts == {"b": 7}
    assert "has format 9" in disk.said[0]


WORKER = """
import asyncio, sys
from pathlib import Path
from headrace.journal.place import Incarnation
from headrace.journal.writer import Writer
from tests.worker.test_rest import ended, opened, reached

async def main():
    writer = Writer(Incarnation.of(Path(sys.argv[1]), "node", 0, "killed"), asyncio.get_running_loop())
    for record in (opened("1"), opened("2"), reached("2", 50), ended("1", 7), opened("3")):
        writer.append(record)
    await asyncio.sleep(0)
    sys.stdout.write("written\\n")
    sys.stdout.flush()
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_workers_successor_knows_what_it_spent_as_soon_as_it_is_killed(disk: Disk) -> None:
    disk.figures(Spent(purse=TEAM, settled=100))
    command = [sys.executable, "-c", WORKER, str(disk.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"written\n"
            assert disk.start()[TEAM].parts == {"killed": 7}
        finally:
            process.kill()
    assert disk.start()[TEAM] == Spent(purse=TEAM, settled=100, parts={"killed": 57})
