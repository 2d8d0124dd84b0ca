"""What budgets count: added with the entries, told by journal, and settled for good."""

import asyncio

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headrace.journal.place import Incarnation, Position
from headrace.journal.reader import Batch
from headrace.model.allowance import Spent, purse_of, window_end, window_start
from headrace.model.entry import Entry, Money
from headrace.model.limits import Window
from headrace.state.database import Database
from headrace.state.ledger import Ledger
from headrace.state.migration import migrate
from headrace.state.rows import MOST_COUNT
from headrace.state.spending import KEY, OWNER, Purse, amounts_of, question, spending_rows, spent
from tests.state.journals import batch, entry, incarnation, opened, position, reached
from tests.state.places import Place, rows

START = Position()
HOUR_S, DAY_S = 3600, 86_400
NOON = 20_000 * DAY_S + 12 * HOUR_S
"""2024-10-04, 12:00."""
EVER = Purse(KEY, "dev", Window.TOTAL, 0)


def counting(id: str, counted: int, at: float = NOON, key: str = "dev", owner: str = "ann") -> Entry:
    """An entry that counts so much."""
    return msgspec.structs.replace(entry(id, at), money=Money(counted=counted), key=key, owner=owner)


async def take(database: Database, source: Incarnation, *entries: Entry, now: float = NOON) -> None:
    """The next entries of a journal whose worker lives."""
    ledger = Ledger(database, lambda: now)
    begins = (await ledger.progress(source)).position
    await ledger.take(source, begins, Batch(entries, Position(begins.segment, begins.offset + 100), 0, False))


async def end(database: Database, source: Incarnation, now: float) -> None:
    """Its worker is dead, and nothing more is in it."""
    ledger = Ledger(database, lambda: now)
    begins = (await ledger.progress(source)).position
    await ledger.take(source, begins, Batch((), begins, 0, True))


async def one(database: Database, purse: Purse = EVER) -> Spent:
    """What the ledger has of it."""
    (found,) = await spent(database, [purse])
    return found


# ------------------------------------------------------------------------------------------------------- amounts


def test_amounts_by_key_owner_and_hour() -> None:
    entries = [
        counting("a", 5, NOON),
        counting("b", 7, NOON + HOUR_S - 0.001),
        counting("c", 11, NOON + HOUR_S),
        counting("d", 13, NOON, key="other"),
        counting("e", 17, NOON, key="own", owner=""),
        counting("f", 0, NOON, key="free"),
    ]
    assert amounts_of(entries) == {
        (KEY, "dev", NOON): 12,
        (OWNER, "ann", NOON): 25,
        (KEY, "dev", NOON + HOUR_S): 11,
        (OWNER, "ann", NOON + HOUR_S): 11,
        (KEY, "other", NOON): 13,
        (KEY, "own", NOON): 17,
    }


def test_rows_are_in_one_order_and_within_63_bits() -> None:
    amounts = {(OWNER, "b", 0): 2**70, (KEY, "a", 3600): 0, (KEY, "a", 0): -(2**70)}
    assert spending_rows(amounts, "node", 1, "inc") == [
        (KEY, "a", 0, "node", 1, "inc", -MOST_COUNT),
        (OWNER, "b", 0, "node", 1, "inc", MOST_COUNT),
    ]


@given(at=st.floats(), counted=st.integers(-(2**63), 2**64 - 1), name=st.text())
def test_any_entry_counts_for_something_that_fits(at: float, counted: int, name: str) -> None:
    found = spending_rows(amounts_of([counting("a", counted, at, name, name)]), "", 0, "")
    assert len(found) == (0 if counted <= 0 else 2 if name else 1)
    for kind, subject, hour, *_, amount in found:
        assert kind in (KEY, OWNER) and "\0" not in str(subject)
        assert isinstance(hour, int) and hour % HOUR_S == 0 and 0 <= hour <= MOST_COUNT
        assert isinstance(amount, int) and 0 < amount <= MOST_COUNT


# ------------------------------------------------------------------------------------------------- with the entries


