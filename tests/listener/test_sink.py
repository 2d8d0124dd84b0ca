"""The sink: framing, the hash of what was relayed, back-pressure, and how a response ends."""

import asyncio
import hashlib
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headrace.listener.sink import JOIN_MAX, LengthError
from headrace.model.ports import ClientRequest, Sink
from headrace.model.settings import Address
from tests.listener.stand import Client, serving, until

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HEAD = GET.replace(b"GET", b"HEAD")
GET_1_0 = GET.replace(b"1.1", b"1.0")

UNTOLD = (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)
"""The Pythons whose asyncio forgets the high-water mark in `writelines`. The gateway itself runs on uvloop."""

Deed = Callable[[Sink], None]


def doing(deed: Deed) -> Callable[[ClientRequest], Awaitable[None]]:
    """A line that does one thing."""

    async def line(request: ClientRequest) -> None:
        deed(request.sink)

    return line


async def raw(deed: Deed, sent: bytes = GET, *, strict: bool = True) -> tuple[bytes, bytes]:
    """Head and body on the wire, and whether it was a reset (the body ends in RESET then)."""
    async with serving(doing(deed), strict=strict) as stand, await stand.client() as client:
        await client.send(sent)
        found = b""
        await until(lambda: stand.requests and not stand.tasks)
        try:
            found = await client.read_quiet(0.03)  # all of it is in the kernel
        except ConnectionResetError:
            found += b"RESET"
        head, _, body = found.partition(b"\r\n\r\n")
        return head, body


def streamed(sink: Sink) -> None:
    sink.start(200, [(b"content-type", b"text/event-stream")], None)
    sink.write(b"data: 1\n\n")
    sink.insert(b": ka\n\n")
    sink.write(b"")
    sink.insert(b"")
    sink.write(b"y" * (JOIN_MAX + 1))
    sink.insert(b"z" * (JOIN_MAX + 1))
    sink.finish()
    written = hashlib.sha256(b"data: 1\n\n" + b"y" * (JOIN_MAX + 1)).hexdigest()
    assert sink.hash_out() == written
    sink.write(b"late")
    sink.insert(b"late")
    sink.finish()
    sink.abort()
    assert sink.hash_out() == written


BIG = (b"y" * (JOIN_MAX + 1), b"z" * (JOIN_MAX + 1))


async def test_a_stream_is_chunked_and_never_says_close() -> None:
    head, body = await raw(streamed, GET.replace(b"Host", b"Connection: close\r\nHost"))
    assert head == b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked"
    chunks = [b"data: 1\n\n", b": ka\n\n", *BIG]
    assert body == b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


async def test_a_stream_to_http_1_0_ends_with_the_connection() -> None:
    head, body = await raw(streamed, GET_1_0)
    assert head == b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream"
    assert body == b"data: 1\n\n: ka\n\n" + b"".join(BIG)


async def test_a_known_length() -> None:
    def deed(sink: Sink) -> None:
        sink.start(200, [], 10)
        sink.write(b"hello")
        sink.write(b"world")
        sink.finish()

    assert await raw(deed) == (b"HTTP/1.1 200 OK\r\ncontent-length: 10", b"helloworld")


async def test_large_data_of_a_known_length() -> None:
    def deed(sink: Sink) -> None:
        sink.start(200, [], 200_000)
        sink.write(b"x" * 200_000)
        sink.finish()

    assert len((await raw(deed))[1]) == 200_000


