"""kill -9 of the process that ingests, in the middle of its work, again and again: the ledger has every record once."""

import asyncio
import random
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from headrace.journal.place import incarnations
from headrace.model.entry import Entry, Record
from headrace.state.ledger import Ledger
from tests.control.conftest import place, postgres, postgres_process
from tests.control.disk import Disk, Ingestion, entries_of
from tests.state.journals import Journal, by_id, entry, opened, reached, tokens_of
from tests.state.places import Place, rows

__all__ = ["place", "postgres", "postgres_process"]
pytestmark = pytest.mark.chaos

KILLS = 5
EXCHANGES = 600
BATCH_BYTES = 6000
"""Some 15 exchanges: a batch is hardly done before the next begins, so a kill meets one."""


def records_of(name: str, turn: int) -> list[Record]:
    """What one worker writes between two kills: exchanges that overlap, and some that will never end."""
    made: list[Record] = []
    for number in range(EXCHANGES):
        id = f"{name}-{turn}-{number:04d}"
        made.append(opened(id))
        if number % 7 == 0:
            made.append(reached(id, number + 1))
        if number >= 20 and number % 50:
            made.append(entry(f"{name}-{turn}-{number - 20:04d}", tokens=number))
    return made


def killed_at_work(place: Place, chance: random.Random) -> list[bytes]:
    """Run the process until its first lines, and a little longer; the lines that it wrote whole."""
    arguments = [place.url, str(place.directory), str(BATCH_BYTES)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.ingesting", *arguments], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        time.sleep(chance.random() * 0.05)
        process.kill()
        lines += process.stdout.readlines()
    return [line for line in lines if line.endswith(b"\n")]


def test_killed_again_and_again(place: Place, tmp_path: Path) -> None:
    chance = random.Random(7)
    disk = Disk(tmp_path)
    journals = {name: Journal(disk.place(name)) for name in ("a", "b")}
    lines: list[bytes] = []
    place.run(_nothing)
    with ExitStack() as living:
        for turn in range(KILLS):
            for name, journal in journals.items():
                made = records_of(name, turn)
                journal.items += made
                where = disk.write(name, *made)
                if not turn:
                    living.enter_context(disk.alive(where))
            lines += killed_at_work(place, chance)
    expected = [one for journal in journals.values() for one in journal.expected()]

    async def work(ledger: Ledger) -> None:
        taken = len(await entries_of(ledger))
        assert 0 < taken < len(expected), "the kills came when nothing was done, or all"
        last = Ingestion(disk, ledger)
        await last.drain()
        found = await entries_of(ledger)
        assert by_id(found) == by_id(expected)
        assert await ledger.open_exchanges() == () and incarnations(tmp_path) == []
        ids = [_id(line) for line in (*lines, *last.logged)]
        assert len(set(ids)) == len(ids), "no line twice"
        await _sums(place, expected)

    place.run(work)


async def _nothing(ledger: Ledger) -> None:
    """The tables are there when this is called."""


async def _sums(place: Place, expected: list[Entry]) -> None:
    async with place.open() as database:
        ((count, tokens),) = await rows(database, "SELECT count(*), sum(output_total) FROM entry")
    assert (count, tokens) == (len(expected), tokens_of(expected))


def _id(line: bytes) -> str:
    found = msgspec.json.decode(line)["id"]
    assert isinstance(found, str)
    return found


def test_the_script_of_the_killed_process_is_what_the_control_process_runs(tmp_path: Path) -> None:
    """It takes what it is given, or the kills would prove nothing."""
    disk = Disk(tmp_path)
    place = Place("", tmp_path)
    place.run(_nothing)
    where = disk.write("a", opened("e1"), entry("e1"))
    with disk.alive(where):
        (line,) = killed_at_work(place, random.Random(1))
    assert _id(line) == "e1"
    assert asyncio.run(_entries(place)) == [entry("e1")]


async def _entries(place: Place) -> list[Entry]:
    async with place.ledger() as ledger:
        return await entries_of(ledger)
