"""The database as the control process uses it: made ready, drained into, and away."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from headrace.control import books as module
from headrace.control.books import Books
from headrace.journal.place import Incarnation
from headrace.journal.writer import Writer
from headrace.link.messages import AskSpent, Covered, Lessons, SpentAnswer
from headrace.model.allowance import Spent
from headrace.model.catalogue import CatalogueParts, ObjectKind, StoredObject
from headrace.model.entry import Entry, Money, Opened
from headrace.model.key import Key
from headrace.model.limits import Budget, Window
from headrace.model.settings import StateSettings
from headrace.model.usage import Usage
from headrace.sealing import seal, unseal
from headrace.state.database import Database
from headrace.state.errors import DatabaseAwayError
from headrace.state.objects import Objects
from tests.stand.books import ledger_entries

SECRET = bytes(range(32))
KEY = StoredObject(ObjectKind.KEY, "other", '{"secret":"sk-hr-other"}')


class Kept:
    """A state directory, its books, and what they say."""

    def __init__(self, folder: Path, database: str = "", *, may_migrate: bool = True) -> None:
        self.state = StateSettings(directory=str(folder), secret=SECRET, database=database)
        self.said: list[str] = []
        self.books = Books(self.state, self.said.append, may_migrate=may_migrate)

    async def __aenter__(self) -> Books:
        self.books.start()
        return self.books

    async def __aexit__(self, *_: object) -> None:
        await self.books.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def put(folder: Path, one: StoredObject) -> None:
    database = Database.open("", folder)
    objects = Objects(database, lambda purpose, data: seal(SECRET, purpose, data), lambda *it: unseal(SECRET, *it))
    await objects.put(one, asyncio.get_running_loop().time())
    await database.close()


def begun(folder: Path, name: str = "i1") -> Writer:
    """A live worker's journal with one exchange."""
    writer = Writer(Incarnation.of(folder, "aaaa", 0, name), asyncio.get_running_loop())
    writer.append(Opened(id=f"hr_{name}", at=1.0, protocol="chat", key="dev"))
    return writer


def ended(id: str) -> Entry:
    return Entry(
        id=id, at=1.0, duration_s=0.1, protocol="chat", operation="", key="dev", end="completed", reason="stop"
    )


def test_a_new_database_is_migrated_and_has_no_objects(tmp_path: Path) -> None:
    async def main() -> None:
        kept = Kept(tmp_path)
        async with kept as books:
            assert await books.first_objects(20) == ()
        assert "migrated: empty → " in kept.said[0]

    asyncio.run(main())


def test_without_leave_to_migrate_nothing_is_touched_and_nothing_waits(tmp_path: Path) -> None:
    async def main() -> None:
        kept = Kept(tmp_path, may_migrate=False)
        async with kept as books:
            assert await books.first_objects(0.3) is None
        assert "run `headrace migrate`" in kept.said[0]

    asyncio.run(main())


def test_objects_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)

    async def main() -> None:
        found: asyncio.Queue[tuple[StoredObject, ...]] = asyncio.Queue()
        async with Kept(tmp_path) as books:
            assert await books.first_objects(20) == ()
            books.follow(found.put, _never)
            await put(tmp_path, KEY)
            assert await asyncio.wait_for(found.get(), 20) == (KEY,)
            await put(tmp_path, replace(KEY, document='{"secret":"sk-hr-more"}'))
            (changed,) = await asyncio.wait_for(found.get(), 20)
            assert "sk-hr-more" in changed.document
            assert found.empty()

    asyncio.run(main())


async def _never() -> None:
    raise AssertionError("the database was there")


def test_objects_that_are_not_told_are_doubted_until_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.01)

    async def main() -> None:
        found: asyncio.Queue[tuple[StoredObject, ...]] = asyncio.Queue()
        doubted = asyncio.Event()

        async def doubt() -> None:
            doubted.set()

        async with Kept(tmp_path) as books:
            assert await books.first_objects(20) == ()
            with monkeypatch.context() as patch:
                patch.setattr(Objects, "stamp", _away)
                books.follow(found.put, doubt)
                await asyncio.wait_for(doubted.wait(), 20)
                assert found.empty()
            assert await asyncio.wait_for(found.get(), 20) == ()

    asyncio.run(main())


async def _away(_: Objects) -> object:
    raise DatabaseAwayError("it is away")


def test_a_database_that_is_away_keeps_no_start_and_no_end_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AWAY_S", 0.2)

    async def main() -> None:
        kept = Kept(tmp_path, "postgresql://nobody@127.0.0.1:9/none")
        began = asyncio.get_running_loop().time()
        async with kept as books:
            begun(tmp_path).close()
            assert await books.first_objects(0.3) is None
            await books.drain(60, orphans=True)
        assert asyncio.get_running_loop().time() - began < 20
        assert any("the database is away" in line for line in kept.said)
        assert any("are not in the database; the next start takes them" in line for line in kept.said)

    asyncio.run(main())