@pytest.mark.parametrize(
    ("status", "length", "sent", "head"),
    [
        (200, 5, HEAD, b"HTTP/1.1 200 OK\r\ncontent-length: 5"),
        (200, None, HEAD, b"HTTP/1.1 200 OK"),
        (204, None, GET, b"HTTP/1.1 204 No Content"),
        (204, 0, GET, b"HTTP/1.1 204 No Content"),
        (304, 5, GET, b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5"),
    ],
)
async def test_responses_without_a_body(status: int, length: int | None, sent: bytes, head: bytes) -> None:
    def deed(sink: Sink) -> None:
        sink.start(status, [], length)
        sink.write(b"hello")
        sink.finish()
        assert sink.hash_out() == hashlib.sha256(b"hello").hexdigest()

    assert await raw(deed, sent) == (head, b"")


async def test_the_framing_is_the_sinks_own() -> None:
    def deed(sink: Sink) -> None:
        own = [(b"content-length", b"7"), (b"transfer-encoding", b"gzip"), (b"connection", b"x"), (b"keep-alive", b"1")]
        sink.start(200, [*own, (b"x", b"y")], 2)
        sink.write(b"ok")
        sink.finish()

    assert await raw(deed) == (b"HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 2", b"ok")


async def test_a_header_with_a_line_end_is_refused() -> None:
    def deed(sink: Sink) -> None:
        with pytest.raises(ValueError, match="x-bad"):
            sink.start(200, [(b"x-bad", b"a\r\nset-cookie: b")], 2)
        assert not sink.started
        sink.start(500, [], 0)
        sink.finish()

    assert await raw(deed) == (b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0", b"")


async def test_a_second_start_and_writes_before_the_first_do_nothing() -> None:
    def deed(sink: Sink) -> None:
        sink.write(b"early")
        sink.insert(b"early")
        sink.finish()
        assert sink.hash_out() == hashlib.sha256().hexdigest()
        sink.start(200, [], 2)
        sink.start(404, [], 3)
        sink.write(b"ok")
        sink.finish()

    assert await raw(deed) == (b"HTTP/1.1 200 OK\r\ncontent-length: 2", b"ok")


@pytest.mark.parametrize("body", [b"he", b"hello!"])
async def test_another_length_than_promised_is_a_reset(body: bytes) -> None:
    def deed(sink: Sink) -> None:
        sink.start(200, [], 5)
        sink.write(body)
        sink.finish()

    assert await raw(deed, strict=False) == (b"RESET", b"")

    def strict(sink: Sink) -> None:
        with pytest.raises(LengthError):
            deed(sink)

    assert await raw(strict) == (b"RESET", b"")


@pytest.mark.parametrize("sent", [GET, GET_1_0])
async def test_abort_is_a_reset(sent: bytes) -> None:
    async def line(request: ClientRequest) -> None:
        request.sink.start(200, [], None)
        request.sink.write(b"begin")
        await asyncio.sleep(0.02)
        request.sink.abort()
        request.sink.abort()
        request.sink.write(b"more")
        assert not request.sink.gone

    async with serving(line) as stand, await stand.client() as client:
        await client.send(sent)
        assert await client.is_reset()


@pytest.mark.parametrize(
    ("sent", "length", "seen"),
    [(GET, None, True), (GET, 10, True), (GET_1_0, 10, True), (GET_1_0, None, False)],
)
async def test_an_abort_on_a_unix_socket_lacks_the_end_of_the_framing(
    tmp_path: Path, sent: bytes, length: int | None, seen: bool
) -> None:
    """There is no RST. A length that is known is said to HTTP/1.0 too; without one nothing can tell it (behind-nginx.md
    says so)."""

    async def line(request: ClientRequest) -> None:
        request.sink.start(200, [], length)
        request.sink.write(b"begin")
        await asyncio.sleep(0.02)
        request.sink.abort()

    async with serving(line, listen=(Address(path=str(tmp_path / "socket")),)) as stand, await stand.client() as client:
        await client.send(sent)
        if seen:
            with pytest.raises(asyncio.IncompleteReadError):
                await client.response()
        else:
            assert (await client.response()).body == b"begin"


async def test_abort_before_the_head() -> None:
    assert await raw(lambda sink: sink.abort()) == (b"RESET", b"")


async def test_head_and_first_bytes_leave_in_one_send() -> None:
    async with serving(doing(streamed)) as stand, await stand.client() as client:
        sends: list[bytes] = []
        handler = stand.server._edge.handler

        def spy(request: ClientRequest) -> None:
            transport = request.sink._transport  # type: ignore[attr-defined]
            request.sink._transport = Spy(transport, sends)  # type: ignore[attr-defined]
            handler(request)

        stand.server._edge.handler = spy
        await client.send(GET)
        await client.response()
        assert sends[0].endswith(b"\r\n\r\n9\r\ndata: 1\n\n\r\n")


async def test_a_head_without_a_body_leaves_at_the_end_of_the_turn() -> None:
    async def line(request: ClientRequest) -> None:
        request.sink.start(200, [], None)

    async with serving(line) as stand, await stand.client() as client:
        await client.send(GET)
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Spy:
    """A transport whose writes are seen."""

    def __init__(self, transport: asyncio.Transport, sends: list[bytes]) -> None:
        self._transport = transport
        self._sends = sends

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._sends.append(data)
        self._transport.write(data)


class Watcher:
    """What a sink's watcher hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.changed = asyncio.Event()

    def _hear(self, word: str) -> None:
        self.heard.append(word)
        self.changed.set()

    def sink_paused(self) -> None:
        self._hear("paused")

    def sink_resumed(self) -> None:
        self._hear("resumed")

    def sink_gone(self) -> None:
        self._hear("gone")


async def read_all(client: Client) -> bytes:
    client.writer.transport.resume_reading()  # type: ignore[attr-defined]
    return (await client.response()).body


async def test_back_pressure_is_told_and_kept_for_the_next_response() -> None:
    if isinstance(asyncio.get_running_loop(), asyncio.SelectorEventLoop) and UNTOLD:
        pytest.xfail("writelines of asyncio's own transport tells of no back-pressure (python/cpython#127655)")
    watcher = Watcher()
    data = b"x" * 8_000_000

    async def line(request: ClientRequest) -> None:
        sink = request.sink
        if len(stand.requests) == 2:
            assert sink.paused
            sink.start(200, [], 0)
            sink.finish()
            return
        sink.watch(watcher)
        sink.start(200, [], None)
        sink.write(data)
        await watcher.changed.wait()
        facts.append((sink.paused, sink.unsent > 0))
        await release.wait()
        watcher.changed.clear()
        await watcher.changed.wait()
        facts.append((sink.paused, False))
        sink.write(data)
        sink.finish()

    release = asyncio.Event()
    facts: list[tuple[bool, bool]] = []
    async with serving(line) as stand, await stand.client() as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(GET + GET)
        await watcher.changed.wait()
        release.set()
        assert await read_all(client) == data * 2
        assert (await client.response()).status == 200
        assert facts == [(True, True), (False, False)]
        assert watcher.heard[:2] == ["paused", "resumed"]
        assert "gone" not in watcher.heard


async def test_no_word_after_finish() -> None:
    watcher = Watcher()

    async def line(request: ClientRequest) -> None:
        request.sink.watch(watcher)
        request.sink.start(200, [], 2)
        request.sink.write(b"ok")
        request.sink.finish()

    async with serving(line) as stand:
        async with await stand.client() as client:
            await client.send(GET)
            assert (await client.response()).body == b"ok"
        await asyncio.sleep(0.02)
        assert watcher.heard == []
        assert not stand.requests[0].sink.gone


async def test_no_watcher_is_needed() -> None:
    async def line(request: ClientRequest) -> None:
        request.sink.watch(None)
        request.sink.start(200, [], None)
        request.sink.write(b"x" * 8_000_000)
        await asyncio.sleep(0.05)

    async with serving(line) as stand, await stand.client() as client:
        await client.send(GET)
        await client.reader.readexactly(4_000_000)
        await client.reader.readexactly(4_000_000)


async def test_sockets_send_at_once_and_are_kept_alive() -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(GET)
        await client.response()
        (connection,) = stand.server._edge.clients
        sock = connection.transport.get_extra_info("socket")  # type: ignore[attr-defined]
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
