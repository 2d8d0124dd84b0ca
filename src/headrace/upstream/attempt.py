"""One upstream request: a connection, the request on it, and the wait for a reply's head or for why there is none.

    begin ──idle connection──────────────▶ sent ──head──▶ attached ──▶ closed
      └──none──▶ opening ──▶ (connected) ──┘ │
                     │                       └─lost─▶ replay (once, on a new connection) or a Problem
                     └─failed─▶ a Problem

Nothing here raises for what a network does; failures are the values of `reply`.
"""

import asyncio
from time import monotonic

from headrace.model.channel import Channel
from headrace.model.ports import BodyReceiver, TakeFrame
from headrace.model.problem import Kind, Problem
from headrace.model.request import ReplyHead, UpstreamRequest
from headrace.upstream.connect import unreachable
from headrace.upstream.http1 import Connection
from headrace.upstream.pool import Pool
from headrace.upstream.roles import Loss
from headrace.upstream.target import UnsafeHeadError, head_bytes

UPSTREAM_WAIT_S = 30.0


class Upstream:
    """The stage as the line sees it: makes attempts, and owns the connections between them."""

    def __init__(self, pool: Pool | None = None) -> None:
        self.pool = pool if pool is not None else Pool()

    def attempt(self, channel: Channel, request: UpstreamRequest, wait_s: float = UPSTREAM_WAIT_S) -> "Attempt":
        """An attempt that has not begun: `reply` begins it. `wait_s` bounds the wait for the channel's `connections`.

        `request.headers` are final, the credential among them; Host, Content-Length and connection headers are ours.
        """
        return Attempt(self.pool, channel, request, wait_s)

    async def close(self) -> None:
        """Close idle connections and wait for those in use to be let go."""
        self.pool.close()
        await self.pool.wait_closed()


class Attempt:
    """One request to one channel. Implements `model.ports.Attempt`; the public attributes are facts for the entry.

    Times are monotonic seconds, None until it happened.
    """

    __slots__ = (
        "_answer",
        "_channel",
        "_closed",
        "_connection",
        "_head",
        "_opening",
        "_pool",
        "_request",
        "_wait_s",
        "connected_at",
        "head_at",
        "maybe_executed",
        "replayed",
        "reused",
        "started_at",
        "uploaded_at",
    )

    def __init__(self, pool: Pool, channel: Channel, request: UpstreamRequest, wait_s: float) -> None:
        self._pool = pool
        self._channel = channel
        self._request: UpstreamRequest | None = request
        self._wait_s = wait_s
        self._head = b""
        self._answer: asyncio.Future[ReplyHead | Problem] | None = None
        self._opening: asyncio.Task[Connection | Problem] | None = None
        self._connection: Connection | None = None
        self._closed = False
        self.started_at = monotonic()
        self.connected_at: float | None = None
        self.uploaded_at: float | None = None
        self.head_at: float | None = None
        self.reused = False
        """Whether the (last) connection had served before."""
        self.replayed = False
        """Whether the request went out twice, the first time provably for nothing."""
        self.maybe_executed = False
        """It failed after some of it went out, and nothing proves that the upstream did not act on it."""

    @property
    def uploaded(self) -> bool:
        """Whether the whole request has been handed to the kernel."""
        return self.uploaded_at is not None

    async def reply(self) -> ReplyHead | Problem:
        """The reply's final head, or why there is none. Awaited once; cancelling it closes the attempt.

        Problems: channels_busy (the channel's connections), upstream_unreachable (no connection, or lost before
        the head), upstream_bad_reply (not HTTP), whatever `fail` was given, internal (a request that cannot be sent).
        """
        request = self._request
        assert request is not None and self._answer is None
        try:
            self._head = head_bytes(self._channel.base_url, request)
        except UnsafeHeadError as error:
            return Problem(Kind.INTERNAL, "The request cannot be sent upstream.", detail=str(error))
        answer = self._answer = asyncio.get_running_loop().create_future()
        connection = self._pool.take(self._channel)
        if connection is not None:
            self._send(connection)
        else:
            self._open(fresh=False)
        try:
            return await answer  # type: ignore[no-any-return]  # uvloop types create_future as Any
        except asyncio.CancelledError:
            self.close()
            raise
        finally:
            self._answer = None  # it holds the head: 2.5 KiB that an idle stream does not need

    def whole(self) -> bytes | None:
        """The body, where all of it is here already; then there is nothing to attach to."""
        return self._connection.whole() if self._connection is not None else None

    def attach(self, receiver: BodyReceiver, frames: TakeFrame | None = None) -> None:
        """Push what came already to `receiver`, in this call, then all that follows as it comes; whole chunks go to
        `frames` first."""
        if self._connection is not None:
            self._connection.attach(receiver, frames)

    def fail(self, problem: Problem) -> None:
        """End the wait for the head with `problem` and close the connection. Nothing happens after the head."""
        answer = self._answer
        if answer is None or answer.done():
            return
        self.maybe_executed = self._connection is not None
        answer.set_result(problem)
        self.close()

    def pause(self) -> None:
        """Stop reading the body."""
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        """Read on."""
        if self._connection is not None:
            self._connection.resume()

    def close(self) -> None:
        """Let the connection go: to the pool if the body came whole and clean, else closed. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self._request = None
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release(self._channel.idle)

    # ------------------------------------------------------------------------------------------------------ connecting

    def _open(self, *, fresh: bool) -> None:
        opening = self._pool.open(self._channel, self._wait_s, fresh=fresh)
        self._opening = asyncio.get_running_loop().create_task(opening)
        self._opening.add_done_callback(self._opened)

    def _opened(self, task: "asyncio.Task[Connection | Problem]") -> None:
        self._opening = None
        if task.cancelled():
            self._resolve(unreachable("the connect was given up"))
            return
        result = task.result()
        if isinstance(result, Problem):
            self._resolve(result)
        elif self._closed:
            result.close()
        else:
            self._send(result)

    def _send(self, connection: Connection) -> None:
        request = self._request
        assert request is not None
        self.reused = connection.served > 0
        self.connected_at = monotonic()
        self._connection = connection
        connection.send(self, self._head, request.body, head_only=request.method == "HEAD")

    def _resolve(self, outcome: ReplyHead | Problem) -> None:
        answer = self._answer
        if answer is not None and not answer.done():
            answer.set_result(outcome)

    # -------------------------------------------------------------------------------------- what the connection tells

    def on_reply(self, head: ReplyHead) -> None:
        """The final head has come: the request is not needed again."""
        self.head_at = monotonic()
        self._request = None
        self._head = b""
        self._resolve(head)

    def on_loss(self, loss: Loss) -> None:
        """There will be no head on this connection."""
        self._connection = None
        if loss.untouched and self.reused and not self.replayed:
            self.replayed = True
            self.uploaded_at = None
            self._open(fresh=True)
            return
        self.maybe_executed = not loss.untouched
        self._request = None
        where = f"{self._channel.base_url.authority}: {loss.detail}"
        if loss.malformed:
            self._resolve(
                Problem(Kind.UPSTREAM_BAD_REPLY, "The upstream's reply is not valid HTTP; try again.", detail=where)
            )
        else:
            self._resolve(unreachable(where))
