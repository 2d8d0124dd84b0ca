"""The control process's end of the link: who is there, how they are, and the snapshot for each."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from headrace.link.address import listen
from headrace.link.client import LinkClient
from headrace.link.messages import (
    AskSpent,
    Catalogue,
    Covered,
    Gauges,
    Hello,
    Lessons,
    OpenStream,
    OpenStreams,
    Snapshot,
    SpentAnswer,
    Stop,
    ToWorker,
)
from headrace.link.server import LinkServer
from headrace.model.allowance import Spent
from headrace.model.catalogue import CatalogueParts
from headrace.model.settings import StreamSettings
from headrace.model.succession import Gone, HandOver, Held, Released

OLD = Snapshot(version="old", stream=StreamSettings(), parts=CatalogueParts())
NEW = Snapshot(version="new", stream=StreamSettings(total=7200.0), parts=CatalogueParts())


def stream(id: str) -> OpenStream:
    return OpenStream(
        id=id, protocol="chat", key="dev", model="m", age_s=1.0, state="committed", events=1, silent_s=0.0
    )


class Worker:
    """A worker's end, and what it hears."""

    def __init__(self, folder: Path, version: str, slot: int = 0, name: str = "", *, counts: bool = False) -> None:
        self.heard: asyncio.Queue[ToWorker] = asyncio.Queue()
        incarnation = name or f"i{slot}"
        hello = Hello(slot=slot, incarnation=incarnation, pid=slot + 1, snapshot=version, hands_over=counts)
        self.link = LinkClient(folder, lambda: hello, self.heard.put_nowait)
        self.link.start()

    async def next(self) -> ToWorker:
        return await asyncio.wait_for(self.heard.get(), 10)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not is_so():  # noqa: ASYNC110  the server says nothing of it
            await asyncio.sleep(0.001)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[LinkServer, list[str]]]:
    said: list[str] = []
    with listen(folder) as listener:
        server = LinkServer(OLD, said.append)
        await server.start(listener)
        try:
            yield server, said
        finally:
            server.close()
            await asyncio.sleep(0.001)


async def test_who_has_another_snapshot_gets_the_present_one_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, _):
        behind, level = Worker(tmp_path, ""), Worker(tmp_path, "old", 1)
        assert await behind.next() == Catalogue(snapshot=OLD)
        await until(lambda: len(server.peers) == 2)
        assert level.heard.empty()
        server.publish(NEW)
        for worker in (behind, level):
            assert await worker.next() == Catalogue(snapshot=NEW)
            worker.link.close()


async def test_the_socket_outlives_it_for_the_next_control_process(tmp_path: Path) -> None:
    with listen(tmp_path) as listener:
        for _ in range(2):
            server = LinkServer(OLD, print)
            await server.start(listener.dup())
            worker = Worker(tmp_path, "")
            assert await worker.next() == Catalogue(snapshot=OLD)
            worker.link.close()
            server.close()
            await asyncio.sleep(0.001)


async def test_a_stop_reaches_every_worker(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, _):
        workers = [Worker(tmp_path, "old", slot) for slot in range(2)]
        await until(lambda: len(server.peers) == 2)
        server.stop("hr_x")
        for worker in workers:
            assert await worker.next() == Stop(id="hr_x")
            worker.link.close()


async def test_streams_are_shown_round_by_round_and_gauges_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, said):
        worker = Worker(tmp_path, "old")
        await until(lambda: len(server.peers) == 1)
        (peer,) = server.peers
        for first, last, ids in ((True, False, "ab"), (False, True, "c"), (True, False, "d")):
            worker.link.send(OpenStreams(first=first, last=last, streams=tuple(map(stream, ids))))
        worker.link.send(Gauges(open=4))
        await until(lambda: peer.gauges == Gauges(open=4))
        assert [one.id for one in peer.streams] == ["a", "b", "c"], "the round that is whole"
        worker.link.close()
        await until(lambda: not server.peers)
        assert not said


