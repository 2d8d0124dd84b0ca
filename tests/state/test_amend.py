"""Rating entries again: lines that supersede, differences in what budgets count, each exactly once."""

import asyncio
from contextlib import suppress
from functools import partial
from itertools import count

import msgspec
import pytest

from headrace.journal.place import Position
from headrace.model.allowance import CORRECTIONS, Spent
from headrace.model.entry import Entry, Money
from headrace.model.limits import Window
from headrace.state.amend import Rerated, Sums, rerate
from headrace.state.database import Database
from headrace.state.errors import DatabaseAwayError
from headrace.state.ledger import Ledger
from headrace.state.lines import EVERY, EntryFilter, lines
from headrace.state.migration import migrate
from headrace.state.rows import MOST_COUNT
from headrace.state.spending import KEY, OWNER, Purse, spent
from tests.state.crash import CrashError, crashing
from tests.state.journals import batch, entry, incarnation
from tests.state.places import Place, rows

HOUR_S = 3600
ENTRIES = [entry(str(number), at=float(number * HOUR_S), tokens=number) for number in range(7)]


async def filled(database: Database) -> Ledger:
    """A ledger with the entries: cost 100 a token, counted 200."""
    await migrate(database)
    ledger = Ledger(database)
    await ledger.take(incarnation(), Position(), batch(*ENTRIES, after=7))
    return ledger


def dearer(one: Entry) -> Money:
    """Three times what it was written with, from the fourth entry on; a price for the rest is missing."""
    tokens = one.usage.output_total or 0
    if tokens < 3:
        return Money(unpriced=("output",))
    return Money(cost=300 * tokens, charge=600 * tokens, counted=600 * tokens, price="v2")


async def part(database: Database, name: str, kind: str = KEY, window: Window = Window.TOTAL, start: int = 0) -> Spent:
    (found,) = await spent(database, [Purse(kind, name, window, start)])
    return found


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that seven entries are three of them."""
    monkeypatch.setattr("headrace.state.amend.PAGE", 3)


def test_what_it_does_and_says(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            ledger = await filled(database)
            expected = Rerated(
                entries=7,
                amended=7,
                before=Sums(cost=2100, charge=4200, counted=4200),
                after=Sums(cost=5400, charge=10800, counted=10800, unknown_cost=3),
            )
            assert await rerate(database, EVERY, dearer, "x", 9.0, dry_run=True) == expected
            assert await rows(database, "SELECT * FROM amendment") == []
            assert await part(database, "dev") == Spent(purse="key:dev|total|0", parts={"first": 4200})
            assert await rerate(database, EVERY, dearer, "x", 9.0) == expected
            assert [one.money async for one in ledger.entries()] == [dearer(one) for one in ENTRIES]
            assert await rows(database, "SELECT id, cost, charge, counted, price FROM amendment ORDER BY id") == [
                (one.id, dearer(one).cost, dearer(one).charge, dearer(one).counted, dearer(one).price)
                for one in ENTRIES
            ]

    asyncio.run(main())


def test_budgets_count_the_difference(place: Place) -> None:
    """In the hour of the entry, for its key and its owner; what the journal's part says stays."""

    async def main() -> None:
        async with place.open() as database:
            await filled(database)
            await rerate(database, EVERY, dearer, "x", now=9.0)
            for kind, name in ((KEY, "dev"), (OWNER, "ann")):
                assert (await part(database, name, kind)).parts == {"first": 4200, CORRECTIONS: 6600}
            hours = [await part(database, "dev", KEY, Window.HOUR, number * HOUR_S) for number in range(7)]
            assert [one.parts.get(CORRECTIONS, 0) for one in hours] == [0, -200, -400, 1200, 1600, 2000, 2400]
            await rerate(database, EVERY, lambda _: Money(), "x", now=9.0)
            assert (await part(database, "dev")).total == 0

    asyncio.run(main())


