"""A worker as a child: its boot, its snapshot from disk or link, and every way in which it is told to leave."""

import asyncio
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from headrace.config.draft import load
from headrace.journal.place import Incarnation
from headrace.journal.writer import Writer
from headrace.link.address import listen
from headrace.link.channel import Channel
from headrace.link.client import LinkClient
from headrace.link.figures import FIGURES_FILE, Figures
from headrace.link.messages import (
    Covered,
    Drain,
    End,
    Hello,
    Leaving,
    Lessons,
    Ready,
    Snapshot,
    Stop,
    ToSupervisor,
    Unable,
    WorkerBoot,
)
from headrace.link.server import LinkServer
from headrace.link.snapshot import SNAPSHOT_FILE, Kept, snapshot_of
from headrace.model.allowance import Claim, Spent
from headrace.model.catalogue import CatalogueParts
from headrace.model.entry import Checkpoint, Money, Opened
from headrace.model.estimate import Learned
from headrace.model.key import KeyState
from headrace.model.limits import Limits
from headrace.model.settings import ServerSettings, StateSettings, StreamSettings
from headrace.model.succession import HandOver, Held, OpenLease
from headrace.worker import process as process_module
from headrace.worker.process import Process
from headrace.worker.worker import Worker
from tests.stand.gateway import SECRET, run

