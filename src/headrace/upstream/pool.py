"""Keeps connections alive between requests, by origin: last in, first out, constant time, and never a dead one twice.

A channel may bound its connections; then a request that finds all in use waits its turn, in order of arrival.
"""

import asyncio
import socket
from time import monotonic

from headrace.model.channel import Channel, Proxy
from headrace.model.problem import Kind, Problem
from headrace.upstream.connect import Connector, Tls, unreachable
from headrace.upstream.gate import Gate
from headrace.upstream.http1 import Connection
from headrace.upstream.roles import Origin

SWEEP_S = 1.0
"""How often idle connections are looked over for age, while there are any."""


class Pool:
    """All connections of a worker to its upstreams. Belongs to one loop."""

    def __init__(self, tls: Tls = Tls.AIOFASTNET) -> None:
        self._connector = Connector(tls)
        # A dict keeps order and removes from anywhere in constant time: oldest first.
        self._idle: dict[tuple[str, str, int, str, Proxy | None], dict[Connection, None]] = {}
        self._gates: dict[str, Gate] = {}
        self._open = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False
        self._all_lost: asyncio.Future[None] | None = None

    @property
    def open_connections(self) -> int:
        """Connections that stand, in use or idle."""
        return self._open

    @property
    def idle_connections(self) -> int:
        """Connections that wait for a request."""
        return sum(map(len, self._idle.values()))

    def take(self, channel: Channel) -> Connection | None:
        """An idle connection that the kernel holds for open, or None: then `open` one. Never waits."""
        base = channel.base_url
        idle = self._idle.get((base.scheme, base.host, base.port, channel.ca, channel.proxy))
        if not idle:
            return None
        gate = None
        if channel.connections:
            gate = self._gate(channel)
            if not gate.try_enter():
                return None
        connection = self._pop_live(idle)
        if connection is not None:
            connection.gate = gate
        elif gate is not None:
            gate.leave()
        return connection

    async def open(self, channel: Channel, wait_s: float, *, fresh: bool = False) -> Connection | Problem:
        """A connection for `channel`: a new one, or (unless `fresh`) one that came free while this waited.

        Waits up to `wait_s` for the channel's share (then channels_busy) and up to `channel.connect` for the connection
        (then upstream_unreachable).
        """
        if self._closed:
            return unreachable("the pool is closed")
        gate = self._gate(channel) if channel.connections else None
        if gate is not None and not await gate.enter(wait_s):
            return Problem(
                Kind.CHANNELS_BUSY,
                "Every connection of the channel is in use; try again later.",
                detail=f"{channel.connections} connections in use for {wait_s:g} s",
            )
        connection: Connection | Problem | None = None
        try:
            connection = await self._obtain(channel, fresh)
        finally:
            if isinstance(connection, Connection):
                connection.gate = gate
            elif gate is not None:
                gate.leave()
        return connection

    async def _obtain(self, channel: Channel, fresh: bool) -> Connection | Problem:
        base = channel.base_url
        origin = Origin(base.scheme, base.host, base.port, channel.ca, channel.proxy)
        if not fresh and (idle := self._idle.get(origin)) and (connection := self._pop_live(idle)):
            return connection

        def make(sock: socket.socket) -> Connection:
            return Connection(self, origin, sock)

        result = await self._connector.connect(origin, channel.connect, make)
        if isinstance(result, Connection) and not result.probe():
            result.close()
            return unreachable(f"{base.host}:{base.port}: closed as soon as it was open")
        return result

    # --------------------------------------------------------------------------------------- what connections tell us

    def made(self, connection: Connection) -> None:
        """A connection stands."""
        self._open += 1

    def give_back(self, connection: Connection, idle_s: float) -> None:
        """A clean connection is free: it may serve again for `idle_s` seconds."""
        self._leave(connection)
        if self._closed:
            connection.close()
            return
        connection.idle_until = monotonic() + idle_s
        origin = connection.key
        idle = self._idle.get(origin)
        if idle is None:
            idle = self._idle[origin] = {}
        idle[connection] = None
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    def lost(self, connection: Connection) -> None:
        """A connection is closed, by whichever side."""
        self._open -= 1
        idle = self._idle.get(connection.key)
        if idle is not None:
            idle.pop(connection, None)
        self._leave(connection)
        if self._all_lost is not None and not self._open and not self._all_lost.done():
            self._all_lost.set_result(None)

    def _leave(self, connection: Connection) -> None:
        gate, connection.gate = connection.gate, None
        if gate is not None:
            gate.leave()

    # ------------------------------------------------------------------------------------------------------------- end

    def _sweep(self) -> None:
        """Close what has been idle for too long; forget origins and gates without use."""
        self._sweeper = None
        now = monotonic()
        for origin, idle in list(self._idle.items()):
            for connection in [each for each in idle if each.idle_until <= now]:
                del idle[connection]
                connection.close()
            if not idle:
                del self._idle[origin]
        if self._idle and not self._closed:
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    def close(self) -> None:
        """Close idle connections and take none back. Those in use live until their holders let go."""
        self._closed = True
        self._connector.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for idle in self._idle.values():
            for connection in idle:
                connection.close()
        self._idle.clear()

    async def wait_closed(self) -> None:
        """Wait until no connection stands any more. After `close`."""
        if self._open:
            self._all_lost = asyncio.get_running_loop().create_future()
            await self._all_lost

    # -------------------------------------------------------------------------------------------------------- internal

    def _pop_live(self, idle: dict[Connection, None]) -> Connection | None:
        now = monotonic()
        while idle:
            connection, _ = idle.popitem()
            if connection.idle_until > now and connection.probe():
                return connection
            connection.close()
        return None

    def _gate(self, channel: Channel) -> Gate:
        gate = self._gates.get(channel.name)
        if gate is None:
            gate = self._gates[channel.name] = Gate(channel.connections)
        gate.limit = channel.connections
        return gate
