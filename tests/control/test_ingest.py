"""From journals on a disk to a database, the log, and a disk that is empty again."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from headrace.control.ingest import Ingest, Pace
from headrace.journal.place import Incarnation, Position
from headrace.journal.reader import Batch
from headrace.journal.record import head, seed_of
from headrace.model.entry import Entry, Record, lost_entry
from headrace.state.database import Database, Patience
from headrace.state.errors import DatabaseAwayError
from headrace.state.ledger import Ledger, Progress
from headrace.state.migration import check, migrate
from tests.control.disk import PACE, WAIT_S, Disk, Ingestion, entries_of, until
from tests.stand.postgres import Postgres
from tests.state.journals import entry, opened, reached
from tests.state.places import Place

NEVER = Pace(look_s=3600.0, idle_s=3600.0)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


# ---- the usual course


def test_a_live_journal_is_followed(place: Place, disk: Disk) -> None:
    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger)
        where = disk.write("a", opened("e1"), entry("e1"))
        with disk.alive(where):
            async with one.running():
                await one.took(1)
                disk.write("a", opened("e2"))
                disk.write("a", entry("e2"), opened("e3"))
                await one.took(2)
                await one.ingest.settled()
        assert [found.id for found in await entries_of(ledger)] == ["e1", "e2"] == one.ids_logged()
        assert [found.opened.id for found in await ledger.open_exchanges()] == ["e3"]
        assert where.segment(1).exists() and one.ingest.lag_bytes == 0 and one.said == []

    place.run(work)


def test_a_dead_worker_is_settled_and_its_journal_goes(place: Place, disk: Disk) -> None:
    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger)
        where = disk.write("a", opened("e1"), opened("e2"), entry("e1"), reached("e2", 3))
        await one.drain()
        assert await entries_of(ledger) == [entry("e1"), lost_entry(opened("e2"), reached("e2", 3), "worker_lost")]
        assert one.ids_logged() == ["e1", "e2"]
        assert not where.path.exists() and await ledger.open_exchanges() == ()
        assert one.said == ["the worker of the journal node/0/a died; exchanges settled as interrupted: 1"]
        assert (one.ingest.counts.entries, one.ingest.counts.settled) == (1, 1)

    place.run(work)


def test_segments_go_when_all_in_them_is_taken(place: Place, disk: Disk) -> None:
    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger)
        for number in (1, 2, 3):
            where = disk.write("a", entry(f"e{number}"), number=number)
        with disk.alive(where, 3):
            async with one.running():
                await one.took(3)
                await one.ingest.settled()
            assert [where.segment(number).exists() for number in (1, 2, 3)] == [False, False, True]
        assert len(await entries_of(ledger)) == 3

    place.run(work)


def test_much_is_taken_in_batches_without_a_pause(place: Place, disk: Disk) -> None:
    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger, NEVER, batch_bytes=2000)
        where = disk.write("a", *(entry(f"e{number:03d}") for number in range(200)))
        with disk.alive(where):
            async with one.running():
                await one.took(190)
                await until(lambda: one.ingest.lag_bytes < 500)
        assert one.ingest.counts.entries < 200 or one.ingest.lag_bytes == 0

    place.run(work)


def test_settled_looks_again_and_at_once(place: Place, disk: Disk) -> None:
    """What was found before the question says nothing about what has come since."""

    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger, NEVER)
        async with one.running(), asyncio.timeout(WAIT_S):
            await one.ingest.settled()
            disk.write("a", opened("e1"))
            await one.ingest.settled()
        assert [found.id for found in await entries_of(ledger)] == ["e1"]

    place.run(work)


def test_caught_up_waits_for_what_stands_in_the_journals_and_for_nothing_that_comes_later(
    place: Place, disk: Disk
) -> None:
    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger, NEVER, batch_bytes=2000)
        where = disk.write("a", *(entry(f"e{number:03d}") for number in range(50)))
        disk.write("dead", entry("of the dead"))
        with disk.alive(where):
            async with one.running(), asyncio.timeout(WAIT_S):
                for number in range(3):
                    catching_up = asyncio.ensure_future(one.ingest.caught_up())
                    while not catching_up.done():
                        disk.write("a", entry(f"later{number}-{len(one.logged)}-{time.monotonic_ns()}"))
                        await asyncio.sleep(0.001)
                    assert one.ingest.counts.entries >= 51
        assert "of the dead" in one.ids_logged()
        disk.directory = disk.directory / "nothing"
        empty = Ingestion(disk, ledger, NEVER)
        async with empty.running(), asyncio.timeout(WAIT_S):
            await empty.ingest.caught_up()

    place.run(work)


class Following:
    """Who follows an ingestion, and asks of it at each call how far it is."""

    def __init__(self, one: Ingestion) -> None:
        self.one = one
        self.calls: list[str] = []
        self.took_by: dict[str, list[str]] = {}
        self.may = True

    def took(self, source: Incarnation, records: Sequence[Record], settled: Sequence[Entry]) -> None:
        assert self.one.ingest.positions[source.name] != Position()
        self.took_by.setdefault(source.name, []).extend(f"{type(each).__name__} {each.id}" for each in records)
        self.took_by[source.name] += [f"settled {each.id}" for each in settled]

    def lost_track(self) -> None:
        self.calls.append("lost")

    async def looked(self) -> None:
        found = {path.name for path in self.one.directory.glob("journal/*/*/*")}
        assert found <= set(self.one.ingest.positions), "every journal's position is known"
        self.calls.append("looked")

    async def may_delete(self) -> bool:
        self.calls.append("delete?")
        return self.may


def test_who_follows_hears_of_all_that_is_taken_and_where_it_is_known_no_more(place: Place, disk: Disk) -> None:
    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            one = Ingestion(disk, Faulty(database, after=1))
            following = one.ingest.follower = Following(one)
            disk.write("a", opened("e1"), entry("e1"), opened("e2"), reached("e2", 3))
            await one.drain()
            assert following.took_by == {"a": ["Opened e1", "Entry e1", "Opened e2", "Checkpoint e2"]}
            assert following.calls.index("lost") < following.calls.index("looked"), (
                "whose answer was lost is read again"
            )

            following.took_by.clear()
            disk.write("b", opened("e3"))
            await one.drain()
            assert following.took_by == {"b": ["Opened e3", "settled e3"]}

    asyncio.run(main())


def test_what_may_not_be_deleted_yet_stays_until_it_may(place: Place, disk: Disk) -> None:
    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger)
        following = one.ingest.follower = Following(one)
        following.may = False
        dead = disk.write("a", entry("e1"))
        for number in (1, 2):
            live = disk.write("b", entry(f"e2{number}"), number=number)
        with disk.alive(live, 2):
            async with one.running(), asyncio.timeout(WAIT_S):
                await one.took(3)
                await one.ingest.settled()
                assert dead.path.exists() and live.segment(1).exists()
                following.may = True
                await until(lambda: not dead.path.exists())
                disk.write("b", entry("e3"), number=3)
                with disk.alive(live, 3):
                    await one.took(4)
                    await until(lambda: not live.segment(1).exists())
        assert sorted(one.ids_logged()) == ["e1", "e21", "e22", "e3"], "nothing was taken twice"

    place.run(work)


# ---- what databases do


class Faulty(Ledger):
    """A ledger whose database goes away: for so many calls, before or after it has done what was asked."""

    def __init__(self, database: Database, before: int = 0, after: int = 0) -> None:
        super().__init__(database)
        self.before, self.after = before, after
        self.takes: list[tuple[str, Position, bool]] = []

    async def progress(self, source: Incarnation) -> Progress:
        if self.before > 0:
            self.before -= 1
            raise DatabaseAwayError("gone")
        return await super().progress(source)

    async def take(self, source: Incarnation, before: Position, batch: Batch) -> tuple[Entry, ...]:
        done = await super().take(source, before, batch)
        self.takes.append((source.name, before, batch.ended))
        if self.after > 0:
            self.after -= 1
            raise DatabaseAwayError("gone")
        return done


def test_a_database_that_is_away_is_said_once_and_waited_for(place: Place, disk: Disk) -> None:
    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            ledger = Faulty(database, before=6)
            one = Ingestion(disk, ledger)
            disk.write("a", opened("e1"), entry("e1"))
            began = time.monotonic()
            async with one.running():
                await until(lambda: one.ingest.is_away and one.ingest.lag_bytes > 0)
                await one.took(1)
                await until(lambda: not one.ingest.is_away)
            assert time.monotonic() - began >= 0.01 + 0.02 + 0.04 + 0.05 * 3, "it backs off, up to a limit"
            assert one.ingest.counts.failures == 6
            assert one.said[:2] == ["the database is away: gone; the journal keeps what comes", "the database is back"]
            assert await entries_of(ledger) == [entry("e1")]

    asyncio.run(main())


def test_a_commit_whose_answer_is_lost(place: Place, disk: Disk) -> None:
    """It was done: the batch is not taken again, and its lines are written."""

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            ledger = Faulty(database, after=3)
            one = Ingestion(disk, ledger)
            where = disk.write("a", opened("e1"), opened("e2"), entry("e1"))
            disk.write("b", entry("e3"), opened("e4"))
            with disk.alive(where):
                async with one.running():
                    await one.took(2)
                    disk.write("a", entry("e5"))
                    await one.took(3)
            await one.drain()
            assert [found.id for found in await entries_of(ledger)] == ["e1", "e2", "e3", "e4", "e5"]
            # Of entries that it made itself it no longer knows; the ledger does.
            assert sorted(one.ids_logged()) == ["e1", "e2", "e3", "e5"]
            assert len(set(ledger.takes)) == len(ledger.takes) and ledger.after == 0

    asyncio.run(main())


def test_two_at_the_same_journals(place: Place, disk: Disk) -> None:
    """A control process that is just going and one that has just come: each record and each line once."""

    async def main() -> None:
        async with place.ledger() as ledger, place.open() as database:
            both = [Ingestion(disk, ledger, batch_bytes=900), Ingestion(disk, Ledger(database), batch_bytes=700)]
            for name in "abc":
                disk.write(name, *(entry(f"{name}{number:03d}") for number in range(60)), opened(f"{name}x"))
            await asyncio.gather(*(one.drain() for one in both))
            found = [one.id for one in await entries_of(ledger)]
            assert len(found) == 3 * 61
            assert sorted(both[0].ids_logged() + both[1].ids_logged()) == sorted(found)
            assert sum(one.ingest.counts.entries for one in both) == 180
            assert sum(one.ingest.counts.settled for one in both) == 3

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(6))
def test_cancelled_at_any_moment(place: Place, disk: Disk, seed: int) -> None:
    """A control process that is told to end: what it was doing is done or not done."""

    async def work(ledger: Ledger) -> None:
        logged: list[str] = []
        for turn in range(12):
            first = disk.write("a", opened(f"e{turn}"), entry(f"e{turn}"), opened(f"o{turn}"))
            second = disk.write("b", *(entry(f"b{turn}-{number}") for number in range(5)))
            with disk.alive(first), disk.alive(second):
                one = Ingestion(disk, ledger, batch_bytes=700)
                async with one.running():
                    await asyncio.sleep(0.0011 * (seed + turn))
                logged += one.ids_logged()
        one = Ingestion(disk, ledger)
        await one.drain()
        logged += one.ids_logged()
        found = [one.id for one in await entries_of(ledger)]
        assert len(found) == 12 * 7
        assert len(set(logged)) == len(logged) and set(logged) <= set(found), "no line twice"
        assert await ledger.open_exchanges() == ()

    place.run(work)


def test_the_server_is_killed_and_comes_back(postgres: Postgres, disk: Disk) -> None:
    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger, batch_bytes=500)
        async with one.running():
            for turn in range(4):
                where = disk.write("a", *(entry(f"e{turn}-{number}") for number in range(10)))
                with disk.alive(where):
                    await one.took(10 * turn + 3)
                    await asyncio.to_thread(postgres.kill)
                    disk.write("a", entry(f"x{turn}"))
                    await until(lambda: one.ingest.is_away)
                    await asyncio.to_thread(postgres.start)
                    await until(lambda: not one.ingest.is_away)
        await one.drain()
        assert len(await entries_of(ledger)) == 44
        assert len(one.ids_logged()) == 44 == len(set(one.ids_logged()))
        assert [line for line in one.said if "back" in line] == ["the database is back"] * 4

    Place(postgres.new_database(), disk.directory).run(work)


def test_a_server_that_hangs_holds_nothing_up(postgres: Postgres, disk: Disk) -> None:
    """Case B116: every process of it stands still: each statement is given up in its time."""

    async def main(place: Place) -> None:
        async with place.ledger():
            pass
        async with place.open(Patience(connect_s=1.0, statement_s=1.0)) as database:
            ledger = Ledger(database)
            one = Ingestion(disk, ledger)
            with disk.alive(disk.write("a", entry("e1"))):
                async with one.running():
                    await one.took(1)
                    postgres.freeze()
                    try:
                        disk.write("a", entry("e2"))
                        await until(lambda: one.ingest.counts.failures >= 2)
                    finally:
                        postgres.thaw()
                    await one.took(2)
            why = "it does not answer within its time limit"
            assert one.said[0] == f"the database is away: {why}; the journal keeps what comes"
            assert len(await entries_of(ledger)) == 2

    asyncio.run(main(Place(postgres.new_database(), disk.directory)))


_READ_ONLY = "ALTER SYSTEM SET default_transaction_read_only = on", "ALTER SYSTEM RESET default_transaction_read_only"
_FULL = (
    "CREATE FUNCTION full_() RETURNS trigger AS $$ BEGIN RAISE 'no space left' USING ERRCODE = '53100'; END $$"
    " LANGUAGE plpgsql; CREATE TRIGGER full_ BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION full_()",
    "DROP TRIGGER full_ ON entry",
)


@pytest.mark.parametrize(("ill", "well"), [_READ_ONLY, _FULL], ids=["read-only", "full"])
def test_a_server_that_takes_nothing_is_waited_for(postgres: Postgres, disk: Disk, ill: str, well: str) -> None:
    """Case B116: it answers, and every entry waits in the journal and is written once."""
    url = postgres.new_database()
    name = url.partition("@/")[2].partition("?")[0]

    def become(statement: str) -> None:
        postgres.execute(statement, name)
        postgres.execute("SELECT pg_reload_conf()")

    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger)
        written = 1

        def is_refused() -> bool:
            """The server's processes read their settings when they are next awake, so some may be taken still."""
            nonlocal written
            written += 1
            disk.write("a", entry(f"e{written}"))
            return one.ingest.is_away

        with disk.alive(disk.write("a", entry("e1"))):
            async with one.running():
                await one.took(1)
                await asyncio.to_thread(become, ill)
                try:
                    await until(is_refused)
                    await until(lambda: one.ingest.counts.failures >= 3)
                    assert len(await entries_of(ledger)) < written
                finally:
                    await asyncio.to_thread(become, well)
                await one.took(written)
        assert len(await entries_of(ledger)) == written
        assert len(one.said) == 2 and one.said[1] == "the database is back", one.said

    Place(url, disk.directory).run(work)