KEY = "sk-hr-first-0123456789abcdef"
OTHER = "sk-hr-other-0123456789abcdef"
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
DONE = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """A worker changes how the whole process collects garbage."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


class Upstream(asyncio.Protocol):
    """A stream whose first event comes at once, and the rest when `end` is called."""

    open: "list[Upstream]"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"POST"):
            self.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + EVENT)
            self.open.append(self)

    def write(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.WriteTransport) or hasattr(self.transport, "write")
        self.transport.write(data)

    def end(self) -> None:
        self.write(DONE)
        self.transport.close()


class Stage:
    """A worker process on this loop, its supervisor's end of the pair, and one upstream."""

    def __init__(self, folder: Path, upstream: int, streams: list[Upstream]) -> None:
        self.state = StateSettings(directory=str(folder / "state"), secret=SECRET)
        (folder / "state").mkdir(exist_ok=True)
        self.folder = folder
        self.upstream = upstream
        self.streams = streams
        self.heard: list[ToSupervisor] = []
        self.change = asyncio.Event()
        self.channel: Channel[ToSupervisor] = Channel(
            msgspec.msgpack.Decoder(ToSupervisor), self._take, lambda reason: self.change.set()
        )
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen()
        self.port = self.sock.getsockname()[1]
        self.process: asyncio.Task[int]

    def _take(self, message: ToSupervisor) -> None:
        self.heard.append(message)
        self.change.set()

    async def start(self) -> None:
        ours, theirs = socket.socketpair()
        for one in (ours, theirs):
            one.setblocking(False)
        await asyncio.get_running_loop().create_unix_connection(lambda: self.channel, sock=ours)
        self.process = asyncio.create_task(Process().run(theirs))

    def snapshot(self, key: str = KEY, more: str = "") -> Snapshot:
        """With one channel, one model, and this key."""
        path = self.folder / "headrace.yaml"
        path.write_text(
            f"""
channels:
  up: {{base_url: "http://127.0.0.1:{self.upstream}/v1", allow_http: true, protocols: [chat],
       credentials: [{{name: m, secret: s}}]}}
models: {{m: {{routes: [{{channel: up}}]}}}}
keys: [{{name: k, secret: {key}{more}}}]
"""
        )
        path.chmod(0o600)
        made = load(path).resolve(SECRET)
        return snapshot_of(made.settings.stream, made.catalogue)

    def keep(self, key: str = KEY, more: str = "") -> None:
        """The snapshot that lies on the disk."""
        SNAPSHOT_FILE.write(Path(self.state.directory), SECRET, Kept(snapshot=self.snapshot(key, more)))

    def boot(self, notice: float = 0.05, drain: float = 30.0, *, succeeds: bool = False) -> None:
        server = ServerSettings(drain=drain, drain_notice=notice)
        listeners = (os.dup(self.sock.fileno()),)
        boot = WorkerBoot(node="n", slot=1, server=server, state=self.state, listeners=listeners, succeeds=succeeds)
        self.channel.send(boot)

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_so():
                self.change.clear()
                await self.change.wait()

    async def ready(self) -> None:
        await self.until(lambda: Ready() in self.heard)

    async def ended(self) -> int:
        return await asyncio.wait_for(self.process, 10)

    async def ask(self, request: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        return reader, writer

    async def status(self, key: str) -> bytes:
        reader, writer = await self.ask(
            f"GET /v1/models HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n".encode()
        )
        line = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return line.split()[1]

    async def stream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A stream whose first event is there."""
        body = b'{"model":"m","stream":true}'
        reader, writer = await self.ask(
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {KEY}\r\n"
            f"content-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await asyncio.wait_for(reader.readuntil(b'"a"'), 10)
        return reader, writer


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    """Nothing may be left of it."""
    streams: list[Upstream] = []
    kind = type("Streams", (Upstream,), {"open": streams})
    server = await asyncio.get_running_loop().create_server(kind, "127.0.0.1", 0)
    stage = Stage(folder, server.sockets[0].getsockname()[1], streams)
    await stage.start()
    try:
        yield stage
    finally:
        stage.channel.abort()
        stage.process.cancel()
        stage.sock.close()
        server.close()
        await asyncio.sleep(0.01)


def staging(folder: Path, script: "Callable[[Stage], object]") -> None:
    """Run a test's script on uvloop."""

    async def main() -> None:
        async with staged(folder) as stage:
            await script(stage)  # type: ignore[misc]

    run(main())


def test_it_serves_what_lies_on_the_disk_and_waits_for_nobody(tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        stage.keep()
        stage.boot()
        await stage.ready()
        assert (await stage.status(KEY), await stage.status(OTHER)) == (b"200", b"401")
        assert [path.name for path in (tmp_path / "state" / "journal").iterdir()] == ["n"]
        assert [path.name for path in (tmp_path / "state" / "journal" / "n").iterdir()] == ["1"]
        stage.channel.send(Drain())
        assert await stage.ended() == 0

    staging(tmp_path, script)


@pytest.mark.parametrize("content", [None, b"damaged"])
def test_without_a_snapshot_that_can_be_used_it_waits_for_the_link(tmp_path: Path, content: bytes | None) -> None:
    async def script(stage: Stage) -> None:
        if content is not None:
            (tmp_path / "state" / "snapshot").write_bytes(content)
        stage.boot()
        await asyncio.sleep(0.05)
        assert not stage.heard
        with listen(tmp_path / "state") as listener:
            link = LinkServer(stage.snapshot(), print)
            await link.start(listener)
            await stage.ready()
            assert await stage.status(KEY) == b"200"
            stage.channel.send(Drain())
            assert await stage.ended() == 0
            link.close()

    staging(tmp_path, script)


def test_the_link_brings_another_snapshot_for_new_exchanges(tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        stage.keep()
        stage.boot()
        await stage.ready()
        reader, writer = await stage.stream()
        with listen(tmp_path / "state") as listener:
            link = LinkServer(stage.snapshot(OTHER), print)
            await link.start(listener)
            async with asyncio.timeout(10):
                while await stage.status(OTHER) != b"200":
                    pass
            assert await stage.status(KEY) == b"401"
            stage.streams[0].end()
            assert (await reader.readuntil(b"[DONE]\n\n")).count(b"data: ") == 2, "it has what it began with"
            writer.close()
            stage.channel.send(Drain())
            assert await stage.ended() == 0
            link.close()

    staging(tmp_path, script)


def test_a_successor_accepts_nobody_before_it_knows_what_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "INHERIT_S", 60.0)

    async def script(stage: Stage) -> None:
        limits = ", limits: {concurrent: 1, wait: 0s}"
        stage.keep(more=limits)
        asked = asyncio.Event()
        with listen(tmp_path / "state") as listener:
            link = LinkServer(stage.snapshot(more=limits), print)
            await link.start(listener)
            elder = LinkClient(
                tmp_path / "state",
                lambda: Hello(slot=1, incarnation="0", pid=1, snapshot="", hands_over=True),
                lambda message: asked.set() if message == HandOver() else None,
            )
            elder.start()
            stage.boot(succeeds=True)
            await asyncio.wait_for(asked.wait(), 10)
            assert not stage.heard
            lease = OpenLease(number=1, claims=(Claim("key:k", Limits(concurrent=1)),), age_s=0.0)
            elder.post(Held(incarnation="0", first=True, last=True, leases=(lease,)))
            await stage.ready()
            body = b'{"model":"m"}'
            reader, writer = await stage.ask(
                f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {KEY}\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
                + body
            )
            assert (await asyncio.wait_for(reader.read(), 10)).split()[1] == b"429"
            writer.close()
            elder.close()
            stage.channel.send(Drain())
            assert await stage.ended() == 0
            link.close()

    staging(tmp_path, script)


def test_a_successor_does_not_wait_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "INHERIT_S", 0.01)

    async def script(stage: Stage) -> None:
        stage.keep()
        stage.boot(succeeds=True)
        await stage.ready()
        assert await stage.status(KEY) == b"200"
        stage.channel.send(Drain())
        assert await stage.ended() == 0

    staging(tmp_path, script)


def test_an_operator_ends_one_exchange_over_the_link(tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        stage.keep()
        stage.boot()
        await stage.ready()
        reader, writer = await stage.stream()
        with listen(tmp_path / "state") as listener:
            link = LinkServer(Snapshot(version="x", stream=StreamSettings(), parts=CatalogueParts()), print)
            await link.start(listener)
            async with asyncio.timeout(10):
                while not (link.peers and link.peers[0].streams):  # noqa: ASYNC110  the link says nothing of it
                    await asyncio.sleep(0.01)
            (peer,) = link.peers
            assert peer.hello is not None
            assert (peer.hello.slot, peer.hello.pid) == (1, os.getpid())
            (stream,) = peer.streams
            assert (stream.model, stream.key, stream.state, stream.events) == ("m", "k", "committed", 1)
            link.stop("another")
            link.stop(stream.id)
            assert b"An operator of the gateway ended" in await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 10)
            writer.close()
            stage.channel.send(Drain())
            assert await stage.ended() == 0
            link.close()

    staging(tmp_path, script)


@pytest.mark.parametrize("how", ["replaced", "orphaned"])
def test_it_hands_over_at_once_and_lets_its_streams_end(tmp_path: Path, how: str) -> None:
    async def script(stage: Stage) -> None:
        stage.keep()
        stage.boot(notice=20.0)
        await stage.ready()
        reader, writer = await stage.stream()
        if how == "replaced":
            stage.channel.send(Drain(replaced=True))
            await stage.until(lambda: Leaving() in stage.heard)
        else:
            stage.channel.close()
            await asyncio.sleep(0.05)
        stage.sock.setblocking(False)
        loop = asyncio.get_running_loop()
        _, late = await asyncio.open_connection("127.0.0.1", stage.port)
        accepted, _ = await asyncio.wait_for(loop.sock_accept(stage.sock), 10)  # for a successor: nobody else took it
        accepted.close()
        late.close()
        stage.streams[0].end()
        assert await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 10)
        assert await reader.read() == b"", "its connection is closed behind it"
        writer.close()
        assert await stage.ended() == 0, "no notice is waited for: nobody is connected any more"

    staging(tmp_path, script)


