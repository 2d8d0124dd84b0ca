"""The ledger takes every record exactly once, wherever it is stopped, and answers about exchanges."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from itertools import count

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.journal.place import Incarnation, Position
from headrace.journal.reader import Batch
from headrace.model.allowance import Spent
from headrace.model.entry import Entry, Wire, lost_entry
from headrace.model.limits import Window
from headrace.model.usage import Usage
from headrace.state.database import Database
from headrace.state.errors import DatabaseAwayError, PositionMovedError
from headrace.state.ledger import EndCount, Ledger, OpenExchange, Progress
from headrace.state.migration import migrate
from headrace.state.spending import KEY, Purse, spent
from tests.state.crash import CrashError, crashing
from tests.state.journals import Journal, batch, by_id, entry, incarnation, opened, position, reached, tokens_of
from tests.state.places import Place, rows

START = Position()


async def all_entries(ledger: Ledger) -> list[Entry]:
    return [one async for one in ledger.entries()]


async def counted(database: Database, source: Incarnation) -> int:
    """What keys have spent by one journal."""
    name = f"incarnation = '{source.name}' AND slot = {source.slot}"
    ((amount,),) = await rows(database, f"SELECT sum(amount) FROM spending WHERE kind = 'key' AND {name}")
    return int(amount or 0)


# ---------------------------------------------------------------------------------------------------------- taking


def test_one_exchange_over_three_batches(place: Place) -> None:
    async def work(ledger: Ledger) -> None:
        source = incarnation()
        assert await ledger.progress(source) == Progress()
        assert await ledger.take(source, START, batch(opened("a"), after=1)) == ()
        assert await ledger.progress(source) == Progress(position(1))
        assert await ledger.open_exchanges() == (OpenExchange("node", 0, "first", opened("a"), None),)
        await ledger.take(source, position(1), batch(reached("a", 1), reached("a", 2), after=3))
        assert await ledger.open_exchanges() == (OpenExchange("node", 0, "first", opened("a"), reached("a", 2)),)
        assert await ledger.entry("a") is None
        await ledger.take(source, position(3), batch(entry("a"), after=4))
        assert await ledger.open_exchanges() == ()
        assert await ledger.entry("a") == entry("a")
        assert await ledger.progress(source) == Progress(position(4))

    place.run(work)


def test_a_dead_worker_s_exchanges_are_settled(place: Place) -> None:
    async def work(ledger: Ledger) -> None:
        mine, other = incarnation("first"), incarnation("other")
        await ledger.take(other, START, batch(opened("z"), after=1))
        await ledger.take(mine, START, batch(opened("a"), opened("b"), opened("c"), reached("b", 5), after=4))
        last = batch(reached("a", 7), entry("c"), opened("d"), reached("d", 3), opened("e"), after=9, ended=True)
        settled = await ledger.take(mine, position(4), last)
        expected = [
            lost_entry(opened("a"), reached("a", 7), "worker_lost"),
            lost_entry(opened("b"), reached("b", 5), "worker_lost"),
            lost_entry(opened("d"), reached("d", 3), "worker_lost"),
            lost_entry(opened("e"), None, "worker_lost"),
        ]
        assert by_id(settled) == expected
        assert await all_entries(ledger) == by_id([*expected, entry("c")])
        assert await ledger.progress(mine) == Progress(position(9), ended=True)
        assert [one.opened.id for one in await ledger.open_exchanges()] == ["z"], "another worker's run on"

    place.run(work)


def test_damage_is_a_reason(place: Place) -> None:
    """Damage in any batch: an entry may have been written, and not be readable."""

    async def work(ledger: Ledger) -> None:
        source = incarnation()
        await ledger.take(source, START, batch(opened("a"), after=1, damaged=100))
        await ledger.take(source, position(1), batch(after=2, damaged=20))
        (settled,) = await ledger.take(source, position(2), batch(after=2, ended=True))
        assert (settled.id, settled.end, settled.reason) == ("a", "interrupted", "journal_damaged")
        assert await ledger.progress(source) == Progress(position(2), ended=True, damaged_bytes=120)

    place.run(work)


def test_only_the_expected_position_is_moved(place: Place) -> None:
    async def work(ledger: Ledger) -> None:
        source = incarnation()
        with pytest.raises(PositionMovedError, match="node/0/first"):
            await ledger.take(source, position(3), batch(entry("a"), after=4))
        assert await ledger.progress(source) == Progress()
        await ledger.take(source, START, batch(entry("a"), after=1))
        for late in (batch(entry("b"), after=1), batch(entry("b"), after=2), batch(after=0, ended=True)):
            with pytest.raises(PositionMovedError):
                await ledger.take(source, START, late)
        await ledger.take(source, position(1), batch(after=1, ended=True))
        with pytest.raises(PositionMovedError):
            await ledger.take(source, position(1), batch(after=1, ended=True))
        assert await all_entries(ledger) == [entry("a")]

    place.run(work)


def test_slots_and_nodes_are_apart(place: Place) -> None:
    async def work(ledger: Ledger) -> None:
        for number, source in enumerate(
            [incarnation("x"), incarnation("x", slot=1), incarnation("x", node="n2"), incarnation("y")]
        ):
            await ledger.take(source, START, batch(entry(f"{number}"), after=1))
        assert [one.id for one in await all_entries(ledger)] == ["0", "1", "2", "3"]

    place.run(work)


def test_two_at_once_take_it_once(place: Place) -> None:
    """Both begin together; one moves the position, the other is told."""

    async def main() -> None:
        async with place.ledger() as one, place.open() as database:
            other = Ledger(database)
            source = incarnation()
            for number in range(10):
                begins, after = position(number), number + 1
                results = await asyncio.gather(
                    one.take(source, begins, batch(entry(f"{number}"), after=after)),
                    other.take(source, begins, batch(entry(f"{number}"), after=after)),
                    return_exceptions=True,
                )
                assert sorted(map(type, results), key=str) == [PositionMovedError, tuple], results
            assert len(await all_entries(one)) == 10

    asyncio.run(main())


def test_what_no_column_takes_stops_nothing(place: Place) -> None:
    """A value that a database refuses would stop the ingestion of its journal for good."""
    odd = msgspec.structs.replace(
        entry("a"),
        at=float("nan"),
        model="nul \0",
        reason="\U0010ffff\0",
        status=10**15,
        usage=Usage(input_total=2**64 - 1, output_total=-5),
        wire=Wire(received=2**64 - 1, first_event_s=float("inf")),
    )

    async def work(ledger: Ledger) -> Entry | None:
        await ledger.take(incarnation(), START, batch(opened("b\0"), odd, after=2))
        return await ledger.entry("a")

    kept = place.run(work)
    assert kept is not None and (kept.model, kept.usage) == (odd.model, odd.usage)


def test_columns_are_for_sums(place: Place) -> None:
    """What a report adds up is what the entries say."""

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            ledger = Ledger(database)
            await ledger.take(incarnation(), START, batch(*(entry(f"{n}", tokens=n) for n in range(50)), after=50))
            sums = (
                "SELECT count(*), sum(input_total), sum(cached_input), sum(output_total), sum(cache_write) FROM entry"
            )
            assert await rows(database, sums) == [(50, 450, 100, sum(range(50)), None)]

    asyncio.run(main())


# ---------------------------------------------------------------------------------------------- stopped anywhere


FIRST = batch(opened("a"), opened("b"), opened("c"), after=3)
SECOND = (entry("a"), reached("b", 4), opened("d"), entry("e"), reached("d"))


def test_stopped_at_every_step_of_a_beginning(place: Place) -> None:
    """The first batch of a journal, which also settles one that has ended long ago: whole or not at all, too."""

    async def main() -> int:
        async with place.ledger():
            for step in count():
                if not await _stopped_at_first(place, step):
                    return step
        raise AssertionError

    assert asyncio.run(main()) > 8, "it was stopped at fewer places than there are statements"


async def _stopped_at_first(place: Place, step: int) -> bool:
    """Whether there was such a step to be stopped at."""
    old, new = incarnation(f"old{step}"), incarnation(f"new{step}")
    purse = Purse(KEY, f"key{step}", Window.TOTAL, 0)
    entries = [msgspec.structs.replace(entry(f"{step}-{n}"), key=purse.name) for n in range(2)]
    async with place.open() as database:
        ledger = Ledger(database, lambda: 0.0)
        await ledger.take(old, START, batch(entries[0], after=1, ended=True))
        with crashing(database, step) as crash, suppress(CrashError, DatabaseAwayError):
            await Ledger(database, lambda: 1e6).take(new, START, batch(entries[1], after=1))
    async with place.open() as database:
        (found,) = await spent(database, [purse])
        whole = Spent(purse=purse.text, settled=200, parts={new.name: 200})
        assert found == (whole if crash.has_committed else Spent(purse=purse.text, parts={old.name: 200}))
        if not crash.has_committed:
            await Ledger(database, lambda: 1e6).take(new, START, batch(entries[1], after=1))
        assert await spent(database, [purse]) == (whole,)
    return crash.is_over


@pytest.mark.parametrize("ended", [False, True])
def test_stopped_at_every_step(place: Place, ended: bool) -> None:
    """A batch with all that a batch can hold is stopped at every statement and on both sides of its commit: it is taken
    whole or not at all, and taking it up again ends well."""

    async def main() -> int:
        async with place.ledger():
            for step in count():
                if not await _stopped(place, step, ended):
                    return step
        raise AssertionError

    assert asyncio.run(main()) > 10, "it was stopped at fewer places than there are statements"


async def _stopped(place: Place, step: int, ended: bool) -> bool:
    """Whether there was such a step to be stopped at."""
    source = incarnation(f"inc{step}")
    names = {id: f"{id}{step}" for id in "abcde"}
    first = _renamed(FIRST, names)
    second = _renamed(batch(*SECOND, after=8, ended=ended, damaged=int(ended)), names)
    async with place.open() as database:
        ledger = Ledger(database)
        await ledger.take(source, START, first)
        with crashing(database, step) as crash, suppress(CrashError, DatabaseAwayError):
            await ledger.take(source, position(3), second)
    async with place.open() as database:
        ledger = Ledger(database)
        is_taken = (await ledger.progress(source)).position == position(8)
        assert is_taken == crash.has_committed
        assert (await ledger.entry(names["a"]) is not None) == is_taken
        assert (await ledger.entry(names["b"]) is not None) == (is_taken and ended)
        assert await counted(database, source) == (0 if not is_taken else 2 * 200 + (800 + 200 if ended else 0))
        if not is_taken:
            await ledger.take(source, position(3), second)
        journal = Journal(source, [*first.records, int(ended), *second.records], is_dead=ended)
        expected = [one for one in journal.expected() if ended or one.end == "completed"]
        found = [one async for one in ledger.entries() if one.id in names.values()]
        assert by_id(found) == by_id(expected)
        assert await counted(database, source) == sum(one.money.counted for one in expected)
        still_open = {one.opened.id for one in await ledger.open_exchanges() if one.incarnation == source.name}
        assert still_open == (set() if ended else {names["b"], names["c"], names["d"]})
    return crash.is_over


def _renamed(one: Batch, names: dict[str, str]) -> Batch:
    records = tuple(msgspec.structs.replace(record, id=names[record.id]) for record in one.records)
    return Batch(records, one.after, one.damaged_bytes, one.ended)


# ---- any sequence of journals, readers and crashes


@dataclass
class Reader:
    """An ingester: it trusts the position that it has until it is told otherwise."""

    place: Place
    positions: dict[str, Position] = field(default_factory=dict)
    life: AsyncExitStack = field(default_factory=AsyncExitStack)
    database: Database | None = None

    async def live(self) -> Database:
        """Its database; a new connection after it has died."""
        if self.database is None:
            self.database = await self.life.enter_async_context(self.place.open())
        return self.database

    async def die(self) -> None:
        """It forgets all that it knew."""
        await self.life.aclose()
        self.database = None
        self.positions.clear()


@dataclass(frozen=True)
class Act:
    """One thing that happens: a word, and which journal, exchange or reader it is about."""

    word: str
    journal: int
    number: int = 0
    crash: int | None = None


ACTS = st.one_of(
    st.builds(
        Act, st.sampled_from(["open", "open", "reach", "end", "end", "damage"]), st.integers(0, 2), st.integers(0, 9)
    ),
    st.builds(Act, st.just("take"), st.integers(0, 2), st.integers(0, 9), st.none() | st.integers(0, 14)),
    st.builds(Act, st.just("die"), st.integers(0, 2)),
)
EXAMPLES: Iterator[int] = count()


class World:
    """Three journals, two readers, one ledger; every example has names of its own in it."""

    def __init__(self, place: Place, example: int) -> None:
        self.example = example
        self.journals = [Journal(incarnation(f"{example}-{n}", slot=n)) for n in range(3)]
        self.readers = [Reader(place), Reader(place)]
        self.opened = 0

    def append(self, act: Act) -> None:
        """A worker writes."""
        journal = self.journals[act.journal]
        if journal.is_dead:
            return
        running = [one.id for one in journal.expected() if one.end == "interrupted"]
        if act.word == "open":
            self.opened += 1
            journal.items.append(opened(f"{self.example:06d}-{self.opened:04d}", at=float(self.opened)))
        elif act.word == "damage":
            journal.items.append(act.number)
        elif running:
            id = running[act.number % len(running)]
            tokens = len(journal.items) + 1
            journal.items.append(reached(id, tokens) if act.word == "reach" else entry(id, float(tokens), tokens))
        else:  # refused before it was opened
            self.opened += 1
            journal.items.append(entry(f"{self.example:06d}-{self.opened:04d}", end="refused"))

    async def take(self, act: Act) -> None:
        """A reader takes a batch, and perhaps dies over it."""
        journal, reader = self.journals[act.journal], self.readers[act.number % 2]
        name = journal.source.name
        database = await reader.live()
        ledger = Ledger(database)
        begins = reader.positions.get(name)
        if begins is None:
            progress = await ledger.progress(journal.source)
            if progress.ended:
                return
            begins = progress.position
        found = journal.read(begins, 1 + act.number)
        if found.after == begins and not found.ended:
            return
        try:
            with crashing(database, act.crash):
                await ledger.take(journal.source, begins, found)
        except PositionMovedError:
            reader.positions.pop(name, None)
        except (CrashError, DatabaseAwayError):
            await reader.die()
        else:
            reader.positions[name] = found.after

    async def finish(self) -> None:
        """All workers die; one reader takes what is left. Then the ledger holds what it must."""
        await self.close()
        for number, journal in enumerate(self.journals):
            journal.is_dead = True
            for _ in range(len(journal.items) + 2):
                await self.take(Act("take", number, 0))
        database = await self.readers[0].live()
        ledger = Ledger(database)
        expected = [one for journal in self.journals for one in journal.expected()]
        mine = f"{self.example:06d}-"
        assert by_id([one async for one in ledger.entries() if one.id.startswith(mine)]) == by_id(expected)
        assert [one for one in await ledger.open_exchanges() if one.opened.id.startswith(mine)] == []
        sums = f"SELECT count(*), sum(output_total) FROM entry WHERE id LIKE '{mine}%'"
        ((number_of, tokens),) = await rows(database, sums)
        assert (number_of, tokens or 0) == (len(expected), tokens_of(expected))
        for journal in self.journals:
            assert (await ledger.progress(journal.source)).ended
            counts = sum(one.money.counted for one in journal.expected())
            assert await counted(database, journal.source) == counts

    async def close(self) -> None:
        """Both readers die."""
        for reader in self.readers:
            await reader.die()


@given(acts=st.lists(ACTS, max_size=40))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_exactly_once_whatever_happens(place: Place, acts: list[Act]) -> None:
    async def main() -> None:
        async with place.ledger():
            pass
        world = World(place, next(EXAMPLES))
        for act in acts:
            if act.word == "take":
                await world.take(act)
            elif act.word == "die":
                world.journals[act.journal].is_dead = True
            else:
                world.append(act)
        try:
            await world.finish()
        finally:
            await world.close()

    asyncio.run(main())


# ---------------------------------------------------------------------------------------------------------- asking


def test_an_empty_ledger(place: Place) -> None:
    async def work(ledger: Ledger) -> None:
        assert await ledger.entry("a") is None and await ledger.last() is None
        assert await all_entries(ledger) == [] and await ledger.counts() == () and await ledger.open_exchanges() == ()

    place.run(work)


def test_listing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """By time, then by id; in pages that do not show."""
    monkeypatch.setattr("headrace.state.lines.PAGE", 3)
    made = [
        entry(f"{number:02d}", at=float(number // 2), end="failed" if number > 7 else "completed")
        for number in range(11)
    ]

    async def work(ledger: Ledger) -> None:
        await ledger.take(incarnation(), START, batch(*reversed(made), after=11))

        async def ids(**asked: float | int | bool) -> list[str]:
            return [one.id async for one in ledger.entries(**asked)]  # type: ignore[arg-type]

        every = [one.id for one in made]
        assert await ids() == every
        assert await ids(newest_first=True) == every[::-1]
        assert await ids(since=1.0, until=4.0) == every[2:8]
        assert await ids(limit=4) == every[:4] and await ids(limit=3) == every[:3] and await ids(limit=0) == []
        assert await ids(limit=5, newest_first=True, until=4.0) == every[7:2:-1]
        assert await ledger.last() == made[-1]
        assert await ledger.counts() == (EndCount("completed", 8), EndCount("failed", 3))
        assert await ledger.counts(since=4.0, until=5.0) == (EndCount("failed", 2),)

    place.run(work)


def test_an_entry_of_an_older_version_can_be_read(tmp_path: object, place: Place) -> None:
    """Members that a later version adds have defaults; those that it no longer knows are passed over."""

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            ledger = Ledger(database)
            await ledger.take(incarnation(), START, batch(entry("a"), after=1))
            await _add_a_member(database)
            assert await ledger.entry("a") == entry("a")

    asyncio.run(main())


async def _add_a_member(database: Database) -> None:
    raw = msgspec.msgpack.decode(msgspec.msgpack.encode(entry("a"))) | {"of_another_version": 1}
    async with database.writing() as connection:
        statement = "UPDATE entry SET record = ?" if database.is_sqlite else "UPDATE entry SET record = $1"
        await connection.exec_driver_sql(statement, (msgspec.msgpack.encode(raw),))