def test_another_process_holds_the_file(tmp_path: Path, disk: Disk) -> None:
    """SQLite has one writer at a time: waiting has a limit, and then it is away."""

    async def main() -> None:
        place = Place("", tmp_path)
        async with place.open(Patience(locked_s=0.05)) as database, place.open() as other:
            await migrate(database)
            one = Ingestion(disk, Ledger(database))
            disk.write("a", entry("e1"))
            async with AsyncExitStack() as opened:
                async with other.writing():  # first: else the entry may be taken before
                    await opened.enter_async_context(one.running())
                    await until(lambda: one.ingest.is_away)
                await one.took(1)
            assert one.said[0] == "the database is away: database is locked; the journal keeps what comes"

    asyncio.run(main())


def test_without_tables_it_waits_for_them(place: Place, disk: Disk) -> None:
    async def main() -> None:
        async with place.open() as database:
            said: list[str] = []
            ledger = Ledger(database)
            ingest = Ingest(
                disk.directory, ledger, said.append, lambda _: None, prepare=lambda: check(database), pace=PACE
            )
            disk.write("a", entry("e1"))
            task = asyncio.ensure_future(ingest.run())
            draining = asyncio.ensure_future(ingest.settled())
            began = time.monotonic()
            await until(lambda: ingest.counts.failures >= 4)
            assert time.monotonic() - began >= 0.02 + 0.04, "who waits for it makes it try no faster"
            assert len(said) == 1 and "run `headrace migrate`" in said[0]
            async with place.open() as other:
                await migrate(other)
            await until(lambda: ingest.counts.entries == 1)
            async with asyncio.timeout(WAIT_S):
                await draining
            task.cancel()
            await asyncio.wait([task])
            assert await entries_of(ledger) == [entry("e1")]

    asyncio.run(main())


