"""One request on a client's connection: its head, its body as it comes, and its sink.

The body is asked for by the line (`body`), after key and budget. What came before that is kept, at most AHEAD bytes,
then the connection stops reading. The asking sends `100 Continue` where the client waits for it.
"""

import asyncio
from typing import Final, Protocol

from headrace.http.head import CONTINUE, Framing
from headrace.listener.edge import Edge
from headrace.listener.sink import ClientSink
from headrace.model.problem import Kind, Problem
from headrace.model.request import RequestHead

AHEAD: Final = 256 * 1024
"""Bytes of a body that are read before the line asks for it."""
SMALL: Final = 1024
"""Parts of a body below this are put together as they come: an object each would cost many times what it holds."""
TOGETHER: Final = 64 * 1024
"""Bytes of small parts that are put together at most."""

GONE: Final = Problem(
    Kind.BAD_REQUEST, "The connection ended before the whole body came; send the request again.", detail="client gone"
)


class Feeder(Protocol):
    """The connection as its request sees it."""

    edge: Edge

    @property
    def transport(self) -> asyncio.WriteTransport:
        """What it writes to."""

    def body_asked(self) -> None:
        """Read on, and watch the time between bytes."""

    def body_over(self) -> None:
        """The wait is over."""

    def body_ahead(self) -> None:
        """Enough has come for a body that nobody has asked for."""


class ServerRequest:
    """`model.ports.ClientRequest`."""

    __slots__ = (
        "_charged",
        "_feeder",
        "_parts",
        "_problem",
        "_small",
        "_waiter",
        "began",
        "complete",
        "framing",
        "head",
        "keep_alive",
        "sink",
        "size",
    )

    head: RequestHead
    sink: ClientSink
    began: float
    size: int
    """Bytes of the body that have come, without its framing."""

    def __init__(
        self, feeder: Feeder, head: RequestHead, framing: Framing, sink: ClientSink, began: float, keep_alive: bool
    ) -> None:
        self.head = head
        self.sink = sink
        self.began = began
        self.framing = framing
        self.keep_alive = keep_alive
        self.complete = framing.length == 0
        self._feeder: Feeder | None = feeder
        self._parts: list[bytes] = []
        self._small: bytearray | None = None
        self.size = 0
        self._charged = 0
        self._problem: Problem | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def body(self) -> bytes | Problem:
        """The whole body without its framing, or why it cannot be had. To be awaited once."""
        feeder = self._feeder
        if feeder is None:
            return GONE
        self._problem = self._problem or self._too_much(feeder)
        if not self.complete and self._problem is None:
            await self._receive(feeder)
        if self._problem is not None:
            self.free_body()
            return self._problem
        self._put_together()
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def free_body(self) -> None:
        """Give its bytes back to the budget, and drop what is still here."""
        self._parts = []
        self._small = None
        if self._charged and self._feeder is not None:
            bodies = self._feeder.edge.bodies
            with bodies.lock:
                bodies.used -= self._charged
                self._charged = 0

    def charge(self, extra: int) -> Problem | None:
        """Count `extra` more bytes as its body's; nothing once it has been freed, so that none are left behind."""
        feeder = self._feeder
        if feeder is None:
            return GONE
        bodies = feeder.edge.bodies
        with bodies.lock:
            if not self._charged:
                return GONE
            if not bodies.has_room(extra):
                return OVERLOADED
            bodies.used += extra
            self._charged += extra
        return None

    def _too_much(self, feeder: Feeder) -> Problem | None:
        """Why a body of the announced length is not even begun to be read."""
        length = self.framing.length
        if length is None:
            return None
        if length > feeder.edge.settings.max_body:
            return _too_large(feeder.edge.settings.max_body)
        return None if feeder.edge.bodies.has_room(length - self.size) else OVERLOADED

    async def _receive(self, feeder: Feeder) -> None:
        """Wait until the body is complete, or a problem is known."""
        if self.framing.expects_continue and not self.size and not self.sink.started:
            feeder.transport.write(CONTINUE)
        self._waiter = feeder.edge.loop.create_future()
        feeder.body_asked()
        try:
            await self._waiter
        finally:
            self._waiter = None
            feeder.body_over()

    def receive(self, data: bytes) -> None:
        """Some of the body, from the parser."""
        size = len(data)
        self.size += size
        feeder = self._feeder
        if feeder is None or self._problem is not None:
            return
        if self.size > feeder.edge.settings.max_body:
            self.fail(_too_large(feeder.edge.settings.max_body))
        elif not feeder.edge.bodies.has_room(size):
            self.fail(OVERLOADED)
        else:
            bodies = feeder.edge.bodies
            with bodies.lock:
                bodies.used += size
            self._charged += size
            self._keep(data, size)
            if self._waiter is None and self.size > AHEAD:
                feeder.body_ahead()

    def _keep(self, data: bytes, size: int) -> None:
        """Large parts are kept as they are: the whole body is one copy of them."""
        if size >= SMALL or not self._parts:
            self._put_together()
            self._parts.append(data)
            return
        if self._small is None:
            self._small = bytearray()
        self._small += data
        if len(self._small) >= TOGETHER:
            self._put_together()

    def _put_together(self) -> None:
        """The small parts become one."""
        if self._small is not None:
            self._parts.append(bytes(self._small))
            self._small = None

    def received(self) -> None:
        """The body is complete, says the parser."""
        self.complete = True
        self._wake()

    def fail(self, problem: Problem) -> None:
        """The body will not come; the first reason stays."""
        if self._problem is None and not self.complete:
            self._problem = problem
            self.free_body()
            self._wake()

    def release(self) -> None:
        """The exchange is over, or the client has gone: let go of the connection and of the body."""
        self.fail(GONE)
        self.free_body()
        self._feeder = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _too_large(limit: int) -> Problem:
    return Problem(
        Kind.PAYLOAD_TOO_LARGE, f"The body is larger than the {limit} bytes that this server takes; send less."
    )


OVERLOADED: Final = Problem(
    Kind.OVERLOADED, "The server holds as many request bodies as it may; try again shortly.", retry_after_s=1.0
)
