"""The data port: accepts clients, counts them, sweeps their deadlines, and drains.

`listen` binds the addresses of the settings, or takes sockets that are bound already (a supervisor's: they stay open
there, so what waits in their queues is not lost). `drain` stops accepting, closes idle connections and lets responses
end; `closed` waits for the last connection; `abort` resets those that are left.

When descriptors run out, uvloop takes and closes the waiting connections with a spare one, and asyncio stops accepting
for a second: neither spins.
"""

import asyncio
import errno
import os
import socket
import ssl
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from headrace.listener.edge import Edge, Refuse
from headrace.listener.http1 import Connection
from headrace.listener.tls import accept
from headrace.model.ports import EdgeRefusal, Handler
from headrace.model.settings import Address, ServerSettings

BACKLOG: Final = 4096
"""The kernel takes the smaller of this and net.core.somaxconn (4096)."""

SOCKET_MODE: Final = 0o660
"""Of a Unix socket's file, whatever the umask: a front proxy gets in by group."""

KEEP_FILE: Final[dict[str, Any]] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
"""A Unix socket's file belongs to all slots; from 3.13 on a server would remove it when it closes."""


class Server:
    """Serves HTTP/1.1 to clients; every request with a sound head goes to `handler`.

    `refuse` makes the reply to a request that the edge refuses, `refused` counts it. `strict`: see `Edge`. Must be made
    within a running loop.
    """

    def __init__(
        self,
        settings: ServerSettings,
        handler: Handler,
        refuse: Refuse,
        refused: EdgeRefusal,
        *,
        strict: bool = False,
    ) -> None:
        self._edge = Edge(settings, handler, refuse, refused, asyncio.get_running_loop(), strict)
        self._servers: list[asyncio.AbstractServer] = []
        self._sockets: list[socket.socket] = []
        self._timer: asyncio.TimerHandle | None = None

    @property
    def open(self) -> int:
        """Connections that are open now."""
        return len(self._edge.clients)

    @property
    def bodies(self) -> int:
        """Bytes of request bodies that are held now."""
        return self._edge.bodies.used

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where it listens, with the ports that the kernel chose."""
        return tuple(map(_address, self._sockets))

    async def listen(self, sockets: Sequence[socket.socket] | None = None, tls: ssl.SSLContext | None = None) -> None:
        """Accept clients on `sockets`, or on the settings' addresses. Raises OSError where one cannot be bound.

        With `tls` every TCP address speaks it; a Unix socket is plain, for what comes from the same machine only.
        """
        loop = self._edge.loop
        self._sockets += sockets if sockets is not None else bind_all(self._edge.settings.listen)
        for sock in self._sockets:
            sock.setblocking(False)
            if sock.family == socket.AF_UNIX:
                server: asyncio.AbstractServer = await loop.create_unix_server(
                    self._connection, sock=sock, backlog=BACKLOG, **KEEP_FILE
                )
            else:
                # Accepted sockets inherit both, so they cost nothing per connection (Linux, measured).
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                if tls is None:
                    server = await loop.create_server(self._connection, sock=sock, backlog=BACKLOG)
                else:  # a handshake may take as long as a head
                    limit = self._edge.settings.head_timeout
                    server = await accept(loop, self._connection, sock, BACKLOG, tls, limit)
            self._servers.append(server)
        self._sweep()

    def drain(self) -> None:
        """Stop accepting, close idle connections, and each other one after its response."""
        self._edge.draining = True
        for server in self._servers:
            server.close()
        for client in tuple(self._edge.clients):
            client.drain()

    async def closed(self) -> None:
        """Wait until the last connection is closed; after `drain`."""
        await self._edge.emptied()
        if self._timer is not None:
            self._timer.cancel()

    def abort(self) -> None:
        """Reset every connection that is still open."""
        for client in tuple(self._edge.clients):
            client.reset()

    def _connection(self) -> Connection:
        return Connection(self._edge)

    def _sweep(self) -> None:
        """The one timer of all connections."""
        self._edge.sweep(time.monotonic())
        self._timer = self._edge.loop.call_later(self._edge.sweep_s, self._sweep)


def bind_all(addresses: Sequence[Address]) -> list[socket.socket]:
    """A bound socket for each address, or none at all. Raises OSError."""
    bound: list[socket.socket] = []
    try:
        for address in addresses:
            bound.append(bind(address))
    except OSError:
        for sock in bound:
            sock.close()
        raise
    return bound


def bind(address: Address) -> socket.socket:
    """A listening address as a bound socket; the file of a dead server's Unix socket is replaced. Raises OSError."""
    if address.path:
        return _bind_unix(address.path)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address.host, address.port))
    except OSError:
        sock.close()
        raise
    return sock


def _bind_unix(path: str) -> socket.socket:
    """A Unix socket at `path` for owner and group; it replaces one that nobody listens on any more."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if Path(path).is_socket():
            sock.setblocking(False)  # a full queue is an answer too
            if sock.connect_ex(path) != errno.ECONNREFUSED:
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), path)
            Path(path).unlink()
        sock.bind(path)
        Path(path).chmod(SOCKET_MODE)  # before `listen`: until then nobody can connect
    except OSError:
        sock.close()
        raise
    return sock


def _address(sock: socket.socket) -> Address:
    """Where a bound socket listens."""
    name = sock.getsockname()
    return Address(path=name) if sock.family == socket.AF_UNIX else Address(host=name[0], port=name[1])