def test_what_is_so_already_gets_no_line(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            ledger = await filled(database)
            for _ in range(3):
                done = await rerate(database, EntryFilter(since=4.0 * HOUR_S), dearer, "x", now=9.0)
            assert (done.entries, done.amended, done.before, done.after) == (3, 0, done.after, done.before)
            assert await rows(database, "SELECT max(revision), count(*) FROM amendment") == [(1, 3)]
            done = await rerate(database, EVERY, lambda one: one.money, "x", now=9.0)
            assert (done.entries, done.amended) == (7, 0)
            assert (await part(database, "dev")).parts == {"first": 4200, CORRECTIONS: 400 * 15}
            line = await ledger.line("6")
            assert line is not None and (line.revision, line.original) == (1, ENTRIES[6].money)

    asyncio.run(main())


def test_money_past_63_bits(place: Place) -> None:
    """The line has it as it is. What budgets count goes to the end of a column, and comes back from there."""
    much = Money(cost=2**63, charge=2**63, counted=2**64 - 1)

    async def main() -> None:
        async with place.open() as database:
            ledger = await filled(database)
            await rerate(database, EVERY, lambda _: much, "x", now=9.0)
            assert await ledger.entry("3") == msgspec.structs.replace(ENTRIES[3], money=much)
            hours = [Purse(KEY, "dev", Window.HOUR, number * HOUR_S) for number in range(7)]
            assert [one.total for one in await spent(database, hours)] == [MOST_COUNT] * 7
            assert (await part(database, "dev")).parts[CORRECTIONS] == MOST_COUNT, "what a message can say"
            await rerate(database, EVERY, lambda one: ENTRIES[int(one.id)].money, "x", now=9.0)
            assert [one.total for one in await spent(database, hours)] == [one.money.counted for one in ENTRIES]

    asyncio.run(main())


def test_a_price_that_cannot_be_told_leaves_the_page(place: Place) -> None:
    """What `reprice` raises comes out; pages before are done, its own is not."""

    def failing(one: Entry) -> Money:
        if one.id == "4":
            raise KeyError(one.id)
        return dearer(one)

    async def main() -> None:
        async with place.open() as database:
            await filled(database)
            with pytest.raises(KeyError):
                await rerate(database, EVERY, failing, "x", now=9.0)
            assert await rows(database, "SELECT id FROM amendment ORDER BY id") == [("0",), ("1",), ("2",)]

    asyncio.run(main())


def _always(money: Money, _: Entry) -> Money:
    return money


def test_two_at_once(place: Place) -> None:
    """Each sees what the other has done, whoever comes first to a page."""

    async def main() -> None:
        async with place.open() as one, place.open() as other:
            ledger = await filled(one)
            for turn in range(5):
                reprice = partial(_always, Money(cost=turn, counted=turn))
                done = await asyncio.gather(*(rerate(each, EVERY, reprice, "x", now=9.0) for each in (one, other)))
                assert sum(each.amended for each in done) == 7
                assert (await part(one, "dev")).total == 7 * turn
            assert [line.revision async for line in lines(one, EVERY)] == [5] * 7
            assert await ledger.entry("0") is not None

    asyncio.run(main())


def test_stopped_at_every_step(place: Place) -> None:
    """Wherever it is stopped, what budgets count fits to the lines, and beginning again ends well."""

    async def main() -> int:
        async with place.open() as database:
            ledger = await filled(database)
        for step in count():
            if not await _stopped(place, ledger, step):
                return step
        raise AssertionError

    assert asyncio.run(main()) > 3 * 6, "it was stopped at fewer places than there are statements"


async def _stopped(place: Place, ledger: Ledger, step: int) -> bool:
    """Whether there was such a step to be stopped at. Every time the entries get another money."""

    def reprice(one: Entry) -> Money:
        amount = 1000 * step + (one.usage.output_total or 0)
        return Money(cost=amount, charge=amount, counted=amount)

    async with place.open() as database:
        with crashing(database, step) as crash, suppress(CrashError, DatabaseAwayError):
            await rerate(database, EVERY, reprice, "x", now=float(step))
    async with place.open() as database:
        found = [line async for line in lines(database, EVERY)]
        assert (await part(database, "dev")).total == sum(line.entry.money.counted for line in found)
        done = [line for line in found if line.entry.money == reprice(line.entry)]
        assert len(done) in (0, 3, 6, 7)
        assert (await rerate(database, EVERY, reprice, "x", now=float(step))).amended == 7 - len(done)
        found = [line async for line in lines(database, EVERY)]
        assert [(line.entry.money, line.revision) for line in found] == [(reprice(one), step + 1) for one in ENTRIES]
        assert (await part(database, "dev")).total == sum(reprice(one).counted for one in ENTRIES)
    return crash.is_over
