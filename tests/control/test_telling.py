"""What workers are told of money and models: when, in which order, and what lies on the disk meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headrace.control import telling as module
from headrace.control.spending import Spending
from headrace.control.telling import Telling
from headrace.journal.place import Incarnation, Position
from headrace.link.figures import FIGURES_FILE, Figures, JournalPosition
from headrace.link.messages import Covered, Lessons
from headrace.model.allowance import Spent
from headrace.model.catalogue import CatalogueParts
from headrace.model.entry import Entry, Money
from headrace.model.estimate import Learned
from headrace.model.key import Key
from headrace.model.limits import Budget, Window
from headrace.model.settings import StateSettings
from headrace.state.errors import DatabaseAwayError
from headrace.state.ledger import OpenExchange

SECRET = bytes(range(32))
PURSE = "key:dev|total|0"
PARTS = CatalogueParts(keys=(Key("dev", b"1", budget=Budget(1, Window.TOTAL)),))
ONE = Incarnation.of(Path("nowhere"), "node", 0, "one")


def ended(id: str, counted: int) -> Entry:
    return Entry(
        id=id, at=1.0, duration_s=1.0, protocol="chat", operation="", key="dev", model="m", end="completed",
        reason="stop", money=Money(counted=counted),
    )  # fmt: skip


class Counting:
    """A learner that has learned how many entries there were."""

    def __init__(self) -> None:
        self.entries = 0
        self.is_teaching = False

    def add(self, entry: Entry) -> None:
        self.entries += 1

    def learned(self) -> dict[str, Learned]:
        return {"m": Learned(output_p95=self.entries)} if self.is_teaching else {}


class Desk:
    """A telling with an ingestion that looks when it is asked to, and all that it tells."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_away = False
        self.positions = {"one": Position(1, 10)}
        self.told: asyncio.Queue[object] = asyncio.Queue()
        self.said: list[str] = []
        self.looks: list[asyncio.Task[None]] = []
        spending = Spending(self._read, self._open, lambda: 1000.0)
        state = StateSettings(directory=str(folder), secret=SECRET)
        self.learner = Counting()
        self.telling = Telling(state, self, spending, self.learner, self.said.append)

    async def _read(self, purses: Sequence[str]) -> list[Spent]:
        if self.is_away:
            raise DatabaseAwayError("it is away")
        return [Spent(purse=purse, settled=100) for purse in purses]

    async def _open(self) -> list[OpenExchange]:
        return []

    def wake(self) -> None:
        self.looks.append(asyncio.ensure_future(self.look()))

    async def look(self) -> None:
        if not self.is_away:
            await self.telling.looked()

    def take(self, *entries: Entry) -> None:
        """What a look has taken."""
        self.positions["one"] = Position(1, self.positions["one"].offset + 10 * len(entries))
        self.telling.took(ONE, entries, [])

    async def next(self) -> object:
        return await asyncio.wait_for(self.told.get(), 10)

    def figures(self) -> Figures | None:
        return FIGURES_FILE.read(self.folder, SECRET)


@asynccontextmanager
async def telling(folder: Path) -> AsyncIterator[Desk]:
    """One that has started; nothing may be left of it."""
    desk = Desk(folder)
    desk.telling.start(desk.told.put_nowait)
    try:
        yield desk
    finally:
        await asyncio.gather(*desk.looks)
        await desk.telling.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture(autouse=True)
def rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first of what is done again and again is done in a test."""
    for name in ("TELL_S", "KEEP_S", "LEARN_S"):
        monkeypatch.setattr(module, name, 3600.0)


def test_what_was_spent_is_on_the_disk_and_told_before_its_catalogue_is_published(tmp_path: Path) -> None:
    async def main() -> None:
        async with telling(tmp_path) as desk:
            await desk.telling.cover(PARTS, 20)
            figures = desk.figures()
            assert figures is not None
            assert (figures.at, figures.spent) == (1000.0, (Spent(purse=PURSE, settled=100),))
            assert figures.positions == {"one": JournalPosition(1, 10)}
            assert desk.told.get_nowait() == Covered(spent=figures.spent)
            looks = len(desk.looks)
            await desk.telling.cover(PARTS, 20)
            assert len(desk.looks) == looks and desk.told.empty(), "they are known"

    asyncio.run(main())


def test_a_database_that_is_away_keeps_no_catalogue_waiting_and_nothing_is_told_or_overwritten(tmp_path: Path) -> None:
    before = Figures(at=1.0, spent=(Spent(purse=PURSE, settled=7),), learned={"m": Learned(output_p95=3)})
    FIGURES_FILE.write(tmp_path, SECRET, before)

    async def main() -> None:
        async with telling(tmp_path) as desk:
            desk.is_away = True
            await desk.telling.cover(PARTS, 0.0)
            assert desk.telling.greeting() == [Lessons(learned=before.learned)]
            assert not await desk.telling.may_delete()
            assert desk.told.empty() and desk.figures() == before
            desk.is_away = False
            await desk.look()
            assert await desk.next() == Covered(spent=(Spent(purse=PURSE, settled=100),))
            assert await desk.telling.may_delete()
            assert desk.figures() != before

    asyncio.run(main())


def test_changes_are_told_together_and_a_newcomer_hears_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TELL_S", 0.0)

    async def main() -> None:
        async with telling(tmp_path) as desk:
            await desk.telling.cover(PARTS, 20)
            await desk.next()
            for number in range(10):
                desk.take(ended(str(number), 5))
            expected = (Spent(purse=PURSE, settled=100, parts={"one": 50}),)
            assert desk.telling.greeting() == [Covered(spent=expected)]
            assert await desk.next() == Covered(spent=expected)
            desk.take(ended("free", 0))
            desk.take(ended("more", 1))
            assert await desk.next() == Covered(spent=(Spent(purse=PURSE, settled=100, parts={"one": 51}),))
            assert desk.told.empty()

    asyncio.run(main())


def test_nothing_is_deleted_before_the_disk_covers_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with telling(tmp_path) as desk:
            assert await desk.telling.may_delete(), "without budgets nobody needs it"
            assert desk.figures() is None
            await desk.telling.cover(PARTS, 20)
            desk.take(ended("1", 5), ended("2", 0))
            assert await desk.telling.may_delete()
            figures = desk.figures()
            assert figures is not None
            assert figures.spent[0].parts == {"one": 5} and figures.positions == {"one": JournalPosition(1, 30)}
            desk.telling.lost_track()
            assert not await desk.telling.may_delete()
            await desk.look()
            assert await desk.telling.may_delete()

    asyncio.run(main())


def test_a_disk_that_takes_nothing_is_said_once_and_is_not_kept_full(tmp_path: Path) -> None:
    async def main() -> None:
        async with telling(tmp_path / "gone") as desk:
            await desk.telling.cover(PARTS, 20)
            assert await desk.telling.may_delete()
            assert await desk.telling.may_delete()
            assert len(desk.said) == 1 and "what was spent cannot be written" in desk.said[0]

    asyncio.run(main())


def test_lessons_are_told_when_they_are_others_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEARN_S", 0.0)

    async def main() -> None:
        async with telling(tmp_path) as desk:
            desk.learner.is_teaching = True
            await desk.look()
            desk.telling.teach([ended("1", 0), ended("2", 0)])
            expected = Lessons(learned={"m": Learned(output_p95=2)})
            assert await desk.next() == expected
            assert desk.telling.greeting() == [expected]
            desk.telling.teach([])
            desk.take(ended("3", 0))
            assert await desk.next() == Lessons(learned={"m": Learned(output_p95=3)})
            assert desk.told.empty()
        figures = desk.figures()
        assert figures is not None
        assert figures.learned == {"m": Learned(output_p95=3)}

    asyncio.run(main())


def test_a_damaged_file_is_said_and_replaced(tmp_path: Path) -> None:
    (tmp_path / "figures").write_bytes(b"damaged")

    async def main() -> None:
        async with telling(tmp_path) as desk:
            assert "the control process writes a new one" in desk.said[0]
            await desk.telling.cover(PARTS, 20)
            assert desk.figures() is not None

    asyncio.run(main())


def test_a_large_batch_teaches_by_a_sample(tmp_path: Path) -> None:
    async def main() -> None:
        async with telling(tmp_path) as desk:
            desk.take(*(ended(str(number), 0) for number in range(99)))
            assert desk.learner.entries == 99
            desk.take(*(ended(str(number), 0) for number in range(1000)))
            assert 99 + 50 < desk.learner.entries <= 99 + 100

    asyncio.run(main())