def test_a_kept_alive_connection_may_ask_once_more_while_it_hands_over(tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        stage.keep()
        stage.boot(notice=20.0)
        await stage.ready()
        ask = f"GET /v1/models HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {KEY}\r\n\r\n".encode()
        reader, writer = await stage.ask(ask)
        await reader.readuntil(b"}")
        stage.channel.send(Drain(replaced=True))
        await stage.until(lambda: Leaving() in stage.heard)
        writer.write(ask)
        last = await asyncio.wait_for(reader.read(), 10)
        assert b"connection: close" in last.lower()
        assert b"200 OK" in last
        writer.close()
        assert await stage.ended() == 0

    staging(tmp_path, script)


@pytest.mark.parametrize("how", ["End", "End in a drain", "SIGTERM twice"])
def test_it_ends_at_once_with_a_word_to_its_clients(tmp_path: Path, how: str) -> None:
    async def script(stage: Stage) -> None:
        stage.keep()
        stage.boot(notice=20.0)
        await stage.ready()
        reader, writer = await stage.stream()
        if how == "SIGTERM twice":
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)
                await asyncio.sleep(0.05)  # two of one kind that wait are one
        else:
            if how != "End":
                stage.channel.send(Drain())
            stage.channel.send(End())
        assert b'"code":"stopped"' in await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 10)
        writer.close()
        assert await stage.ended() == 0

    staging(tmp_path, script)


@pytest.mark.parametrize("order", [Drain(), End(), None])
def test_an_order_before_it_serves_ends_it(tmp_path: Path, order: object) -> None:
    async def script(stage: Stage) -> None:
        if order is None:
            stage.channel.close()
        else:
            stage.channel.send(order)
        assert await stage.ended() == 0
        assert not stage.heard

    staging(tmp_path, script)


def test_it_says_why_it_cannot_serve(tmp_path: Path) -> None:
    async def script(stage: Stage) -> None:
        stage.keep()
        (tmp_path / "state" / "journal").touch()
        stage.boot()
        assert await stage.ended() == 1
        (unable,) = stage.heard
        assert isinstance(unable, Unable)
        assert unable.reason.startswith(f"cannot write the journal in {tmp_path}/state: ")

    staging(tmp_path, script)


