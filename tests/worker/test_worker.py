"""The composition root: starting on addresses or on sockets that are bound already, and leaving nothing behind."""

import asyncio
import gc
import inspect
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from headrace.config.draft import Loaded, load
from headrace.journal.reader import read_all
from headrace.model.settings import Address
from headrace.worker import Worker
from tests.stand.gateway import SECRET, run


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """A worker changes how the whole process collects garbage."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def loaded(folder: Path, listen: str = "127.0.0.1:0", more: str = "") -> Loaded:
    """A configuration without channels, but those in `more`."""
    path = folder / "headrace.yaml"
    server = f"server: {{listen: '{listen}', drain_notice: 100ms}}"
    path.write_text(f"{server}\nstate: {{directory: {folder / 'state'}}}\n{more}")
    path.chmod(0o600)
    return load(path).resolve(SECRET)


@asynccontextmanager
async def running(
    folder: Path, listen: str = "127.0.0.1:0", sockets: list[socket.socket] | None = None, more: str = ""
) -> AsyncIterator[Worker]:
    """A worker that has started, and that drains to nothing."""
    made = loaded(folder, listen, more)
    reports: list[str] = []
    worker = Worker(made.settings, made.catalogue, reports.append)
    await worker.start(sockets)
    try:
        yield worker
    finally:
        await asyncio.wait_for(worker.drain(), 10)
    assert not reports
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def ask(address: Address, path: str = "/healthz") -> bytes:
    """One GET's reply."""
    if address.path:
        reader, writer = await asyncio.open_unix_connection(address.path)
    else:
        reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(f"GET {path} HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n".encode())
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
        await asyncio.sleep(0)


def test_it_listens_where_the_settings_say(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as worker:
            (address,) = worker.addresses
            assert address.port
            assert (await ask(address)).startswith(b"HTTP/1.1 200 ")
        with pytest.raises(OSError, match="refused"):
            await ask(address)

    run(main())


def test_it_listens_on_sockets_that_are_bound_already(tmp_path: Path) -> None:
    async def main() -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            async with running(tmp_path, sockets=[bound]) as worker:
                assert worker.addresses == (Address("127.0.0.1", bound.getsockname()[1]),)
                assert (await ask(worker.addresses[0])).startswith(b"HTTP/1.1 200 ")

    run(main())


def test_it_listens_on_a_unix_socket(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path, f"unix:{tmp_path / 's'}") as worker:
            assert worker.addresses == (Address(path=str(tmp_path / "s")),)
            assert (await ask(worker.addresses[0])).startswith(b"HTTP/1.1 200 ")

    run(main())


def test_an_address_in_use_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path) as worker:
            made = loaded(tmp_path, str(worker.addresses[0]))
            second = Worker(made.settings, made.catalogue, print)
            with pytest.raises(OSError, match="in use"):
                await second.start()
            await second.drain()

    run(main())


def test_workers_of_one_directory_share_no_journal(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path), running(tmp_path):
            assert len(list((tmp_path / "state" / "journal" / "local" / "0").iterdir())) == 2
        async with running(tmp_path):
            assert len(list((tmp_path / "state" / "journal" / "local" / "0").iterdir())) == 3
        assert not list(read_all(tmp_path / "state"))

    run(main())


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "state").mkdir()
        (tmp_path / "state" / "journal").write_text("a file")
        made = loaded(tmp_path)
        with pytest.raises(OSError, match="directory"):
            Worker(made.settings, made.catalogue, print)

    run(main())


def test_start_freezes_what_is_there_and_keeps_full_collections_away(tmp_path: Path) -> None:
    """At 9,000 streams a full collection stops everything for 125 ms."""

    async def main() -> None:
        before = gc.get_freeze_count()
        async with running(tmp_path):
            assert gc.get_freeze_count() > before
            assert gc.get_threshold()[2] >= 1_000_000
            assert gc.isenabled()

    run(main())


@pytest.mark.parametrize(("streams", "collections"), [(0, 1), (199, 1), (200, 0)])
def test_full_collections_by_hand_below_a_number_of_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: int, collections: int
) -> None:
    async def main() -> None:
        async with running(tmp_path) as worker:
            done: list[int] = []
            monkeypatch.setattr("headrace.worker.worker.gc.collect", lambda: done.append(1))
            worker._front.running = dict.fromkeys(range(streams))  # type: ignore[assignment, arg-type]
            assert worker._collector is not None
            worker._collector.cancel()
            worker._collect()
            worker._front.running = {}
            monkeypatch.undo()
            assert len(done) == collections

    run(main())


def test_an_idle_worker_is_gone_once_the_notice_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        began = asyncio.get_running_loop().time()
        async with running(tmp_path) as worker:
            reader, writer = await asyncio.open_connection("127.0.0.1", worker.addresses[0].port)
            await ask(worker.addresses[0])
            await worker.drain()
            assert await reader.read() == b""
            writer.close()
            worker.drain = _nothing  # type: ignore[method-assign]
        assert asyncio.get_running_loop().time() - began < 5

    run(main())


async def _nothing() -> None:
    """It has drained already."""


ONE_CHANNEL = """
channels:
  up: {base_url: "http://127.0.0.1:PORT/v1", allow_http: true, protocols: [chat], credentials: [{name: m, secret: s}]}
models: {m: {routes: [{channel: up}]}}
keys: [{name: k, secret: sk-hr-cycle-0123456789abcdef}]
"""
REPLY = b'{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}]}'
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


class Answering(asyncio.Protocol):
    """An upstream that runs no task: a whole reply, or a stream where one is asked for."""

    def __init__(self) -> None:
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not subclasses

    def data_received(self, data: bytes) -> None:
        self._unread += data
        head, _, body = self._unread.partition(b"\r\n\r\n")
        lengths = [int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
        if not lengths or len(body) < lengths[0]:
            return
        self._unread = b""
        kind, reply = (b"text/event-stream", EVENT) if b"stream" in body else (b"application/json", REPLY)
        self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n" % kind)
        self._transport.write(b"content-length: %d\r\n\r\n%b" % (len(reply), reply))


@pytest.mark.parametrize(
    ("body", "end"),
    [(b'{"model":"m"}', REPLY), (b'{"model":"m","stream":true}', b"0\r\n\r\n"), (b'{"model":"x"}', b"}")],
    ids=["reply", "stream", "refusal"],
)
def test_a_finished_exchange_leaves_no_cycle(tmp_path: Path, body: bytes, end: bytes) -> None:
    """Reference counts free it at once: no full collection runs above 200 streams, so a cycle would stay."""
    ask_it = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nauthorization: Bearer sk-hr-cycle-0123456789abcdef\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(body), body)
    )

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
        more = ONE_CHANNEL.replace("PORT", str(server.sockets[0].getsockname()[1]))
        async with running(tmp_path, more=more) as worker:
            address = worker.addresses[0]
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(ask_it)
            await reader.readuntil(end)  # what is made once
            gc.collect()
            gc.set_debug(gc.DEBUG_SAVEALL)
            try:
                for _ in range(5):
                    writer.write(ask_it)
                    await reader.readuntil(end)
                await asyncio.sleep(0.01)
                gc.collect()
                left = {type(one).__qualname__ for one in gc.garbage if type(one).__module__.startswith("headrace")}
                left |= {one.__qualname__ for one in gc.garbage if inspect.iscoroutine(one) or inspect.isfunction(one)}
            finally:
                gc.set_debug(0)
                gc.garbage.clear()
            writer.close()
        server.close()
        assert not left

    run(main())
