"""The server side of one HTTP/1.1 connection, pushed: bytes in, requests out to the line, one at a time.

```
          first byte         head complete               response finished
 REQUEST ────────────▶ HEAD ──────────────▶ (the line) ────────────────────▶ REQUEST, or the kept request
    │ idle_timeout:     │ head_timeout: 408   │ BODY while the line waits for bytes of a body: 408 to the line
    ▼                   ▼ malformed: 4xx      ▼ cannot be kept alive
  closed           refused, LINGER         LINGER if input is unread, else FLUSH; then closed
```
What cannot be a request the edge answers by itself (`refused` is told), and closes.

* **Pipelining**: one request is kept until the current response is finished, with at most AHEAD bytes of its body. What
  comes after it is dropped, and the connection closes after the kept one's response; a client that goes on sending is
  reset after DROP_MAX bytes. Reading never stops during a response, so that a client's leaving is seen.
* **Leaving**: FIN counts as leaving, as with nginx: at once if a response has begun, else after HALF_CLOSED_S, so that
  a client that closes its sending side (`printf … | nc`) still gets a quick answer. The line hears of it within a
  second. Over TLS it is at once: such a transport closes both sides together.
* **Lingering**: before a close with input unread, the sending side is shut, and input is read and dropped until FIN,
  LINGER_S of silence, LINGER_MAX_S in all, or as many bytes as a body may have (at least DROP_MAX). A close at once
  would be answered with RST, which destroys a response on its way to a client that is still sending.
"""

import asyncio
import time
from math import inf
from typing import Final, NamedTuple

from headrace.http.head import NO_BODY, Framing
from headrace.listener.edge import Edge, Wait
from headrace.listener.reader import Reader, Stop
from headrace.listener.request import GONE, ServerRequest
from headrace.listener.sink import ClientSink, reset
from headrace.model.problem import Kind, Problem
from headrace.model.request import RequestHead

DROP_MAX: Final = 1024 * 1024
LINGER_S: Final = 2.0
LINGER_MAX_S: Final = 10.0
HALF_CLOSED_S: Final = 0.5

NO_HEAD: Final = RequestHead("GET", "/", "", [])
"""Stands for a head that could not be read."""

HEAD_LATE: Final = Problem(Kind.REQUEST_TIMEOUT, "The request's head did not come in time; send it again.")
BODY_LATE: Final = Problem(Kind.REQUEST_TIMEOUT, "The request's body stopped coming; send it again.")


class Refusal(NamedTuple):
    """What the edge answers by itself."""

    head: RequestHead | None
    problem: Problem


