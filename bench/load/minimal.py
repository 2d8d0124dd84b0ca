"""The floor for Python: a push relay over uvloop and httptools with no authentication, metering, limits or failover.

One `data_received` of the upstream connection parses and writes to the client's transport; nothing else happens per
event. TLS to the upstream runs on aiofastnet's transports, as in Headrace.
"""

import argparse
import asyncio
import gc
import signal
import socket
import ssl
import sys
from collections import deque
from pathlib import Path
from typing import cast

import aiofastnet
import httptools
import uvloop

from bench.load import wire
from bench.load.gateway import Launch, Upstream
from bench.load.protocols import BY_TARGET

_CREDENTIALS = {protocol.credential.lower().encode() for protocol in BY_TARGET.values()}
_DROPPED = frozenset({b"host", b"connection", b"content-length", b"transfer-encoding"} | _CREDENTIALS)
_CREDENTIAL_LINES = {
    target: f"{protocol.credential}: {protocol.secret(wire.UPSTREAM_SECRET)}\r\n".encode()
    for target, protocol in BY_TARGET.items()
}
_READY = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


class Pool:
    """Idle upstream connections, and how to open one."""

    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        self._port = port
        self._context = context
        self.idle: deque[Back] = deque()
        self.opening: set[asyncio.Task[None]] = set()
        self.host_line = b"host: 127.0.0.1:%d\r\n" % port

    def send(self, front: "Front", data: bytes) -> None:
        """Send one request on an idle connection, or on a new one."""
        if self.idle:
            self.idle.pop().send(front, data)
            return
        task = asyncio.get_running_loop().create_task(self._open(front, data))
        self.opening.add(task)
        task.add_done_callback(self.opening.discard)

    async def _open(self, front: "Front", data: bytes) -> None:
        loop = asyncio.get_running_loop()
        if self._context:
            _, back = await aiofastnet.create_connection(
                loop, lambda: Back(self), "127.0.0.1", self._port, ssl=self._context, server_hostname="localhost"
            )
        else:
            _, back = await loop.create_connection(lambda: Back(self), "127.0.0.1", self._port)
        back.send(front, data)


class Front(asyncio.Protocol):
    """A client connection: collects one request at a time."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._parser = httptools.HttpRequestParser(self)
        self._lines: list[bytes] = []
        self._body: list[bytes] = []
        self._url = b""
        self.back: Back | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.back:
            self.back.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() not in _DROPPED:
            self._lines.append(b"%b: %b\r\n" % (name, value))

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        body, method = b"".join(self._body), self._parser.get_method()
        if self._url == b"/readyz":
            self.transport.write(_READY)
        else:
            lines = self._pool.host_line + _CREDENTIAL_LINES.get(self._url, b"")
            start = b"%b %b HTTP/1.1\r\n%bcontent-length: %d\r\n" % (method, self._url, lines, len(body))
            self._pool.send(self, b"".join((start, *self._lines, b"\r\n", body)))
        self._url = b""
        self._lines.clear()
        self._body.clear()


class Back(asyncio.Protocol):
    """An upstream connection: pushes one response at a time into its front."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._front: Front | None = None
        self._out: asyncio.Transport | None = None
        self._chunked = False
        self._lines: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._front:
            self._front.transport.abort()
        elif self in self._pool.idle:
            self._pool.idle.remove(self)

    def send(self, front: Front, data: bytes) -> None:
        """Start an exchange."""
        self._front, front.back = front, self
        self._out = front.transport
        self._parser = httptools.HttpResponseParser(self)
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self._chunked |= name == b"transfer-encoding"
        self._lines.append(b"%b: %b\r\n" % (name, value))

    def on_headers_complete(self) -> None:
        assert self._out
        status = b"HTTP/1.1 %d OK\r\n" % self._parser.get_status_code()
        self._out.write(b"".join((status, *self._lines, b"\r\n")))

    def on_body(self, body: bytes) -> None:
        assert self._out
        self._out.write(b"%x\r\n%b\r\n" % (len(body), body) if self._chunked else body)

    def on_message_complete(self) -> None:
        assert self._out
        assert self._front
        if self._chunked:
            self._out.write(wire.LAST_FRAME)
        self._front.back = self._front = self._out = None
        self._chunked = False
        self._lines.clear()
        self._pool.idle.append(self)


def launch(upstream: Upstream, _directory: Path, port: int) -> Launch:
    """How the runner starts this relay."""
    ca = ["--ca", str(upstream.ca)] if upstream.ca else []
    arguments = ["--port", str(port), "--upstream", str(upstream.port), *ca]
    return Launch([sys.executable, "-m", "bench.load.minimal", *arguments])


async def serve(port: int, upstream_port: int, ca: Path | None) -> None:
    """Relay until SIGTERM."""
    loop = asyncio.get_running_loop()
    pool = Pool(upstream_port, ssl.create_default_context(cafile=str(ca)) if ca else None)
    server = await loop.create_server(lambda: Front(pool), "127.0.0.1", port, backlog=socket.SOMAXCONN)
    gc.freeze()
    gc.disable()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    server.close()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", type=int, required=True)
    parser.add_argument("--ca", type=Path)
    options = parser.parse_args()
    uvloop.run(serve(options.port, options.upstream, options.ca))


if __name__ == "__main__":
    main()
