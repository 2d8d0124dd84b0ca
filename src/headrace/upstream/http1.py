"""The client side of HTTP/1.1 on one connection: sends requests, parses replies, pushes bodies to whoever holds it.

One request at a time. The life of a connection:

    idle ──send──▶ waiting for the head ──head──▶ body ──framed end──▶ over ──release──▶ idle, or closed
                          │                        │                    │
                          └── lost: Loss ──▶ closed └── cut: BodyEnd ──▶ closed   any further byte ──▶ closed

Body bytes go from `data_received` to the receiver in the same call: no queue, task, future or timer. Any byte that no
request asked for closes the connection, so that nothing of one reply can reach another.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol, cast

from httptools import HttpParserCallbackError, HttpParserError, HttpResponseParser

from headrace.http.chunk import CRLF
from headrace.model.headers import Headers, lower_case
from headrace.model.ports import BodyReceiver, TakeFrame
from headrace.model.request import ReplyHead
from headrace.model.wire import BodyEnd
from headrace.upstream.framing import (
    MAX_FIELDS,
    MAX_HEAD,
    Framing,
    MalformedError,
    ends_clean,
    framing_of,
    take_frames,
    wire_size,
)
from headrace.upstream.gate import Gate
from headrace.upstream.kernel import sample
from headrace.upstream.roles import Holder, Loss, Origin

ONE_WRITE = 64 * 1024
"""A request up to this size is joined and leaves in one write: one system call, one packet where it fits."""
SLICE = 256 * 1024
"""A larger one goes up in slices of this size, each when the kernel has taken the one before."""
EARLY_LIMIT = 256 * 1024
"""Bytes of a reply kept before `attach`; past it reading pauses until then."""

TURN = 128 * 1024
"""A read of this size or more is its turn's last: uvloop would take 8 MB in one, and nobody else would be served."""


class Keeper(Protocol):
    """Where connections come from and go to: the pool."""

    def made(self, connection: "Connection") -> None:
        """A connection stands."""

    def give_back(self, connection: "Connection", idle_s: float) -> None:
        """A clean connection is free: it may serve again for `idle_s` seconds."""

    def lost(self, connection: "Connection") -> None:
        """A connection is closed. Called exactly once for each that was made."""


def _ignore(_: object) -> None:
    """Where body bytes go that nobody waits for any more."""


