"""What all connections of one server share: limits, entrances, budgets, and the sweep over their deadlines."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from math import inf
from threading import Lock
from typing import Final

from headrace.model.ports import EdgeRefusal, Handler
from headrace.model.problem import Problem
from headrace.model.request import Reply, RequestHead
from headrace.model.settings import ServerSettings

Refuse = Callable[[RequestHead | None, Problem], Reply]
"""Puts a problem of the edge into the dialect of the request, as far as its head is known."""

SWEEP_MIN_S: Final = 0.01
SWEEP_MAX_S: Final = 0.25


class Wait(Enum):
    """What a connection's deadline is about."""

    NOTHING = auto()
    """The line is at work: its limits hold, not the edge's."""
    REQUEST = auto()
    """The first byte of a request; then the connection is closed silently."""
    HEAD = auto()
    """The rest of a head; then 408."""
    BODY = auto()
    """The next byte of a body that the line asked for; then 408."""
    LEAVING = auto()
    """The client has sent FIN and no response has begun; then it counts as gone."""
    LINGER = auto()
    """The response is out, the client is still sending; then the connection is closed."""
    FLUSH = auto()
    """The client has to take what is left; without progress the connection is reset."""


class Budget:
    """Bytes of request bodies in the worker: what came from the network or was decoded, and has not been freed.

    Decoding charges it from a thread, so `used` changes under `lock` only.
    """

    __slots__ = ("limit", "lock", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.lock = Lock()

    def has_room(self, size: int) -> bool:
        """Whether `size` more bytes fit."""
        return self.used + size <= self.limit


class Client:
    """A connection as its server sees it.

    It enters `edge.waiting` with its first deadline, and only the sweep takes it out again. Setting and clearing a
    deadline is therefore two assignments, and a sweep costs O(waiting + those that waited since the last one).
    """

    __slots__ = ("deadline", "enrolled", "wait")

    deadline: float
    enrolled: bool
    wait: Wait

    def expire(self, now: float) -> None:
        """The deadline has passed."""
        raise NotImplementedError

    def drain(self) -> None:
        """Close if idle; else after the response under way."""
        raise NotImplementedError

    def reset(self) -> None:
        """Close at once, with RST."""
        raise NotImplementedError


class Edge:
    """One server's shared state. `strict` raises where production aborts: responses of another length than promised."""

    __slots__ = (
        "_emptied",
        "bodies",
        "clients",
        "draining",
        "handler",
        "loop",
        "refuse",
        "refused",
        "settings",
        "strict",
        "waiting",
    )

    def __init__(
        self,
        settings: ServerSettings,
        handler: Handler,
        refuse: Refuse,
        refused: EdgeRefusal,
        loop: asyncio.AbstractEventLoop,
        strict: bool,
    ) -> None:
        self.settings = settings
        self.handler = handler
        self.refuse = refuse
        self.refused = refused
        self.loop = loop
        self.strict = strict
        self.bodies = Budget(settings.bodies)
        self.draining = False
        self.clients: set[Client] = set()
        self.waiting: set[Client] = set()
        self._emptied: asyncio.Future[None] | None = None

    @property
    def sweep_s(self) -> float:
        """How often deadlines are looked at: an eighth of the smallest limit, so none is exceeded by more than that."""
        limits = self.settings
        smallest = min(limits.head_timeout, limits.body_timeout, limits.idle_timeout)
        return min(max(smallest / 8, SWEEP_MIN_S), SWEEP_MAX_S)

    def sweep(self, now: float) -> None:
        """Tell the clients whose deadline has passed."""
        for client in tuple(self.waiting):
            if client.deadline == inf:
                client.enrolled = False
                self.waiting.discard(client)
            elif client.deadline <= now:
                client.expire(now)

    def forget(self, client: Client) -> None:
        """The connection is closed."""
        self.clients.discard(client)
        self.waiting.discard(client)
        if self._emptied is not None and not self.clients and not self._emptied.done():
            self._emptied.set_result(None)

    async def emptied(self) -> None:
        """Wait until no connection is open."""
        while self.clients:
            if self._emptied is None or self._emptied.done():
                self._emptied = self.loop.create_future()
            await asyncio.shield(self._emptied)