def test_a_word_of_the_link_before_it_serves_is_harmless() -> None:
    async def script() -> None:
        Process()._hear(Stop(id="x"))

    run(script())


PURSE = "key:k|total|0"


class Heard:
    """What workers are told of money and models, and whether they served then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stage: Stage) -> None:
        self.spent: list[tuple[bool, dict[str, Spent]]] = []
        self.learned: list[object] = []
        self.change = asyncio.Event()
        self._stage = stage
        monkeypatch.setattr(Worker, "cover", lambda _, spent: self._cover(spent))
        monkeypatch.setattr(Worker, "learn", lambda _, learned: self._learn(learned))

    def _cover(self, spent: Sequence[Spent]) -> None:
        self.spent.append((Ready() in self._stage.heard, {one.purse: one for one in spent}))
        self._stage.change.set()

    def _learn(self, learned: object) -> None:
        self.learned.append(learned)


def test_before_it_serves_it_knows_what_disk_and_journals_tell_of_budgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else is there: no control process, no database."""

    async def script(stage: Stage) -> None:
        heard = Heard(monkeypatch, stage)
        stage.keep(more=", budget: {amount: 1, window: total}")
        told, learned = (Spent(purse=PURSE, settled=100),), {"m": Learned(output_p95=7)}
        FIGURES_FILE.write(Path(stage.state.directory), SECRET, Figures(at=1.0, spent=told, learned=learned))
        lost = Writer(Incarnation.of(Path(stage.state.directory), "n", 1, "lost"), asyncio.get_running_loop())
        lost.append(Opened(id="hr_1", at=2.0, protocol="chat", key="k"))
        lost.append(Checkpoint(id="hr_1", duration_s=1.0, money=Money(counted=5)))
        await asyncio.sleep(0)
        lost.close()
        stage.boot()
        await stage.ready()
        assert heard.spent == [(False, {PURSE: Spent(purse=PURSE, settled=100, parts={"lost": 5})})]
        assert heard.learned == [learned]
        stage.channel.send(Drain())
        assert await stage.ended() == 0

    staging(tmp_path, script)


def test_what_the_link_tells_before_there_is_a_worker_reaches_it_before_it_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(stage: Stage) -> None:
        heard = Heard(monkeypatch, stage)
        words = [Covered(spent=(Spent(purse=PURSE, settled=1),)), Lessons(learned={"m": Learned(output_p95=7)})]
        with listen(Path(stage.state.directory)) as listener:
            server = LinkServer(stage.snapshot(more=", budget: {amount: 1, window: total}"), print, lambda: words)
            await server.start(listener.dup())
            stage.boot()
            await stage.ready()
            assert (False, {PURSE: Spent(purse=PURSE, settled=1)}) in heard.spent
            assert heard.learned[-1] == {"m": Learned(output_p95=7)}
            (peer,) = server.peers
            incarnations = {path.name for path in (tmp_path / "state" / "journal" / "n" / "1").iterdir()}
            await stage.until(lambda: peer.hello is not None and {peer.hello.incarnation} == incarnations)
            server.tell(Covered(spent=(Spent(purse=PURSE, settled=2),)))
            await stage.until(lambda: (True, {PURSE: Spent(purse=PURSE, settled=2)}) in heard.spent)
            server.close()
            stage.channel.send(Drain())
            assert await stage.ended() == 0

    staging(tmp_path, script)


@pytest.mark.parametrize("stops", [True, False])
def test_a_revoked_key_takes_what_runs_under_it_along_if_it_says_so(tmp_path: Path, stops: bool) -> None:
    async def script(stage: Stage) -> None:
        stage.keep()
        with listen(Path(stage.state.directory)) as listener:
            server = LinkServer(stage.snapshot(), print)
            await server.start(listener.dup())
            stage.boot()
            await stage.ready()
            reader, writer = await stage.stream()
            before = stage.snapshot()
            (key,) = before.parts.keys
            revoked = replace(key, state=KeyState.DISABLED, stop=stops)
            server.publish(snapshot_of(before.stream, replace(before.parts, keys=(revoked,))))
            async with asyncio.timeout(10):
                while await stage.status(KEY) != b"403":  # noqa: ASYNC110  nothing tells of it
                    await asyncio.sleep(0.01)
            if not stops:
                stage.streams[0].end()
            rest = await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 10)
            assert (b'"code":"stopped"' in rest, b"[DONE]" in rest) == (stops, not stops)
            writer.close()
            server.close()
            stage.channel.send(Drain())
            assert await stage.ended() == 0

    staging(tmp_path, script)
