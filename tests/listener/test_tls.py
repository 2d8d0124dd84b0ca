"""TLS on the edge: contexts, and connections that end while the client is slow or silent."""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from headrace.listener import http1
from headrace.listener.server import Server
from headrace.listener.tls import server_context
from headrace.model.ports import ClientRequest
from headrace.model.settings import Address, TlsFiles
from tests.listener.stand import SETTINGS, Client, refuse, until

GET = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
SIZE = 6_000_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[TlsFiles, ssl.SSLContext]:
    """A server's files and a client's context."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(folder / "cert"))
    issued.private_key_pem.write_to_path(str(folder / "key"))
    clients = ssl.create_default_context()
    authority.configure_trust(clients)
    return TlsFiles(str(folder / "cert"), str(folder / "key")), clients


def answer(request: ClientRequest) -> None:
    """A large response; the connection closes behind it."""
    request.sink.start(200, [], SIZE)
    request.sink.write(b"x" * SIZE)
    request.sink.finish()


@asynccontextmanager
async def serving(files: TlsFiles, idle_s: float = 5.0, *addresses: Address) -> AsyncIterator[Server]:
    settings = replace(SETTINGS, idle_timeout=idle_s, listen=addresses or SETTINGS.listen)
    server = Server(settings, answer, refuse, lambda *_: None)
    await server.listen(tls=server_context(files))
    try:
        yield server
    finally:
        server.drain()
        server.abort()
        await server.closed()


async def connect(server: Server, context: ssl.SSLContext) -> Client:
    address = server.addresses[0]
    return Client(*await asyncio.open_connection(address.host, address.port, ssl=context, limit=4096))


async def test_a_slow_client_loses_nothing_of_the_last_response(
    monkeypatch: pytest.MonkeyPatch, files: tuple[TlsFiles, ssl.SSLContext]
) -> None:
    """The client is a thread with a plain socket: uvloop's own TLS drops what a paused reader has not taken at EOF."""
    monkeypatch.setattr(http1, "LINGER_S", 0.05)

    def read_slowly(port: int) -> int:
        with (
            socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
            files[1].wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False) as client,
        ):
            client.sendall(GET)
            heard = 0
            for _ in range(4):  # longer than both limits together, but some is taken in each
                time.sleep(0.45)
                until_now = heard
                while heard < until_now + SIZE // 8:
                    heard += len(client.recv(65536))
            while data := client.recv(65536):
                heard += len(data)
            return heard

    async with serving(files[0], 1.5) as server:
        heard = await asyncio.to_thread(read_slowly, server.addresses[0].port)
    assert SIZE < heard < SIZE + 500


async def test_a_client_that_takes_nothing_is_cut(
    monkeypatch: pytest.MonkeyPatch, files: tuple[TlsFiles, ssl.SSLContext]
) -> None:
    monkeypatch.setattr(http1, "LINGER_S", 0.05)
    async with serving(files[0], 0.1) as server, await connect(server, files[1]) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(GET)
        await until(lambda: server.open == 0, 3)
        client.writer.transport.abort()


async def test_a_client_that_never_says_goodbye_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, files: tuple[TlsFiles, ssl.SSLContext]
) -> None:
    """It has everything; only its own close_notify is missing."""
    monkeypatch.setattr(http1, "LINGER_S", 0.05)
    monkeypatch.setattr(f"{__name__}.SIZE", 10)
    async with serving(files[0]) as server, await connect(server, files[1]) as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(GET)
        await until(lambda: server.open == 0, 1)
        client.writer.transport.abort()


async def test_a_goodbye_is_no_half_close(
    caplog: pytest.LogCaptureFixture, files: tuple[TlsFiles, ssl.SSLContext]
) -> None:
    """Over plain TCP a FIN may leave the response under way; a TLS transport closes both sides."""
    gone = asyncio.Event()

    async def wait(request: ClientRequest) -> None:
        while not request.sink.gone:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)
        gone.set()

    tasks = []
    server = Server(
        SETTINGS, lambda request: tasks.append(asyncio.ensure_future(wait(request))), refuse, lambda *_: None
    )
    await server.listen(tls=server_context(files[0]))
    client = await connect(server, files[1])
    await client.send(GET)
    await until(lambda: tasks)
    with suppress(OSError):
        await client.close()
    await asyncio.wait_for(gone.wait(), 1)
    assert not caplog.records
    server.drain()
    server.abort()
    await server.closed()


async def test_a_unix_socket_beside_it_is_plain(tmp_path: Path, files: tuple[TlsFiles, ssl.SSLContext]) -> None:
    addresses = Address("127.0.0.1", 0), Address(path=str(tmp_path / "s"))
    async with serving(files[0], 5.0, *addresses) as server:
        reader, writer = await asyncio.open_unix_connection(server.addresses[1].path)
        async with Client(reader, writer) as client:
            await client.send(GET)
            assert (await client.response()).status == 200
        async with await connect(server, files[1]) as client:
            await client.send(GET)
            assert (await client.response()).status == 200


def test_files_that_cannot_be_used(tmp_path: Path, files: tuple[TlsFiles, ssl.SSLContext]) -> None:
    with pytest.raises(OSError, match="No such file"):
        server_context(TlsFiles(str(tmp_path / "gone"), files[0].key))
    with pytest.raises(OSError, match="SSL"):
        server_context(TlsFiles(files[0].key, files[0].key))