# ---- what disks do to journals


def test_damage_is_said_and_counted(place: Place, disk: Disk) -> None:
    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger)
        disk.write("a", opened("e1"), raw=b"?" * 100)
        disk.write("a", entry("e2"))
        await one.drain()
        found = [(found.id, found.reason) for found in await entries_of(ledger)]
        assert found == [("e1", "journal_damaged"), ("e2", "stop")]
        assert one.ingest.counts.damaged_bytes == 100
        assert one.said[0] == "100 bytes of the journal node/0/a are damaged; what they held is lost"

    place.run(work)


@pytest.mark.parametrize("whole_folder", [True, False])
def test_a_journal_that_is_gone_settles_nothing(place: Place, disk: Disk, whole_folder: bool) -> None:
    """The disk was replaced: how its exchanges ended is not known, so nothing is made up."""

    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger)
        where = disk.write("a", opened("e1"), entry("e2"))
        with disk.alive(where):
            async with one.running():
                await one.took(1)
                await one.ingest.settled()
        where.segment(1).unlink()
        if whole_folder:
            where.path.rmdir()
        await one.drain()
        assert [found.id for found in await entries_of(ledger)] == ["e2"]
        assert [found.opened.id for found in await ledger.open_exchanges()] == ["e1"]
        lost = ["the journal node/0/a has lost its segments; exchanges that are open in it stay open"]
        assert one.said == ([] if whole_folder else lost)

    place.run(work)


