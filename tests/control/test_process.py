"""The control process as a child: what workers hear from it of catalogues, budgets and keys, and in which order."""

import asyncio
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from headrace.control import process
from headrace.control.process import Process
from headrace.journal.place import Incarnation
from headrace.journal.writer import Writer
from headrace.link.address import listen
from headrace.link.channel import Channel
from headrace.link.client import LinkClient
from headrace.link.figures import FIGURES_FILE
from headrace.link.messages import Catalogue, ControlBoot, Covered, Drain, Hello, Ready, ToSupervisor, ToWorker
from headrace.model.allowance import Spent
from headrace.model.catalogue import ObjectKind, StoredObject
from headrace.model.entry import Entry, Money, Opened
from headrace.model.key import KeyState
from headrace.model.settings import ServerSettings, StateSettings
from headrace.sealing import seal, unseal
from headrace.state.database import Database
from headrace.state.objects import Objects

M = TypeVar("M", bound=ToWorker)
SECRET = bytes(range(32))
DEV, MORE = "key:dev|total|0", "key:more|total|0"
FILE = """
channels:
  up: {base_url: "https://example.org/v1", protocols: [chat], credentials: [{name: m, secret: s}]}
models: {m: {routes: [{channel: up}]}}
keys: [{name: dev, secret: sk-hr-dev-0123456789abcdef, budget: {amount: 5, window: total}}]
"""
KEY = '{"secret": "sk-hr-more-0123456789abcdef", "budget": {"amount": "5", "window": "total"}%s}'


class Stage:
    """A control process on this loop, its supervisor, one worker's link, and its state directory."""

    def __init__(self, folder: Path, database: str = "") -> None:
        self.state = StateSettings(directory=str(folder), secret=SECRET, database=database)
        self.folder = folder
        self.heard: asyncio.Queue[ToWorker] = asyncio.Queue()
        self.said: list[ToSupervisor] = []
        self.ready = asyncio.Event()
        self.channel: Channel[ToSupervisor] = Channel(
            msgspec.msgpack.Decoder(ToSupervisor), self._take, lambda reason: None
        )
        self.journals: list[Writer] = []

    def _take(self, message: ToSupervisor) -> None:
        self.said.append(message)
        self.ready.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LinkClient]:
        """The process, and a worker of it."""
        loop = asyncio.get_running_loop()
        config = self.folder / "headrace.yaml"
        config.write_text(FILE)
        config.chmod(0o600)
        ours, theirs = socket.socketpair()
        for one in (ours, theirs):
            one.setblocking(False)
        await loop.create_unix_connection(lambda: self.channel, sock=ours)
        with listen(self.folder) as listener:
            task = asyncio.create_task(Process().run(theirs))
            link = listener.dup().detach()
            self.channel.send(
                ControlBoot(node="n", config=str(config), server=ServerSettings(), state=self.state, link=link)
            )
            await asyncio.wait_for(self.ready.wait(), 30)
            assert self.said == [Ready()]
            hello = Hello(slot=0, incarnation="w", pid=1, snapshot="")
            worker = LinkClient(self.folder, lambda: hello, self.heard.put_nowait)
            worker.start()
            try:
                yield worker
            finally:
                self.channel.send(Drain())
                for journal in self.journals:
                    journal.close()
                assert await asyncio.wait_for(task, 30) == 0
                worker.close()
                await asyncio.sleep(0.01)
                self.channel.abort()
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                    loop.remove_signal_handler(number)

    async def next(self, kind: type[M]) -> M:
        """The next message of a kind; the others before it are dropped."""
        while not isinstance(found := await asyncio.wait_for(self.heard.get(), 30), kind):
            pass
        return found

    async def spent(self, purse: str) -> int:
        """What a worker hears next of a purse."""
        while True:
            covered = await self.next(Covered)
            for one in covered.spent:
                if one.purse == purse:
                    return one.total

    def journal(self, name: str) -> Writer:
        made = Writer(Incarnation.of(self.folder, "n", 0, name), asyncio.get_running_loop())
        self.journals.append(made)
        return made

    async def put(self, document: str, name: str = "more") -> None:
        database = Database.open(self.state.database, self.folder)
        objects = Objects(database, lambda purpose, data: seal(SECRET, purpose, data), lambda *it: unseal(SECRET, *it))
        await objects.put(StoredObject(ObjectKind.KEY, name, document), time.time())
        await database.close()


