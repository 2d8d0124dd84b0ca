"""The sums of budgets: as the database has them, then as what goes into it moves them on."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.control.spending import AGAIN_S, Spending
from headrace.journal.place import Incarnation, Position
from headrace.link.figures import JournalPosition, OpenCharge
from headrace.model.allowance import Spent
from headrace.model.catalogue import CatalogueParts
from headrace.model.entry import Checkpoint, Entry, Money, Opened, Record
from headrace.model.key import Key
from headrace.model.limits import Budget, Window
from headrace.model.owner import Owner
from headrace.model.purses import Budgets
from headrace.state.errors import DatabaseAwayError
from headrace.state.ledger import OpenExchange

HOUR = 3600
START = 1_000_000 * HOUR
NOON = START + 1800.0
BUDGETS = Budgets.of(
    CatalogueParts(
        keys=(Key("dev", b"1", owner="team", budget=Budget(1, Window.HOUR)), Key("free", b"2")),
        owners=(Owner("team", budget=Budget(1, Window.TOTAL)),),
    )
)
DEV, NEXT, TEAM = f"key:dev|hour|{START}", f"key:dev|hour|{START + HOUR}", "owner:team|total|0"
ONE, OTHER = (Incarnation.of(Path("nowhere"), "node", 0, name) for name in ("one", "other"))


class Books:
    """A database with sums and running exchanges, its clock, and the spending that reads it."""

    def __init__(self) -> None:
        self.now = NOON
        self.has: dict[str, Spent] = {}
        self.open: list[OpenExchange] = []
        self.asked: list[set[str]] = []
        self.is_away = False
        self.spending = Spending(self._read, self._read_open, lambda: self.now)

    async def _read(self, purses: Sequence[str]) -> list[Spent]:
        self.asked.append(set(purses))
        await asyncio.sleep(0)
        if self.is_away:
            raise DatabaseAwayError("it is away")
        return [self.has.get(purse, Spent(purse=purse)) for purse in purses]

    async def _read_open(self) -> list[OpenExchange]:
        return self.open

    def refresh(self) -> bool:
        """Whether the database was asked."""
        before = len(self.asked)
        asyncio.run(self.spending.refresh())
        return len(self.asked) > before

    def knows(self) -> bool:
        return self.spending.is_known

    def sums(self) -> dict[str, Spent]:
        return {one.purse: one for one in self.spending.sums}

    def changed(self) -> dict[str, Spent]:
        return {one.purse: one for one in self.spending.changed()}


@pytest.fixture
def books() -> Books:
    """Some that know their sums, and have told them."""
    made = Books()
    made.has = {DEV: Spent(purse=DEV, settled=100), TEAM: Spent(purse=TEAM, settled=200, parts={"one": 7})}
    assert made.spending.budget(BUDGETS)
    made.refresh()
    assert made.changed() == made.has
    return made


def opened(id: str) -> Opened:
    return Opened(id=id, at=NOON, protocol="chat", key="dev", owner="team")


def ended(id: str, counted: int, key: str = "dev", at: float = NOON) -> Entry:
    return Entry(
        id=id,
        at=at,
        duration_s=1.0,
        protocol="chat",
        operation="",
        key=key,
        owner="team",
        end="completed",
        reason="stop",
        money=Money(counted=counted),
    )


def reached(id: str, counted: int) -> Checkpoint:
    return Checkpoint(id=id, duration_s=1.0, money=Money(counted=counted))


def test_nothing_is_known_before_the_database_was_read(books: Books) -> None:
    fresh = Books()
    assert not fresh.knows()
    fresh.is_away = True
    fresh.spending.budget(BUDGETS)
    with pytest.raises(DatabaseAwayError):
        fresh.refresh()
    assert not fresh.knows()
    fresh.is_away = False
    assert fresh.refresh()
    assert fresh.knows()
    assert fresh.changed() == {purse: Spent(purse=purse) for purse in (DEV, TEAM)}


def test_what_is_taken_moves_its_journals_part_on(books: Books) -> None:
    records: list[Record] = [opened("1"), ended("1", 5), ended("2", 3, key="free"), ended("3", 0), ended("4", 2)]
    books.spending.take(ONE, records, [ended("5", 10)])
    books.spending.take(OTHER, [ended("6", 1)], [])
    expected = {
        DEV: Spent(purse=DEV, settled=100, parts={"one": 17, "other": 1}),
        TEAM: Spent(purse=TEAM, settled=200, parts={"one": 7 + 20, "other": 1}),
    }
    assert books.sums() == expected == books.changed()
    assert not books.spending.has_changed
    assert not books.refresh(), "the database has nothing else to say"


def test_an_amount_of_another_window_changes_nothing(books: Books) -> None:
    books.spending.take(ONE, [ended("1", 5, at=START - 1.0)], [])
    assert set(books.changed()) == {TEAM}


def test_where_track_was_lost_it_is_read_again_and_only_what_is_another_is_told(books: Books) -> None:
    books.spending.take(ONE, [ended("1", 5)], [])
    books.changed()
    books.spending.lose()
    assert not books.knows()
    books.has[DEV] = Spent(purse=DEV, settled=100, parts={"one": 6})
    books.has[TEAM] = Spent(purse=TEAM, settled=200, parts={"one": 12})
    assert books.refresh()
    assert books.knows()
    assert set(books.changed()) == {DEV}


def test_it_is_read_again_once_a_minute(books: Books) -> None:
    books.now += AGAIN_S - 1
    assert not books.refresh()
    books.now += 1
    assert books.refresh()
    assert not books.spending.has_changed
    books.now -= 10 * AGAIN_S  # a clock that was put back
    assert books.refresh()


def test_a_window_is_told_of_before_it_begins_and_the_last_one_forgotten_when_it_has(books: Books) -> None:
    books.now = START + HOUR - 61.0
    books.refresh()
    assert set(books.sums()) == {DEV, TEAM}
    books.now += 2
    assert books.refresh()
    assert books.changed() == {NEXT: Spent(purse=NEXT)}
    assert set(books.sums()) == {DEV, NEXT, TEAM}
    books.spending.take(ONE, [ended("1", 5, at=START + HOUR)], [])
    books.has[NEXT] = books.sums()[NEXT]
    books.now = START + HOUR + 0.0
    assert books.refresh()
    assert set(books.sums()) == {NEXT, TEAM}
    assert books.sums()[NEXT].parts == {"one": 5}


def test_budgets_that_change_are_read_and_equal_ones_are_not(books: Books) -> None:
    assert not books.spending.budget(Budgets(dict(BUDGETS.windows)))
    assert books.knows()
    assert books.spending.budget(Budgets({"owner:team": Window.TOTAL}))
    assert not books.knows()
    assert books.refresh()
    assert set(books.sums()) == {TEAM}
    books.spending.budget(Budgets({}))
    books.refresh()
    assert books.spending.is_empty and not books.sums()
    books.spending.take(ONE, [ended("1", 5)], [])
    assert not books.spending.has_changed


def test_budgets_that_change_while_the_database_is_read_are_not_taken_for_known(books: Books) -> None:
    async def main() -> None:
        books.spending.lose()
        reading = asyncio.ensure_future(books.spending.refresh())
        await asyncio.sleep(0)
        books.spending.budget(Budgets({"key:free": Window.TOTAL}))
        await reading
        assert not books.knows()
        await books.spending.refresh()
        assert books.knows()
        assert set(books.sums()) == {"key:free|total|0"}

    asyncio.run(main())


def test_the_figures_have_sums_positions_and_what_runs(books: Books) -> None:
    known = OpenExchange("node", 0, "one", opened("old"), reached("old", 4))
    books.open = [known, OpenExchange("node", 0, "gone", opened("lost"), None)]
    books.spending.lose()
    books.refresh()
    books.spending.take(ONE, [opened("1"), reached("1", 5), opened("2"), reached("old", 9), opened("3")], [])
    books.spending.take(ONE, [ended("3", 1), reached("never opened", 9)], [ended("2", 1)])
    figures = books.spending.figures({"one": Position(2, 30), "other": Position()}, {})
    assert figures.at == NOON
    assert figures.spent == books.spending.sums
    open = (OpenCharge("old", "dev", "team", NOON, 9), OpenCharge("1", "dev", "team", NOON, 5))
    assert figures.positions == {"one": JournalPosition(2, 30, open), "other": JournalPosition(1, 0)}
