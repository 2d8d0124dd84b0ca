"""What stages expect of each other: small interfaces that `exchange` and `worker` fill in."""

from collections.abc import Callable
from typing import Protocol

from headrace.model.headers import Headers
from headrace.model.problem import Problem
from headrace.model.request import ReplyHead, RequestHead
from headrace.model.wire import BodyEnd


class BodyReceiver(Protocol):
    """Takes an upstream's body as it comes, pushed from the connection's `data_received`."""

    def body(self, data: bytes) -> None:
        """Some bytes of the decoded body; never empty."""

    def body_end(self, end: BodyEnd) -> None:
        """The body is over. Called exactly once, and nothing after it."""


TakeFrame = Callable[[bytes], bool]
"""Given bytes of the body's framing that begin where a chunk does; whether they were taken. They may be taken only if
they are one whole chunk in the very form of `http.chunk.FRAME`. Of those that were not, `BodyReceiver.body` gets the
data."""


class Attempt(Protocol):
    """One upstream request under way: its answer, and the hold on its connection."""

    async def reply(self) -> ReplyHead | Problem:
        """The reply's final head (1xx are passed over), or why there is none. Awaited once."""

    def whole(self) -> bytes | None:
        """The body, where all of it is here already; then there is nothing to attach to."""

    def attach(self, receiver: BodyReceiver, frames: "TakeFrame | None" = None) -> None:
        """Push what came already to `receiver`, in this call, then all that follows as it comes.

        A read that begins with a chunk is offered to `frames` first.
        """

    def fail(self, problem: Problem) -> None:
        """End the wait for the head with `problem` and close the connection. Nothing happens after the head."""

    def pause(self) -> None:
        """Stop reading the body: the client does not keep up."""

    def resume(self) -> None:
        """Read on."""

    def close(self) -> None:
        """Let the connection go: back to the pool if the body came whole and clean, else closed. May be called
        twice."""

    @property
    def uploaded_at(self) -> float | None:
        """When the whole request had been handed to the kernel (monotonic seconds); None before."""


class Sink(Protocol):
    """Writes one response to one client, keeps back-pressure, and hashes what it is given."""

    @property
    def started(self) -> bool:
        """Whether a head has been written."""

    @property
    def gone(self) -> bool:
        """Whether the client has left: nothing more can be delivered."""

    @property
    def paused(self) -> bool:
        """Whether the client is behind: its transport's buffer is over the high-water mark."""

    @property
    def unsent(self) -> int:
        """Bytes that the client's transport still holds."""

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """Write the head. `length` None: chunked (HTTP/1.1) or close-delimited (HTTP/1.0)."""

    def write(self, data: bytes) -> None:
        """Relayed bytes: hashed, framed and handed to the transport in this call."""

    @property
    def frame_writer(self) -> Callable[[bytes], None] | None:
        """Writes relayed bytes that are framed already as `write` would (`http.chunk.FRAME`), until anything else is
        written or the sink is told of any end; None where the body is not chunked, has not begun or is over."""

    def passed(self, data: bytes) -> None:
        """What `frame_writer` was given, without frames; before anything else is written or the hash is asked for."""

    def insert(self, data: bytes) -> None:
        """Bytes of the gateway's own: not hashed."""

    def finish(self) -> None:
        """End the body as the framing says; the connection may serve the next request."""

    def abort(self) -> None:
        """End it visibly: RST, without the framing's end."""

    def hash_out(self) -> str:
        """SHA-256 (hex) of all that `write` was given."""

    def watch(self, watcher: "SinkWatcher | None") -> None:
        """Who hears of back-pressure and of the client's leaving."""


class SinkWatcher(Protocol):
    """Hears what becomes of a client."""

    def sink_paused(self) -> None:
        """The client is behind."""

    def sink_resumed(self) -> None:
        """The client caught up."""

    def sink_gone(self) -> None:
        """The client left. Called at most once, never after `finish` was called and drained."""


class ClientRequest(Protocol):
    """One request on a client's connection, as the listener hands it to the line."""

    @property
    def head(self) -> RequestHead:
        """The head, checked."""

    @property
    def sink(self) -> Sink:
        """Where its one response goes."""

    @property
    def began(self) -> float:
        """Monotonic time of its first byte."""

    async def body(self) -> bytes | Problem:
        """The whole body, decoded by its framing; or why it cannot be had (too large, too slow, client gone, …)."""

    def charge(self, extra: int) -> Problem | None:
        """Count `extra` more bytes as its body's until `free_body`, as decoding makes them; negative where some are
        gone. Or why they cannot be had. From any thread."""

    def free_body(self) -> None:
        """Drop the body: it is not needed again."""


Handler = Callable[[ClientRequest], None]
"""The line's entrance: called when a head has been read and checked. It must arrange for exactly one response."""

EdgeRefusal = Callable[[RequestHead | None, Problem], None]
"""Called for each request that the edge refuses by itself (bad framing, too large a head): for counting only."""


class Ticker(Protocol):
    """Something with limits in time."""

    def tick(self, now: float) -> float | None:
        """Act on what is due at `now` (monotonic seconds); the next time to look, or None to be forgotten."""