class Connection(asyncio.Protocol):
    """One connection to one origin. Made by the pool, lent to an attempt, given back or closed by `release`."""

    __slots__ = (
        "_acked", "_between_chunks", "_complete", "_early", "_end", "_ended", "_expecting", "_fed", "_feed", "_frames",
        "_framing", "_head_only", "_headers", "_holder", "_keeper", "_lane", "_parser", "_push", "_reading_paused",
        "_receiver", "_reusable", "_sock", "_transport", "_turn", "_unsent", "_writing_paused", "gate", "idle_until",
        "key", "served",
    )  # fmt: skip

    def __init__(self, keeper: Keeper, key: Origin, sock: socket.socket) -> None:
        self.key = key
        """What the pool sorts it under."""
        self.gate: Gate | None = None
        """Whose share this connection uses."""
        self.idle_until = 0.0
        self.served = 0
        """Requests that got a whole reply on it."""
        self._keeper: Keeper | None = keeper
        self._sock: socket.socket | None = sock
        self._transport: asyncio.Transport | None = None
        self._holder: Holder | None = None
        self._parser: HttpResponseParser | None = None
        self._feed: Callable[[bytes], None] | None = None
        self._unsent: list[memoryview] = []
        self._writing_paused = False
        self._reading_paused = False
        self._acked = -1
        self._expecting = False
        self._reset()

    def _reset(self) -> None:
        self._headers: Headers | None = []
        self._fed = 0
        self._framing = Framing.NONE
        self._head_only = False
        self._reusable = True
        self._complete = False
        self._ended: BodyEnd | None = None
        self._turn = True
        self._early: list[bytes] | None = None
        self._receiver: BodyReceiver | None = None
        self._push: Callable[[bytes], object] = _ignore
        self._frames: TakeFrame | None = None
        self._lane: TakeFrame | None = None  # `_frames`, while the next byte begins a chunk
        self._between_chunks = False
        self._end: Callable[[BodyEnd], None] | None = None

    # ------------------------------------------------------------------------------------------------- for the holder

    @property
    def closed(self) -> bool:
        """Whether it can carry no request any more."""
        return self._transport is None or self._transport.is_closing()

    def probe(self) -> bool:
        """Whether the kernel still holds it for open; remembers what is acknowledged so far. Before each `send`."""
        if self._sock is None or self.closed:
            return False
        established, self._acked = sample(self._sock)
        return established

    def send(self, holder: Holder, head: bytes, body: Sequence[bytes | memoryview], *, head_only: bool = False) -> None:
        """Send one request; its reply goes to `holder`. `head_only`: a HEAD request, whose reply has no body."""
        transport = self._transport
        assert transport is not None and self._holder is None
        if self.served:
            self._reset()
        if self._parser is None:
            self._parser = HttpResponseParser(self)
            self._feed = self._parser.feed_data
        self._holder = holder
        self._head_only = head_only
        self._expecting = True
        if len(head) + sum(map(len, body)) <= ONE_WRITE:
            transport.write(b"".join((head, *body)))
        else:
            self._unsent = [memoryview(part).cast("B") for part in reversed(body) if len(part)]
            transport.write(head)
        self._upload()

    def whole(self) -> bytes | None:
        """The body, where all of it came before anybody was attached; else None. Then nothing more is pushed."""
        if self._early is None or self._ended is not BodyEnd.FRAMED:
            return None
        body = b"".join(self._early)
        self._forget_receiver()
        return body

    def attach(self, receiver: BodyReceiver, frames: TakeFrame | None = None) -> None:
        """Push what came already, and its end if it came, in this call; then all that follows as it comes.

        `frames` is offered each whole chunk that is framed as we would: the parser need not see it.
        """
        early, self._early = self._early, None
        self._receiver = receiver
        self._end = receiver.body_end
        self._push = push = receiver.body
        self._frames = frames
        self._lane = None
        self._turn = False
        for data in early or ():
            if self._receiver is not receiver:
                return
            push(data)
        if self._fed > EARLY_LIMIT:
            self.resume()
        if self._ended is not None and self._receiver is receiver:
            self._deliver_end(self._ended)

    def pause(self) -> None:
        """Stop reading."""
        if self._transport is not None and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._reading_paused:
            self._reading_paused = False
            self._read_on()

    def _read_on(self) -> None:
        if self._transport is not None and not self._reading_paused:
            self._transport.resume_reading()

    def release(self, idle_s: float) -> None:
        """Give it back if the reply came whole and clean and the request went up whole, else close it."""
        holder, self._holder = self._holder, None
        self._forget_receiver()
        keeper = self._keeper
        if keeper is None:
            return
        if (
            self._complete
            and self._reusable
            and not self._expecting
            and not self.closed
            and not self._unsent
            and holder is not None
            and holder.uploaded_at is not None
        ):
            self.resume()
            self.served += 1
            keeper.give_back(self, idle_s)
        else:
            self.close()

    def close(self) -> None:
        """Close it now, whatever is under way: FIN, or RST where bytes are unread."""
        self._expecting = False
        self._unsent.clear()
        if self._transport is not None:
            self._transport.abort()

    # ------------------------------------------------------------------------------------------------------- transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast(asyncio.Transport, transport)  # uvloop's are not subclasses
        self._transport = transport
        if self._keeper is not None:
            self._keeper.made(self)
        # Each write goes to the kernel at once, and resume_writing means that the kernel has all. With high=0 uvloop's
        # TLS would pause for ever.
        transport.set_write_buffer_limits(high=1, low=0)

    def data_received(self, data: bytes) -> None:
        lane = self._lane
        if lane is None or not lane(data):
            self._parse(data)
        if len(data) >= TURN and self._transport is not None and not self._reading_paused:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._read_on)

    def _parse(self, data: bytes) -> None:
        lane, self._lane = self._lane, None
        if lane is not None and (taken := take_frames(data, lane)):
            if taken == len(data):
                self._lane = self._frames
                return
            data = data[taken:]
        self._between_chunks = False
        if not self._expecting:
            self._reusable = False
            self.close()
            return
        if self._turn:
            self._fed += len(data)
        try:
            self._feed(data)  # type: ignore[misc]  # there is a parser while a reply is expected
        except HttpParserError as error:
            self._stop_parsing(error)
            return
        if self._turn or self._complete:
            self._after_feed(data)
        elif self._between_chunks and data.endswith(CRLF):  # else the next one's size is half here
            self._lane = self._frames

    def eof_received(self) -> None:
        if self._expecting:
            self._lose("the upstream closed the connection", eof=True, clean=True)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._expecting:
            # EPIPE: a write met a RST, and a FIN had come before it: an EOF too. None without eof_received is a TLS
            # connection that ended without close_notify: an EOF, but no clean one.
            eof = exc is None or isinstance(exc, BrokenPipeError)
            self._lose(f"connection lost: {exc}" if exc else "the connection was closed", eof=eof, clean=False)
        self._transport = self._parser = self._feed = self._sock = None
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.lost(self)

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self._upload()

    def _upload(self) -> None:
        unsent, transport, holder = self._unsent, self._transport, self._holder
        if transport is None or holder is None:
            return
        while unsent and not self._writing_paused:
            view = unsent.pop()
            if len(view) > SLICE:
                unsent.append(view[SLICE:])
                view = view[:SLICE]
            transport.write(view)
        if not unsent and not self._writing_paused and holder.uploaded_at is None:
            holder.uploaded_at = monotonic()

    # ---------------------------------------------------------------------------------------------------------- parser

    def on_message_begin(self) -> None:
        if self._complete:
            self._reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        headers = self._headers
        if headers is None:
            return  # a trailer
        headers.append((lower_case[name], value))

    def on_headers_complete(self) -> None:
        parser, headers, holder = self._parser, self._headers, self._holder
        if parser is None or headers is None or holder is None:
            return
        status = parser.get_status_code()
        if status < 200:
            if status == 101:
                raise MalformedError("101 that was not asked for")
            headers.clear()
            return
        if len(headers) > MAX_FIELDS or (self._fed > MAX_HEAD and wire_size(headers) > MAX_HEAD):
            raise MalformedError("the reply's head is too large")
        head = ReplyHead(status, headers)
        self._framing = framing_of(head)
        self._headers = None
        self._reusable = parser.should_keep_alive() and not self._head_only
        if status >= 300 and self._unsent:
            # The upstream has decided without the rest: it is not sent, and the connection is in no known state.
            self._unsent.clear()
            self._reusable = False
        self._early = []
        self._push = self._early.append
        if self._head_only:
            self._complete = True
            self._push = _ignore
        holder.on_reply(head)

    def on_chunk_header(self) -> None:
        self._between_chunks = False

    def on_chunk_complete(self) -> None:
        self._between_chunks = True

    def on_body(self, data: bytes) -> None:
        self._push(data)

    def on_message_complete(self) -> None:
        if self._headers is None:
            self._complete = True

    # ------------------------------------------------------------------------------------------------------------ ends

    def _after_feed(self, data: bytes) -> None:
        """What a read brings about that is more than body bytes."""
        if self._complete:
            self._expecting = False
            if not self._reusable or not ends_clean(self._framing, data):
                self._reusable = False
                self.close()
            self._deliver_end(BodyEnd.FRAMED)
        elif self._headers is not None:
            if self._fed > MAX_HEAD:
                self._lose("the reply's head is too large", malformed=True)
        elif self._early is not None and self._fed > EARLY_LIMIT:
            self.pause()

    def _stop_parsing(self, error: HttpParserError) -> None:
        """The reply is malformed, or carries surplus bytes, or the receiver failed."""
        if self._complete:
            self._reusable = False
            self._after_feed(b"")
            return
        cause = error.__context__ if isinstance(error, HttpParserCallbackError) else None
        self._lose(str(cause or error), malformed=True)
        if cause is not None and not isinstance(cause, MalformedError):
            raise cause

    def _lose(self, detail: str, *, eof: bool = False, clean: bool = False, malformed: bool = False) -> None:
        """The reply ends here, before its framing's end."""
        holder = self._holder
        untouched = eof and self._acked >= 0 and self._sock is not None and sample(self._sock)[1] == self._acked
        self.close()
        if self._headers is None:
            natural = clean and self._framing is Framing.NONE
            self._deliver_end(BodyEnd.CLOSED if natural else BodyEnd.CUT)
        elif holder is not None:
            self._holder = None
            holder.on_loss(Loss(detail, malformed, untouched and not self._fed, bool(self._fed)))

    def _deliver_end(self, end: BodyEnd) -> None:
        self._ended = end
        if (deliver := self._end) is not None:
            self._forget_receiver()
            deliver(end)

    def _forget_receiver(self) -> None:
        self._receiver = self._end = self._early = self._frames = self._lane = None
        self._push = _ignore