async def test_a_worker_hears_what_was_spent_before_it_has_the_catalogue_and_once(tmp_path: Path) -> None:
    words = [Covered(spent=(Spent(purse="a"),)), Lessons(learned={})]
    with listen(tmp_path) as listener:
        server = LinkServer(OLD, print, lambda: words)
        await server.start(listener)
        worker = Worker(tmp_path, "")
        assert [await worker.next() for _ in range(3)] == [*words, Catalogue(snapshot=OLD)]
        (peer,) = server.peers
        worker.link.send(Hello(slot=0, incarnation="named", pid=1, snapshot="old"))
        await until(lambda: peer.hello is not None and peer.hello.incarnation == "named")
        server.tell(Covered(spent=()))
        assert await worker.next() == Covered(spent=())
        worker.link.close()
        server.close()
        await asyncio.sleep(0.001)


async def test_a_question_is_answered_to_who_asked(tmp_path: Path) -> None:
    asked: list[AskSpent] = []

    async def answer(question: AskSpent) -> SpentAnswer:
        asked.append(question)
        return SpentAnswer(number=question.number, spent=(Spent(purse=question.purses[0]),))

    with listen(tmp_path) as listener:
        server = LinkServer(OLD, print, answer=answer)
        await server.start(listener)
        one, other = Worker(tmp_path, "old"), Worker(tmp_path, "old", 1)
        assert await asyncio.wait_for(one.link.ask_spent(["a"], 20), 10) == (Spent(purse="a"),)
        assert await asyncio.wait_for(other.link.ask_spent(["b"], 20), 10) == (Spent(purse="b"),)
        assert [question.purses for question in asked] == [("a",), ("b",)]
        for worker in (one, other):
            assert worker.heard.empty()
            worker.link.close()
        server.close()
        await asyncio.sleep(0.001)


async def test_it_lets_go_of_what_it_cannot_answer_any_more(tmp_path: Path) -> None:
    waiting = asyncio.Event()

    async def never(_: AskSpent) -> SpentAnswer:
        waiting.set()
        await asyncio.Event().wait()
        raise AssertionError("it is given up")

    with listen(tmp_path) as listener:
        server = LinkServer(OLD, print, answer=never)
        await server.start(listener)
        worker = Worker(tmp_path, "old")
        asking = asyncio.ensure_future(worker.link.ask_spent(["a"], 0.2))
        await asyncio.wait_for(waiting.wait(), 10)
        server.close()
        assert await asking is None
        worker.link.close()
        await asyncio.sleep(0.001)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_older_worker_is_asked_to_hand_over_and_the_younger_ones_hear_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, _):
        elder = Worker(tmp_path, "old", name="i1", counts=True)
        elsewhere = Worker(tmp_path, "old", 1, "i2", counts=True)
        await until(lambda: len(server.peers) == 2)
        heir = Worker(tmp_path, "old", name="i3", counts=True)
        assert await elder.next() == HandOver()
        for said in (Held(incarnation="i1", first=True, last=True), Released(incarnation="i1", number=1)):
            elder.link.post(said)
            assert await heir.next() == said
        youngest = Worker(tmp_path, "old", name="i4", counts=True)
        assert (await elder.next(), await heir.next()) == (HandOver(), HandOver())
        heir.link.close()
        assert await youngest.next() == Gone(incarnation="i3")
        youngest.link.close()
        assert await elder.next() == HandOver(wanted=False)
        assert elsewhere.heard.empty()
        elder.link.close()
        elsewhere.link.close()


async def test_after_a_restart_of_the_control_process_the_older_one_may_come_last(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, _):
        heir = Worker(tmp_path, "old", name="i3", counts=True)
        await until(lambda: len(server.peers) == 1)
        elder = Worker(tmp_path, "old", name="i1", counts=True)
        assert await elder.next() == HandOver()
        elder.link.close()
        assert await heir.next() == Gone(incarnation="i1")
        heir.link.close()


async def test_workers_that_count_elsewhere_hand_nothing_over(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, _):
        pair = [Worker(tmp_path, "", name=name, counts=counts) for name, counts in (("i1", True), ("i2", False))]
        await until(lambda: len(server.peers) == 2)
        server.stop("id")
        for worker in pair:
            assert [await worker.next(), await worker.next()] == [Catalogue(snapshot=OLD), Stop(id="id")]
            worker.link.close()