class Connection(asyncio.Protocol, Reader):
    """One client's connection: what is served, and when it closes."""

    __slots__ = ("_asked", "_behind", "_current", "_half_closed", "_next", "_unsent", "edge", "transport")

    transport: asyncio.Transport

    def __init__(self, edge: Edge) -> None:
        Reader.__init__(self)
        self.edge = edge
        self.deadline = inf
        self.enrolled = False
        self.wait = Wait.NOTHING
        self._current: ServerRequest | None = None  # is being answered
        self._next: ServerRequest | Refusal | None = None  # is kept until then
        self._asked = False  # whether a request has come
        self._half_closed = False
        self._behind = False
        self._unsent = 0

    # ---------------------------------------------------------------------------------------------- the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected; during a drain it is one that was accepted just before, and may ask once."""
        self.transport = transport  # type: ignore[assignment]  # a server's transports read and write
        peer = transport.get_extra_info("peername")
        self._address = peer[0] if isinstance(peer, tuple) else ""
        edge = self.edge
        edge.clients.add(self)
        self._await(Wait.REQUEST, edge.settings.head_timeout if edge.draining else edge.settings.idle_timeout)

    def data_received(self, data: bytes) -> None:
        """Bytes of a head, of a body, or of neither."""
        if self._deaf:
            self._drop(len(data))
            return
        self.read(data)
        if self._current is None:
            if self._next is not None:
                self._serve_next()
            elif self._fed and self.wait is not Wait.HEAD:
                self._await(Wait.HEAD, self.edge.settings.head_timeout)

    def eof_received(self) -> bool:
        """FIN. Returns whether the transport stays open."""
        self._half_closed = self._deaf = True
        current = self._current
        tls = self.transport.get_extra_info("ssl_object") is not None  # which cannot stay half open
        if current is None:
            return self._next is not None and not tls
        if tls or current.sink.started or not current.complete:
            self._client_gone()
            return False
        self._await(Wait.LEAVING, HALF_CLOSED_S)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed. Breaks every cycle that the connection is part of."""
        self.stop_reading()
        self._await_nothing()
        self._client_gone()
        self.edge.forget(self)

    def pause_writing(self) -> None:
        """The client is behind."""
        self._behind = True
        if self._current is not None:
            self._current.sink.pause()

    def resume_writing(self) -> None:
        """The client caught up."""
        self._behind = False
        if self._current is not None:
            self._current.sink.resume()

    # ---------------------------------------------------------------------------------------- one request at a time

    def take(self, head: RequestHead, framing: Framing, keep_alive: bool) -> ServerRequest:
        """Keep a request whose head is complete; it is served after the read, when a small body is complete too."""
        if self._next is not None and self._current is None:
            self._serve_next()
        if self._next is not None or self._deaf:
            self.stop_reading()
            raise Stop
        sink = ClientSink(self, head.method, head.http_1_0)
        self._next = request = ServerRequest(self, head, framing, sink, self._began, keep_alive)
        return request

    def refuse(self, head: RequestHead | None, problem: Problem) -> None:
        """Answer `problem` once it is its turn, and close."""
        if self._next is not None and self._current is None:
            self._serve_next()
        self.stop_reading()
        self.edge.refused(head, problem)
        if self._next is None:
            self._next = Refusal(head, problem)

    def _serve_next(self) -> None:
        """Give the kept request to the line, or answer what the edge refuses."""
        if self.transport.is_closing():
            return  # connection_lost is on its way and lets go of it
        request, self._next = self._next, None
        if request is None:
            return
        self.wait = Wait.NOTHING
        self.deadline = inf
        if isinstance(request, Refusal):
            self._answer(request)
            return
        self._current = request
        if self._behind:
            request.sink.paused = True
        if self._half_closed:
            self._await(Wait.LEAVING, HALF_CLOSED_S)
        self.edge.handler(request)

    def _serve_kept(self) -> None:
        """The response before it was finished in an earlier turn."""
        if self._current is None:
            self._serve_next()

    def _answer(self, refusal: Refusal) -> None:
        """The edge's own response; the connection closes after it."""
        head = refusal.head or NO_HEAD
        sink = ClientSink(self, head.method, head.http_1_0)
        self._current = ServerRequest(self, head, NO_BODY, sink, self._began, keep_alive=False)
        reply = self.edge.refuse(refusal.head, refusal.problem)
        sink.start(reply.status, reply.headers, len(reply.body))
        sink.insert(reply.body)
        sink.finish()

    # ------------------------------------------------------------------------------------- the request and its sink

    def body_asked(self) -> None:
        """The line waits for the body."""
        if not self.transport.is_closing():
            self.transport.resume_reading()
        self._await(Wait.BODY, self.edge.settings.body_timeout)

    def body_came(self) -> None:
        """Some of a body has come: its time limit is between bytes."""
        if self.wait is Wait.BODY:
            self.deadline = time.monotonic() + self.edge.settings.body_timeout

    def body_over(self) -> None:
        """The line waits no longer."""
        if self.wait is Wait.BODY:
            self._await_nothing()

    def body_ahead(self) -> None:
        """Enough of a body that nobody has asked for. One that is kept behind a response cannot be waited for."""
        if self._current is None or self._current is self._incoming:
            if not self.transport.is_closing():
                self.transport.pause_reading()
            return
        kept, self._next = self._incoming, None
        if kept is not None:
            kept.release()
        self.stop_reading()
        raise Stop

    def streaming(self) -> None:
        """A stream begins."""
        self.release_parser()

    def will_close(self) -> bool:
        """Whether the connection closes after the response that is about to start; from here on it does."""
        request = self._current
        if request is not None and not self._goes_on(request):
            request.keep_alive = False
            return True
        return False

    def _goes_on(self, request: ServerRequest) -> bool:
        """Whether another request can be served after this one."""
        if not request.keep_alive or not request.complete:
            return False
        return self._next is not None or not (self._deaf or self.edge.draining)

    def response_done(self) -> None:
        """The response is in the transport."""
        request, self._current = self._current, None
        if request is None:
            return
        self._asked = True
        goes_on = self._goes_on(request)
        unread = self._dropped > 0 or not request.complete
        request.release()
        if not goes_on:
            self._leave(unread)
        elif self._next is not None:
            self.edge.loop.call_soon(self._serve_kept)
        elif self._fed:
            self._await(Wait.HEAD, self.edge.settings.head_timeout)
        else:
            self._await(Wait.REQUEST, self.edge.settings.idle_timeout)

    # ------------------------------------------------------------------------------------------------ time and ends

    def _await(self, wait: Wait, seconds: float) -> None:
        self.wait = wait
        self.deadline = time.monotonic() + seconds
        if not self.enrolled:
            self.enrolled = True
            self.edge.waiting.add(self)

    def _await_nothing(self) -> None:
        self.wait = Wait.NOTHING
        self.deadline = inf

    def expire(self, now: float) -> None:
        """A time limit of the edge has passed."""
        match self.wait:
            case Wait.HEAD:
                self.refuse(self.partial_head(), HEAD_LATE)
                self._serve_next()
            case Wait.BODY:
                self._await_nothing()
                if self._current is not None:
                    self._current.fail(BODY_LATE)
            case Wait.LEAVING:
                self._client_gone()
                self.transport.abort()
            case Wait.REQUEST | Wait.LINGER | Wait.FLUSH:
                self._close_idle()
            case Wait.NOTHING:
                self.deadline = inf

    def _close_idle(self) -> None:
        """Close, unless the client is still taking the last response."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent:
            self.transport.abort()
        elif unsent == self._unsent:
            reset(self.transport)
        else:
            self._unsent = unsent
            self._await(self.wait, self.edge.settings.idle_timeout)

    def _leave(self, unread: bool) -> None:
        """Close after what has been written, lingering if the client may still be sending."""
        self.stop_reading()
        if not unread or self._half_closed or self.transport.is_closing():
            self.transport.close()
            least = min(LINGER_S, self.edge.settings.idle_timeout)
            self._await(Wait.FLUSH, least)  # a TLS client that has everything may never say goodbye
            return
        self._dropped = 0
        self.transport.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._await(Wait.LINGER, LINGER_S)
        self._began = self.deadline + LINGER_MAX_S - LINGER_S

    def _drop(self, size: int) -> None:
        """Input that nobody will read."""
        self._dropped += size
        if self.wait is Wait.LINGER:
            self.deadline = min(time.monotonic() + LINGER_S, self._began)
            most = max(DROP_MAX, self.edge.settings.max_body)
        else:
            most = DROP_MAX
        if self._dropped > most:
            reset(self.transport)

    def _client_gone(self) -> None:
        """The client has left: tell the line, and let go of the requests."""
        for request in (self._current, self._next):
            if isinstance(request, ServerRequest):
                request.sink.lost()
                request.fail(GONE)
                request.release()
        self._current = self._next = None

    def drain(self) -> None:
        """Close if idle; `edge.draining` sees to the rest. Who has just connected is about to ask, and may."""
        if self.wait is not Wait.REQUEST:
            return
        if self._asked:
            self._leave(unread=False)
        else:
            self._await(Wait.REQUEST, min(self.edge.settings.head_timeout, self.deadline - time.monotonic()))

    def reset(self) -> None:
        """Close at once, with RST; where nothing was asked there is nothing to cut, and FIN says as much."""
        if self.wait is Wait.REQUEST:
            self._leave(unread=False)
        else:
            reset(self.transport)
