"""The server: addresses, counting, drain, abort, and too few descriptors."""

import asyncio
import os
import resource
import socket
import ssl
import time
from pathlib import Path

import pytest
import trustme

from headrace.listener.binding import bind, bind_all
from headrace.listener.server import Server
from headrace.model.ports import ClientRequest
from headrace.model.settings import Address
from tests.listener.stand import SETTINGS, Client, refuse, serving, until

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def is_socket(path: str) -> bool:
    return Path(path).is_socket()


@pytest.fixture(scope="module")
def tls() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context and a client's."""
    authority = trustme.CA()
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs = ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(ours)
    authority.configure_trust(theirs)
    return ours, theirs


class Streams:
    """A line whose streams end when told."""

    def __init__(self) -> None:
        self.end = asyncio.Event()

    async def line(self, request: ClientRequest) -> None:
        request.sink.start(200, [], None)
        request.sink.write(b"begin")
        await self.end.wait()
        request.sink.write(b"end")
        request.sink.finish()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_tcp(host: str) -> None:
    async with serving(listen=(Address(host, 0),)) as stand:
        assert stand.address.host == host
        assert stand.address.port
        assert await stand.works()


async def test_a_unix_socket_outlives_its_server(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    for _ in range(2):  # the second takes the place of the first one's file
        async with serving(listen=(Address(path=path),)) as stand:
            assert str(stand.address) == f"unix:{path}"
            assert await stand.works()
        assert is_socket(path)


async def test_abort_on_a_unix_socket(tmp_path: Path) -> None:
    async def line(request: ClientRequest) -> None:
        request.sink.start(200, [], None)
        request.sink.write(b"begin")
        await asyncio.sleep(0.01)
        request.sink.abort()

    async with serving(line, listen=(Address(path=str(tmp_path / "socket")),)) as stand:
        assert not (await stand.ask(GET)).endswith(b"0\r\n\r\n")


async def test_several_addresses_and_none_if_one_fails() -> None:
    async with serving(listen=(Address("127.0.0.1", 0), Address("127.0.0.1", 0))) as stand:
        one, two = stand.server.addresses
        assert one != two
        with pytest.raises(OSError, match="in use"):
            bind_all((Address("127.0.0.1", 0), one))


async def test_sockets_that_are_given() -> None:
    sock = bind(Address("127.0.0.1", 0))
    kept = socket.socket(fileno=os.dup(sock.fileno()))
    server = Server(SETTINGS, lambda request: None, refuse, lambda *_: None)
    await server.listen([sock])
    server.drain()
    await server.closed()
    # Its owner's copy still listens: nothing that waits there is lost.
    waiting = socket.create_connection(kept.getsockname(), timeout=1)
    accepted, _ = kept.accept()
    for item in (waiting, accepted, kept):
        item.close()


async def test_open_connections_are_counted() -> None:
    async with serving() as stand:
        clients = [await stand.client() for _ in range(3)]
        await clients[0].send(GET)
        await clients[0].response()
        assert stand.server.open == 3
        for client in clients:
            await client.close()
        await until(lambda: not stand.server.open, 1)


async def test_drain_closes_idle_connections_and_lets_streams_end() -> None:
    streams = Streams()
    async with serving(streams.line) as stand:
        idle, busy = await stand.client(), await stand.client()
        await idle.send(GET)
        await idle.reader.readuntil(b"begin")
        streams.end.set()
        await idle.reader.readuntil(b"0\r\n\r\n")
        streams.end.clear()
        await busy.send(GET)
        await busy.reader.readuntil(b"begin")
        stand.server.drain()
        assert await idle.is_closed()
        closed = asyncio.ensure_future(stand.server.closed())
        await asyncio.sleep(0.02)
        assert not closed.done()
        with pytest.raises(OSError):
            await stand.client()
        streams.end.set()
        assert (await busy.reader.readuntil(b"0\r\n\r\n")).endswith(b"end\r\n0\r\n\r\n")
        assert await busy.is_closed()
        async with asyncio.timeout(1):
            await closed
        await idle.close()
        await busy.close()


async def test_who_has_just_connected_may_ask_once_during_a_drain() -> None:
    streams = Streams()
    streams.end.set()
    async with serving(streams.line) as stand:
        client = await stand.client()
        await until(lambda: stand.server.open == 1, 1)
        stand.server.drain()
        await client.send(GET)
        assert (await client.reader.readuntil(b"0\r\n\r\n")).endswith(b"end\r\n0\r\n\r\n")
        assert await client.is_closed()
        await client.close()


async def test_a_response_during_drain_says_close() -> None:
    async def line(request: ClientRequest) -> None:
        stand.server.drain()
        request.sink.start(200, [], 0)
        request.sink.finish()

    async with serving(line) as stand, await stand.client() as client:
        await client.send(GET)
        assert (await client.response()).headers[b"connection"] == b"close"
        assert await client.is_closed()


async def test_a_request_under_way_is_served_during_drain() -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(GET[:20])
        await asyncio.sleep(0.02)
        stand.server.drain()
        await client.send(GET[20:])
        assert (await client.response()).headers[b"connection"] == b"close"
        assert await client.is_closed()


async def test_tls(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """Lingering too, which has no half close over TLS."""

    async def line(request: ClientRequest) -> None:
        request.sink.start(401, [], 2)
        request.sink.write(b"{}")
        request.sink.finish()

    ours, theirs = tls
    server = Server(
        SETTINGS, lambda request: tasks.append(asyncio.ensure_future(line(request))), refuse, lambda *_: None
    )
    tasks: list[asyncio.Future[None]] = []
    await server.listen(tls=ours)
    port = server.addresses[0].port
    async with Client(*await asyncio.open_connection("127.0.0.1", port, ssl=theirs)) as client:
        await client.send(GET, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n")
        assert [(await client.response()).status for _ in range(2)] == [401, 401]
        await client.send(b"x" * 90000)
    async with Client(*await asyncio.open_connection("127.0.0.1", port)) as plain:
        await plain.send(GET)
        assert await plain.is_closed()
    server.drain()
    server.abort()
    await server.closed()


async def test_abort_resets_what_is_left() -> None:
    streams = Streams()
    async with serving(streams.line) as stand, await stand.client() as client:
        await client.send(GET)
        await client.reader.readuntil(b"begin")
        stand.server.drain()
        stand.server.abort()
        assert await client.is_reset()
        await stand.server.closed()
        assert stand.server.open == 0


async def test_too_few_descriptors_do_not_spin_or_stop_it_for_good() -> None:
    """Clients beyond the limit are turned away or wait; what is open works, and so does what comes later."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with serving() as stand, await stand.client() as early:
        await early.send(GET)
        await early.response()
        raised: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        clients = [socket.socket() for _ in range(5)]
        fillers = [os.dup(0)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(fillers[-1], *(c.fileno() for c in clients)) + 1, hard))
        try:
            with pytest.raises(OSError, match="open files"):
                while True:
                    fillers.append(os.dup(0))
            for client in clients:
                client.setblocking(False)
                client.connect_ex((stand.address.host, stand.address.port))
            began, busy = time.monotonic(), time.process_time()
            await asyncio.sleep(0.5)
            assert time.process_time() - busy < (time.monotonic() - began) / 2, "it spins"
            await early.send(GET)
            assert (await early.response()).status == 200
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for filler in fillers:
                os.close(filler)
            for client in clients:
                client.close()
        async with asyncio.timeout(3):
            assert await stand.works()