def test_batches_add_up(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            await take(database, incarnation("first"), counting("a", 5), counting("b", 7), counting("c", 0))
            await take(database, incarnation("first"), counting("d", 100))
            await take(database, incarnation("second"), counting("e", 1000, owner=""))
            assert await one(database) == Spent(purse="key:dev|total|0", parts={"first": 112, "second": 1000})
            assert (await one(database, Purse(OWNER, "ann", Window.TOTAL, 0))).parts == {"first": 112}
            assert (await rows(database, "SELECT count(*) FROM spending")) == [(3,)]

    asyncio.run(main())


def test_what_a_dead_worker_left_is_counted(place: Place) -> None:
    """With what the last checkpoint knew, in the hour in which the exchange began."""

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            ledger = Ledger(database)
            source = incarnation()
            await ledger.take(
                source, START, batch(opened("a", at=NOON), reached("a", 3), opened("b", at=NOON), after=3)
            )
            assert await one(database) == Spent(purse=EVER.text)
            await ledger.take(source, position(3), batch(after=3, ended=True))
            hour = Purse(KEY, "dev", Window.HOUR, NOON)
            assert await one(database, hour) == Spent(purse=hour.text, parts={"first": 600})

    asyncio.run(main())


def test_a_journal_that_is_taken_again_counts_once(place: Place) -> None:
    """Its position is lost; in the copy some entries are new, and one stands twice."""

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            source = incarnation()
            await take(database, source, counting("a", 5), counting("b", 7))
            async with database.writing() as connection:
                await connection.exec_driver_sql("DELETE FROM incarnation")
            await take(database, source, counting("b", 7), counting("c", 11), counting("c", 11))
            assert (await one(database)).total == 23
            assert await rows(database, "SELECT id FROM entry ORDER BY id") == [("a",), ("b",), ("c",)]
            assert (await Ledger(database).progress(source)).position == Position(1, 100)

    asyncio.run(main())


def test_amounts_past_63_bits_stay_at_their_end(place: Place) -> None:
    """A database would refuse them, for good, or begin to round; and no message could say them."""

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            for name in ("first", "second"):
                for number in range(3):
                    await take(database, incarnation(name), counting(f"{name}{number}", MOST_COUNT - 1))
            assert await one(database) == Spent(purse=EVER.text, parts={"first": MOST_COUNT, "second": MOST_COUNT})
            for name in ("first", "second"):
                await end(database, incarnation(name), now=NOON)
            await take(database, incarnation("third"), now=NOON + 2 * DAY_S)
            assert await one(database) == Spent(purse=EVER.text, settled=MOST_COUNT)

    asyncio.run(main())


# ---------------------------------------------------------------------------------------------------------- told


def test_windows(place: Place) -> None:
    """Each has the hours from its beginning to before the next one's."""
    moments = [NOON - 40 * DAY_S, NOON - DAY_S, NOON - HOUR_S, NOON - 0.001, NOON, NOON + HOUR_S, NOON + DAY_S]
    entries = [counting(str(number), 1 << number, at) for number, at in enumerate(moments)]

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            await take(database, incarnation(), *entries)
            purses = [
                Purse(kind, name, window, window_start(window, NOON))
                for window in Window
                for kind, name in ((KEY, "dev"), (OWNER, "ann"), (KEY, "nobody"))
            ]
            found = await spent(database, purses)
            assert [one.purse for one in found] == [purse.text for purse in purses]
            for purse, told in zip(purses, found, strict=True):
                last = window_end(purse.window, purse.start)
                inside = [one for one in entries if purse.start <= one.at and (last is None or one.at < last)]
                expected = sum(one.money.counted for one in inside) if purse.name != "nobody" else 0
                assert told.total == expected, purse

    asyncio.run(main())


def test_many_purses_at_once(place: Place) -> None:
    """More than one statement asks for; one twice; as plain tuples compare."""
    names = [f"key-{number}" for number in range(1200)]

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            await take(database, incarnation(), *(counting(name, 1 + n, key=name) for n, name in enumerate(names)))
            purses = [Purse(KEY, name, Window.MONTH, window_start(Window.MONTH, NOON)) for name in (*names, names[0])]
            assert [one.total for one in await spent(database, purses)] == [*range(1, 1201), 1]
            assert await spent(database, []) == ()

    asyncio.run(main())


def test_a_purse_is_called_as_claims_call_it() -> None:
    assert Purse(OWNER, "ann", Window.DAY, 86_400).text == purse_of("owner:ann", Window.DAY, 86_400)


def test_what_is_settled_stays_so(place: Place) -> None:
    """A journal is settled when another begins more than a day after its end, whatever clocks say later; the sum never
    changes by it."""

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            old, lives = incarnation("old"), incarnation("lives", slot=1)
            await take(database, old, counting("a", 5))
            await take(database, lives, counting("b", 7))
            await end(database, old, now=NOON)
            await take(database, incarnation("next"), now=NOON + DAY_S)
            apart = Spent(purse=EVER.text, parts={"old": 5, "lives": 7})
            assert await one(database) == apart, "a day, not more"
            await take(database, lives, now=NOON + 9 * DAY_S)
            assert await one(database) == apart, "none has begun since"
            await take(database, incarnation("later"), now=NOON + DAY_S + 1)
            settled = Spent(purse=EVER.text, settled=5, parts={"lives": 7})
            assert await one(database) == settled
            await take(database, incarnation("back"), counting("c", 11), now=NOON - 30 * DAY_S)
            assert await one(database) == Spent(purse=EVER.text, settled=5, parts={"lives": 7, "back": 11})

    asyncio.run(main())


def test_it_is_found_by_the_key_alone(place: Place) -> None:
    """However many hours, keys and journals there are: the question reads those of its purses."""

    async def main() -> str:
        async with place.open() as database:
            await migrate(database)
            asked = question(KEY, ["a", "b"], Window.MONTH, window_start(Window.MONTH, NOON))
            asked_as = asked.compile(database.engine.sync_engine, compile_kwargs={"literal_binds": True})
            async with database.writing() as connection:
                if database.is_sqlite:
                    return str((await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked_as}")).all())
                await connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
                return str((await connection.exec_driver_sql(f"EXPLAIN {asked_as}")).all())

    said = asyncio.run(main())
    assert "kind=? AND name=? AND hour>? AND hour<?" in said or ("Index Cond" in said and "hour >= " in said), said
