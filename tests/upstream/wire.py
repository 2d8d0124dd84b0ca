"""Small upstreams for these tests: scripted servers on loopback sockets, and what attempts are driven with."""

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import uvloop

from headrace.model.channel import BaseUrl, Channel
from headrace.model.problem import Problem
from headrace.model.request import ReplyHead, UpstreamRequest
from headrace.model.wire import BodyEnd
from headrace.upstream.attempt import Attempt, Upstream
from headrace.upstream.connect import Tls
from headrace.upstream.pool import Pool

Serve = Callable[["Peer"], Awaitable[None]]


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a test on the loop that workers use."""
    uvloop.run(main)


class Peer:
    """The upstream's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number

    async def request(self) -> tuple[bytes, bytes] | None:
        """The next request's head and body, or None at the end."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            return head, await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    def reset(self) -> None:
        """RST in place of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Server:
    """A listening upstream with what it saw."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connections = 0
        self.open = 0
        self.requests: list[tuple[bytes, bytes]] = []


@asynccontextmanager
async def serving(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server that runs `serve` for each connection."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        seen.connections += 1
        seen.open += 1
        try:
            await serve(Peer(reader, writer, seen.connections))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            seen.open -= 1
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    seen = Server(server.sockets[0].getsockname()[1])
    try:
        yield seen
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.005)


def answering(*replies: bytes, one_byte: bool = False) -> Serve:
    """For each connection: request, first reply, request, second reply, …; the last one again for all others."""

    async def serve(peer: Peer) -> None:
        number = 0
        while await peer.request() is not None:
            data = replies[min(number, len(replies) - 1)]
            number += 1
            if not one_byte:
                peer.write(data)
                continue
            for offset in range(len(data)):
                peer.write(data[offset : offset + 1])
                await asyncio.sleep(0)

    return serve


@asynccontextmanager
async def upstream(tls: Tls = Tls.AIOFASTNET) -> AsyncIterator[Upstream]:
    """The stage under test; every connection must be gone at its end."""
    stage = Upstream(Pool(tls))
    try:
        yield stage
    finally:
        await asyncio.wait_for(stage.close(), 5)
        assert stage.pool.open_connections == 0
        await asyncio.sleep(0)


def channel(port: int, **changes: Any) -> Channel:
    """A channel to a server on loopback."""
    base = BaseUrl(changes.pop("scheme", "http"), changes.pop("host", "127.0.0.1"), port, "/v1")
    return replace(Channel("c", base, frozenset(), ()), **changes)


def post(*body: bytes | memoryview, method: str = "POST") -> UpstreamRequest:
    """A request with a header and `body`."""
    return UpstreamRequest(method, "/chat/completions", "", [(b"authorization", b"Bearer x")], body)


class Collector:
    """A receiver that keeps everything."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ends: list[BodyEnd] = []
        self.over = asyncio.Event()

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)

    def body(self, data: bytes) -> None:
        assert data and not self.ends
        self.pieces.append(data)

    def body_end(self, end: BodyEnd) -> None:
        self.ends.append(end)
        self.over.set()


async def exchange(attempt: Attempt, *, at_once: bool = False) -> tuple[ReplyHead | Problem, bytes, BodyEnd | None]:
    """Drive one attempt to its end: (head or problem, body, end). `at_once`: send before the loop turns."""
    outcome = await (attempt.reply() if at_once else asyncio.wait_for(attempt.reply(), 5))
    if isinstance(outcome, Problem):
        attempt.close()
        return outcome, b"", None
    collector = Collector()
    attempt.attach(collector)
    await asyncio.wait_for(collector.over.wait(), 5)
    attempt.close()
    assert len(collector.ends) == 1
    return outcome, collector.data, collector.ends[0]


async def until(condition: Callable[[], bool], turns: int = 2000) -> None:
    """Let the loop turn until `condition` holds."""
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came true")


def reply(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """A reply with Content-Length."""
    lines = [b"HTTP/1.1 " + status, b"content-length: %d" % len(body), *headers, b"", body]
    return b"\r\n".join(lines)


def chunked(*pieces: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    """A chunked reply."""
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + end


class ThreadServer:
    """An upstream in a thread of its own: what it does happens while the loop under test stands still."""

    def __init__(self, handle: "Callable[[ThreadServer, socket.socket], None]") -> None:
        self._handle = handle
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.counted = 0
        self.connections = 0
        self.close_now = threading.Event()
        self.closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._handle(self, sock)
            self.closed.set()

    def count_request(self, sock: socket.socket) -> bool:
        """Read one whole small request and count it; False at the end of the connection."""
        data = b""
        while not data.endswith(b"\r\n\r\n{}"):
            try:
                piece = sock.recv(65536)
            except ConnectionError:
                return False
            if not piece:
                return False
            data += piece
        self.counted += 1
        return True

    def close_idle(self) -> None:
        """Have the connection closed, and return when it is."""
        self.closed.clear()
        self.close_now.set()
        assert self.closed.wait(5)
        self.close_now.clear()

    def __enter__(self) -> "ThreadServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close_now.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


def reset(sock: socket.socket) -> None:
    """Close with RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