def test_a_journal_that_cannot_be_read_holds_up_no_other(place: Place, disk: Disk) -> None:
    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger)
        where = disk.place("a")
        where.path.mkdir(parents=True)
        where.segment(1).write_bytes(head(seed_of("a"), 3))
        disk.write("b", entry("e1"))
        await one.drain()
        assert await entries_of(ledger) == [entry("e1")]
        (line,) = one.said
        assert line.startswith("cannot read or delete the journal node/0/a: it has format 3")

    place.run(work)


def test_a_journal_that_was_taken_before_is_only_deleted(place: Place, disk: Disk) -> None:
    """The process died between the commit and the deleting."""

    async def work(ledger: Ledger) -> None:
        where = disk.write("a", opened("e1"))
        kept = where.segment(1).read_bytes()
        await Ingestion(disk, ledger).drain()
        where.path.mkdir(parents=True)
        where.segment(1).write_bytes(kept)
        one = Ingestion(disk, ledger)
        await one.drain()
        assert not where.path.exists() and one.logged == [] and len(await entries_of(ledger)) == 1

    place.run(work)


def test_a_worker_that_died_before_it_wrote(place: Place, disk: Disk) -> None:
    async def work(ledger: Ledger) -> None:
        where = disk.place("a")
        where.path.mkdir(parents=True)
        one = Ingestion(disk, ledger)
        await one.drain()
        assert not where.path.exists() and await entries_of(ledger) == [] and one.said == []

    place.run(work)


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), ValueError("I/O operation on closed file.")])
def test_a_log_that_cannot_be_written_stops_nothing(tmp_path: Path, disk: Disk, error: Exception) -> None:
    async def work(ledger: Ledger) -> None:
        one = Ingestion(disk, ledger)
        one.log_error = error
        with disk.alive(disk.write("a", entry("e1"))):
            async with one.running():
                for number in (2, 3):
                    disk.write("a", entry(f"e{number}"))
                    await one.took(number)
                await one.ingest.settled()
                one.log_error = None
                disk.write("a", entry("e4"))
                await until(lambda: one.logged != [])
        assert len(await entries_of(ledger)) == 4 and one.ids_logged() == ["e4"]
        assert one.said == [f"cannot write the log: {error}; entries go to the database all the same"]

    Place("", tmp_path).run(work)
