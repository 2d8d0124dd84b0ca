"""A worker's end of the link: it comes back for ever, and what nobody takes is dropped."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from headrace.link import client
from headrace.link.address import listen
from headrace.link.channel import Channel
from headrace.link.client import LinkClient
from headrace.link.messages import AskSpent, FromWorker, Gauges, Hello, SpentAnswer, Stop, ToWorker
from headrace.model.allowance import Spent

HELLO = Hello(slot=0, incarnation="i", pid=1, snapshot="v")


class Peer:
    """The other end: each of its connections, and all that it hears."""

    def __init__(self) -> None:
        self.channels: list[Channel[FromWorker]] = []
        self.heard: list[object] = []
        self.change = asyncio.Event()

    def accept(self) -> Channel[FromWorker]:
        channel: Channel[FromWorker] = Channel(msgspec.msgpack.Decoder(FromWorker), self.take, lambda reason: None)
        self.channels.append(channel)
        return channel

    def take(self, message: object) -> None:
        self.heard.append(message)
        self.change.set()

    async def has_heard(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.heard) < count:
                self.change.clear()
                await self.change.wait()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(client, "LONGEST_PAUSE_S", 0.004)


async def test_it_says_who_it_is_and_hears_what_there_is_for_it(tmp_path: Path) -> None:
    heard: asyncio.Queue[ToWorker] = asyncio.Queue()
    peer = Peer()
    with listen(tmp_path) as listener:
        server = await asyncio.get_running_loop().create_unix_server(peer.accept, sock=listener)
        link = LinkClient(tmp_path, lambda: HELLO, heard.put_nowait)
        link.start()
        await peer.has_heard(1)
        link.send(Gauges(open=3))
        await peer.has_heard(2)
        assert peer.heard == [HELLO, Gauges(open=3)]
        peer.channels[0].send(Stop(id="x"))
        assert await asyncio.wait_for(heard.get(), 10) == Stop(id="x")
        link.close()
        server.close()
        peer.channels[0].abort()
        await asyncio.sleep(0)


async def test_it_comes_back_whoever_closes_and_waits_where_nobody_listens(tmp_path: Path) -> None:
    peer = Peer()
    link = LinkClient(tmp_path, lambda: HELLO, lambda message: None)
    link.start()
    link.send(Gauges(open=1))  # nobody is there: it is dropped
    for time in range(1, 4):
        await asyncio.sleep(0.01)
        with listen(tmp_path) as listener:
            server = await asyncio.get_running_loop().create_unix_server(peer.accept, sock=listener)
            await peer.has_heard(time)
            server.close()
            peer.channels[-1].abort()
            await asyncio.sleep(0)
    assert peer.heard == [HELLO] * 3
    link.close()


async def test_what_nobody_reads_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_UNSENT", 100_000)
    with listen(tmp_path):  # it accepts nobody, as a control process that is away
        link = LinkClient(tmp_path, lambda: HELLO, lambda message: None)
        link.start()
        await asyncio.sleep(0.01)
        message = Gauges(open=1, counts={"x" * 10_000: 1})
        for _ in range(1000):
            link.send(message)
        channel = link._channel
        assert channel is not None
        assert 0 < channel.unsent < 120_000
        link.close()
        channel.abort()
        await asyncio.sleep(0)


async def test_closed_it_stays_closed(tmp_path: Path) -> None:
    link = LinkClient(tmp_path, lambda: HELLO, lambda message: None)
    link.start()
    link.close()
    with listen(tmp_path) as listener:
        await asyncio.sleep(0.02)
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_a_question_has_its_own_answer(tmp_path: Path) -> None:
    heard: asyncio.Queue[ToWorker] = asyncio.Queue()
    peer = Peer()
    with listen(tmp_path) as listener:
        server = await asyncio.get_running_loop().create_unix_server(peer.accept, sock=listener)
        link = LinkClient(tmp_path, lambda: HELLO, heard.put_nowait)
        link.start()
        await peer.has_heard(1)
        first = asyncio.ensure_future(link.ask_spent(["a"], 20))
        second = asyncio.ensure_future(link.ask_spent(["b", "c"], 20))
        await peer.has_heard(3)
        assert peer.heard[1:] == [AskSpent(number=1, purses=("a",)), AskSpent(number=2, purses=("b", "c"))]
        told = (Spent(purse="b", settled=7),)
        for number, spent in ((2, told), (99, None), (1, None), (1, told)):
            peer.channels[0].send(SpentAnswer(number=number, spent=spent))
        assert await asyncio.wait_for(second, 10) == told
        assert await asyncio.wait_for(first, 10) is None
        assert heard.empty(), "answers are for those who asked"
        link.close()
        server.close()
        peer.channels[0].abort()
        await asyncio.sleep(0)


async def test_a_question_is_asked_again_of_who_comes_next(tmp_path: Path) -> None:
    peer = Peer()
    link = LinkClient(tmp_path, lambda: HELLO, lambda message: None)
    link.start()
    asking = asyncio.ensure_future(link.ask_spent(["a"], 20))  # nobody is there yet
    question = AskSpent(number=1, purses=("a",))
    for time in (1, 2):
        with listen(tmp_path) as listener:
            server = await asyncio.get_running_loop().create_unix_server(peer.accept, sock=listener)
            await peer.has_heard(2 * time)
            if time == 2:
                peer.channels[-1].send(SpentAnswer(number=1, spent=()))
                assert await asyncio.wait_for(asking, 10) == ()
            server.close()
            peer.channels[-1].abort()
            await asyncio.sleep(0)
    assert peer.heard == [HELLO, question] * 2
    link.close()


async def test_a_question_that_nobody_answers_is_given_up(tmp_path: Path) -> None:
    with listen(tmp_path):  # it accepts nobody
        link = LinkClient(tmp_path, lambda: HELLO, lambda message: None)
        link.start()
        assert await asyncio.wait_for(link.ask_spent(["a"], 0.02), 10) is None
        assert not link._asked
        link.close()
        await asyncio.sleep(0.001)
