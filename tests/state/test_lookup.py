"""Where an exchange is found: the database, the journals, or between the two."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from headrace.journal.place import Incarnation, Position
from headrace.journal.reader import Batch
from headrace.model.entry import Checkpoint, Money, Opened, Record
from headrace.state.amend import rerate
from headrace.state.database import Database
from headrace.state.errands import Amended, FoundEntry, FoundOpen
from headrace.state.ledger import START, Ledger
from headrace.state.lines import EntryFilter
from headrace.state.lookup import LAST, Report, find
from headrace.state.migration import migrate
from tests.cli.entries import PLAIN

OPENED = Opened(id="hr_open", at=PLAIN.at, protocol="chat", key="dev")
EARLY = Checkpoint(id="hr_open", duration_s=10.0)
LATE = Checkpoint(id="hr_open", duration_s=20.0)
OLDER = msgspec.structs.replace(PLAIN, id="hr_older", at=PLAIN.at - 1)
NEWER = msgspec.structs.replace(PLAIN, id="hr_newer", at=PLAIN.at + 1)


async def ingest(directory: Path, records: Sequence[Record], before: Position = START) -> None:
    """As the control process does it."""
    database = Database.open("", directory)
    try:
        await migrate(database)
        source = Incarnation.of(directory, "node", 0, "gone")
        after = Position(before.segment + 1, 100)
        await Ledger(database).take(source, before, Batch(tuple(records), after, 0, False))
    finally:
        await database.close()


async def looked_up(directory: Path, id: str, report: Report, wait_s: float = 0.0) -> FoundEntry | FoundOpen | None:
    database = Database.open("", directory)
    try:
        return await find(database, directory, id, report, wait_s)
    finally:
        await database.close()


def found(directory: Path, id: str) -> FoundEntry | FoundOpen | None:
    """What is found, and nothing to report."""
    return asyncio.run(looked_up(directory, id, pytest.fail))


@pytest.fixture
def state(journal: Callable[..., Path]) -> Callable[[Sequence[Record], Sequence[Record]], Path]:
    """A state directory with these records in its database, and these in its journals."""

    def made(ingested: Sequence[Record], written: Sequence[Record]) -> Path:
        directory = journal(*written)
        asyncio.run(ingest(directory, ingested))
        return directory

    return made


State = Callable[[Sequence[Record], Sequence[Record]], Path]


def test_an_entry_from_either(state: State) -> None:
    directory = state([OLDER], [NEWER])
    assert found(directory, "hr_older") == FoundEntry(OLDER)
    assert found(directory, "hr_newer") == FoundEntry(NEWER)
    assert found(directory, "hr_none") is None


@pytest.mark.parametrize(("ingested", "written"), [([OLDER, NEWER], [PLAIN]), ([PLAIN], [NEWER, OLDER]), ([NEWER], [])])
def test_the_newest_of_both(state: State, ingested: list[Record], written: list[Record]) -> None:
    assert found(state(ingested, written), LAST) == FoundEntry(NEWER)


def test_no_entry_at_all(state: State) -> None:
    assert found(state([OPENED], [EARLY]), LAST) is None


@pytest.mark.parametrize(
    ("ingested", "written"),
    [([OPENED, LATE], []), ([OPENED, EARLY], [LATE]), ([], [OPENED, EARLY, LATE]), ([OPENED, LATE], [OPENED, EARLY])],
)
def test_an_open_exchange_has_its_last_checkpoint(state: State, ingested: list[Record], written: list[Record]) -> None:
    assert found(state(ingested, written), "hr_open") == FoundOpen(OPENED, LATE)


def test_an_entry_is_worth_more_than_what_is_open(state: State) -> None:
    ended = msgspec.structs.replace(PLAIN, id="hr_open")
    assert found(state([OPENED, LATE], [ended]), "hr_open") == FoundEntry(ended)


def test_asking_makes_no_database(journal: Callable[..., Path]) -> None:
    directory = journal(PLAIN)
    assert found(directory, PLAIN.id) == FoundEntry(PLAIN)
    assert [path.name for path in directory.iterdir()] == ["journal"]


def test_a_database_that_cannot_be_asked_is_told(journal: Callable[..., Path]) -> None:
    directory = journal(PLAIN)
    (directory / "headrace.sqlite").write_bytes(b"not a database" * 100)
    told: list[str] = []
    assert asyncio.run(looked_up(directory, LAST, told.append)) == FoundEntry(PLAIN)
    assert "the database cannot be asked" in told[0]


def test_an_entry_that_was_rated_again_tells_its_first_amounts(state: State) -> None:
    directory = state([NEWER, OLDER], [])

    async def amend() -> None:
        database = Database.open("", directory)
        await rerate(database, EntryFilter(id=NEWER.id), lambda entry: Money(cost=7, charge=8), "new prices", 5.0)
        await database.close()

    asyncio.run(amend())
    expected = msgspec.structs.replace(NEWER, money=Money(cost=7, charge=8))
    amended = Amended(original=NEWER.money, revision=1, at=5.0, reason="new prices")
    assert found(directory, NEWER.id) == found(directory, LAST) == FoundEntry(expected, amended)


def test_an_entry_is_waited_for(state: State) -> None:
    directory = state([OPENED], [])
    ended = msgspec.structs.replace(PLAIN, id="hr_open")

    async def main() -> None:
        looking = asyncio.create_task(looked_up(directory, "hr_open", pytest.fail, 30.0))
        await asyncio.sleep(0)
        await ingest(directory, [ended], Position(START.segment + 1, 100))
        assert await looking == FoundEntry(ended)

    asyncio.run(main())


def test_an_entry_that_does_not_come(state: State) -> None:
    directory = state([OPENED], [])
    assert asyncio.run(looked_up(directory, "hr_open", pytest.fail, 0.1)) == FoundOpen(OPENED, None)