def staging(stage: Stage, script: Callable[[LinkClient], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with stage.running() as link:
            await script(link)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def ended(id: str, counted: int, key: str = "dev") -> Entry:
    return Entry(
        id=id, at=time.time(), duration_s=1.0, protocol="chat", operation="", key=key, end="completed", reason="stop",
        money=Money(counted=counted),
    )  # fmt: skip


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_worker_hears_what_was_spent_before_the_catalogue_that_needs_it(stage: Stage) -> None:
    async def script(link: LinkClient) -> None:
        first = [await asyncio.wait_for(stage.heard.get(), 30) for _ in range(2)]
        assert first[0] == Covered(spent=(Spent(purse=DEV),)) and isinstance(first[1], Catalogue)
        journal = stage.journal("a")
        journal.append(ended("hr_1", 7, key="more"))
        await asyncio.sleep(0)
        assert await link.ask_spent([MORE], 30) is not None
        await stage.put(KEY % "")
        spent, catalogue = [await asyncio.wait_for(stage.heard.get(), 30) for _ in range(2)]
        assert isinstance(spent, Covered) and isinstance(catalogue, Catalogue)
        assert [(one.purse, one.total) for one in spent.spent] == [(MORE, 7)]
        assert [key.name for key in catalogue.snapshot.parts.keys] == ["dev", "more"]

    staging(stage, script)


def test_what_is_journalled_is_told_and_a_question_hears_of_it(stage: Stage) -> None:
    async def script(link: LinkClient) -> None:
        assert await stage.spent(DEV) == 0
        journal = stage.journal("a")
        for number in range(1, 4):
            journal.append(ended(f"hr_{number}", 10))
            await asyncio.sleep(0)
            answer = await link.ask_spent([DEV], 30)
            assert answer is not None
            assert [one.total for one in answer] == [10 * number]
        while await stage.spent(DEV) != 30:
            pass

    staging(stage, script)


def test_a_dead_workers_open_exchanges_are_spent_and_the_disk_knows(stage: Stage) -> None:
    async def script(link: LinkClient) -> None:
        assert await stage.spent(DEV) == 0
        journal = stage.journal("dead")
        journal.append(Opened(id="hr_1", at=time.time(), protocol="chat", key="dev"))
        journal.append(ended("hr_2", 3))
        await asyncio.sleep(0)
        assert await stage.spent(DEV) == 3
        stage.journals.remove(journal)
        journal.close()
        async with asyncio.timeout(30):
            while Incarnation.of(stage.folder, "n", 0, "dead").path.exists():  # noqa: ASYNC110  a file
                await asyncio.sleep(0.01)
        figures = FIGURES_FILE.read(stage.folder, SECRET)
        assert figures is not None
        assert [one.total for one in figures.spent] == [3]
        assert figures.positions["dead"].open == (), "its exchange is settled"

    staging(stage, script)


def test_a_key_that_is_revoked_at_once_says_so_in_the_catalogue(stage: Stage) -> None:
    async def script(link: LinkClient) -> None:
        await stage.put(KEY % "")
        while len((await stage.next(Catalogue)).snapshot.parts.keys) < 2:
            pass
        await stage.put(KEY % ', "state": "disabled", "stop": true')
        (_, key) = (await stage.next(Catalogue)).snapshot.parts.keys
        assert (key.name, key.state, key.stop) == ("more", KeyState.DISABLED, True)

    staging(stage, script)


def test_a_start_without_the_database_tells_nothing_that_is_not_known(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(link: LinkClient) -> None:
        assert await stage.spent(DEV) == 0
        stage.journal("a").append(ended("hr_1", 7))
        assert await stage.spent(DEV) == 7

    staging(stage, script)
    before = FIGURES_FILE.read(stage.folder, SECRET)
    assert before is not None
    monkeypatch.setattr(process, "DATABASE_S", 0.3)
    away = Stage(stage.folder)
    away.state = replace(stage.state, database="postgresql://nobody@127.0.0.1:9/none")

    async def without(link: LinkClient) -> None:
        catalogue = await asyncio.wait_for(away.heard.get(), 30)
        assert isinstance(catalogue, Catalogue), "nothing comes before it"
        assert await link.ask_spent([DEV], 0.2) is None
        assert FIGURES_FILE.read(stage.folder, SECRET) == before

    staging(away, without)