def test_a_drain_takes_all_that_dead_workers_wrote(tmp_path: Path) -> None:
    async def main() -> None:
        async with Kept(tmp_path) as books:
            begun(tmp_path).close()
            await books.drain(30, orphans=False)
        (entry,) = ledger_entries(tmp_path)
        assert (entry.id, entry.reason) == ("hr_i1", "worker_lost")
        assert not list((tmp_path / "journal").glob("*/*/*"))

    asyncio.run(main())


def test_a_drain_takes_what_was_written_before_it(tmp_path: Path) -> None:
    """Though a look may have found nothing just before."""

    async def main() -> None:
        async with Kept(tmp_path) as books:
            writer = begun(tmp_path)
            await books.drain(30, orphans=False)
            for number in range(2, 40):
                writer.append(ended(f"hr_i{number}"))
                await asyncio.sleep(0)
                await books.drain(30, orphans=False)
                assert len(ledger_entries(tmp_path)) == number - 1
            writer.close()

    asyncio.run(main())


def test_only_for_its_own_end_an_orphan_waits_for_those_who_still_write(tmp_path: Path) -> None:
    async def main() -> None:
        async with Kept(tmp_path) as books:
            writer = begun(tmp_path)
            await asyncio.wait_for(books.drain(60, orphans=False), 20)
            waiting = asyncio.ensure_future(books.drain(60, orphans=True))
            done, _ = await asyncio.wait((waiting,), timeout=1.0)
            assert not done
            later = begun(tmp_path, "i2")  # of the gateway that was started in its place
            writer.close()
            await asyncio.wait_for(waiting, 20)
            later.close()
        assert [entry.id for entry in ledger_entries(tmp_path)] == ["hr_i1"]

    asyncio.run(main())


def spending_entry(id: str, counted: int) -> Entry:
    return structs.replace(ended(id), at=time.time(), money=Money(counted=counted))


PARTS = CatalogueParts(keys=(Key("dev", b"1", budget=Budget(1, Window.TOTAL)),))
PURSE = "key:dev|total|0"


def test_a_question_is_answered_with_all_that_was_journalled_before_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with Kept(tmp_path) as books:
            writer = begun(tmp_path)
            for number in range(1, 20):
                writer.append(spending_entry(f"hr_{number}", 5))
                await asyncio.sleep(0)
                answer = await books.answer(AskSpent(number=number, purses=(PURSE, "key:x y|z|total|0")))
                assert answer.number == number and answer.spent is not None
                assert [(one.purse, one.total) for one in answer.spent] == [
                    (PURSE, 5 * number), ("key:x y|z|total|0", 0),
                ]  # fmt: skip
            writer.close()

    asyncio.run(main())


def test_a_question_that_no_database_answers_is_answered_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_S", 0.1)

    async def main() -> None:
        async with Kept(tmp_path, "postgresql://nobody@127.0.0.1:9/none") as books:
            assert await books.answer(AskSpent(number=3, purses=(PURSE,))) == SpentAnswer(number=3, spent=None)

    asyncio.run(main())


def test_what_goes_into_the_database_is_told_and_a_next_run_has_the_same(tmp_path: Path) -> None:
    async def main() -> None:
        told: asyncio.Queue[object] = asyncio.Queue()
        async with Kept(tmp_path) as books:
            books.telling.start(told.put_nowait)
            await books.telling.cover(PARTS, 20)
            assert await asyncio.wait_for(told.get(), 20) == Covered(spent=(Spent(purse=PURSE),))
            writer = begun(tmp_path)
            writer.append(spending_entry("hr_1", 5))
            await asyncio.sleep(0)
            writer.close()
            while not isinstance(word := await asyncio.wait_for(told.get(), 20), Covered):
                pass  # what was learned
            assert [one.total for one in word.spent] == [5]
        async with Kept(tmp_path) as books:
            await books.telling.cover(PARTS, 20)
            (word,) = [word for word in books.telling.greeting() if isinstance(word, Covered)]
            assert [one.total for one in word.spent] == [5]

    asyncio.run(main())


def test_a_start_learns_from_the_ledger_and_then_from_what_comes(tmp_path: Path) -> None:
    def taught(id: str, tokens: int) -> Entry:
        usage = Usage(input_total=9, output_total=tokens)
        return structs.replace(ended(id), model="m", usage=usage, usage_origin="upstream")

    async def main() -> None:
        writer = begun(tmp_path)
        for number in range(20):
            writer.append(taught(f"hr_{number}", 100))
        async with Kept(tmp_path) as books:
            await books.drain(30, orphans=False)
        told: asyncio.Queue[object] = asyncio.Queue()
        async with Kept(tmp_path) as books:
            books.telling.start(told.put_nowait)
            word = await asyncio.wait_for(told.get(), 20)
            assert isinstance(word, Lessons)
            assert word.learned["m"].output_p95 == 100
        writer.close()

    asyncio.run(main())
