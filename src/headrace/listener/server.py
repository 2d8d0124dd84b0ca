"""The data port: accepts clients, counts them, sweeps their deadlines, and drains.

`listen` binds the addresses of the settings, or takes sockets that are bound already (a supervisor's: they stay open
there, so what waits in their queues is not lost). `stop_accepting` leaves the rest to a successor on the same sockets;
`drain` also closes idle connections and lets responses end; `closed` waits for the last connection; `abort` resets
those that are left.

When descriptors run out, uvloop takes and closes the waiting connections with a spare one, and asyncio stops accepting
for a second: neither spins.
"""

import asyncio
import socket
import ssl
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from headrace.listener.binding import BACKLOG, address_of, bind_all
from headrace.listener.edge import Edge, Refuse
from headrace.listener.http1 import Connection
from headrace.listener.tls import accept
from headrace.model.ports import EdgeRefusal, Handler
from headrace.model.settings import Address, ServerSettings

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
        return tuple(map(address_of, self._sockets))

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

    def stop_accepting(self) -> None:
        """Accept no connection any more, and close each one after its response; idle ones may still ask once."""
        self._edge.draining = True
        for server in self._servers:
            server.close()
        self._servers.clear()

    def wind_down(self) -> None:
        """Close idle connections, and each other one after its response; new ones are accepted, and may ask once."""
        self._edge.draining = True
        for client in tuple(self._edge.clients):
            client.drain()

    def drain(self) -> None:
        """Stop accepting, close idle connections, and each other one after its response."""
        self.stop_accepting()
        self.wind_down()

    async def emptied(self) -> None:
        """Wait until no connection is open."""
        await self._edge.emptied()

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
