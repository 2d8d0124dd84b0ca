"""One client connection: requests in through `Inbound`, replies out through a `Player`, one at a time.

    IDLE ──head──▶ READING ──body──▶ PLAYING ──▶ IDLE …

A request that comes while another plays waits. The connection closes after a cut, a refusal, `Connection: close`, or
when the client has closed its side (a half-closed client is taken as gone).
"""

import asyncio
import socket
from collections import deque
from dataclasses import dataclass
from typing import Protocol, cast

import httptools

from headrace.simulator.errors import error_json
from headrace.simulator.fields import ScriptError
from headrace.simulator.inbound import Inbound
from headrace.simulator.player import Player, reset
from headrace.simulator.recorded import End, Recorded
from headrace.simulator.recorder import Recording
from headrace.simulator.reply import Reply, head_bytes
from headrace.simulator.request import Request
from headrace.simulator.scenario import CloseHow, ErrorSpec, How, Refuse, RefuseWhen, Scenario

MAX_WAITING = 16
CONTROL = "/_simulator"
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Host(Protocol):
    """What a connection needs of its simulator."""

    def connected(self, connection: "Connection") -> int | None:
        """The connection's number; None: it is to be closed at once."""

    def disconnected(self, connection: "Connection") -> None: ...

    def begin(self, connection: int) -> Recording: ...

    def choose_early(self, request: Request, record: Recorded) -> Scenario | None: ...

    def reply(self, request: Request, chosen: Scenario | None, record: Recorded) -> Reply | Refuse: ...

    def bad_script(self, request: Request, error: ScriptError) -> Reply: ...

    def control(self, request: Request) -> Reply:
        """The reply to a request to the simulator itself."""


@dataclass(slots=True, eq=False)
class _Exchange:
    """A request on its way; `action` is decided early where the head suffices, else when the request is whole."""

    request: Request
    recording: Recording | None
    chosen: Scenario | None = None
    action: Reply | Refuse | None = None


class Connection(asyncio.Protocol):
    def __init__(self, host: Host) -> None:
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._inbound = Inbound(self._head, self._part, self._complete)
        self._number = 0
        self._reading: _Exchange | None = None
        self._waiting: deque[_Exchange] = deque()
        self._playing: _Exchange | None = None
        self._player: Player | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._full = False  # the transport's buffer, from a reply before
        self._last = False  # no request after the one being answered

    # asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = self._host.connected(self)
        if number is None:
            self._close(CloseHow.FIN)
        else:
            self._number = number

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        try:
            self._inbound.feed(data)
        except httptools.HttpParserUpgrade:
            self._last = True  # answered as a plain request; what follows is not HTTP
        except httptools.HttpParserCallbackError:
            raise
        except httptools.HttpParserError as error:
            self._bad_request(str(error))

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._full = True
        if self._player is not None:
            self._player.pause()

    def resume_writing(self) -> None:
        self._full = False
        if self._player is not None:
            self._player.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_all(End.CLIENT_CLOSED, write_failed=exc is not None)
        self._host.disconnected(self)

    # requests in

    def _head(self, request: Request) -> None:
        self._stop_idle()
        if request.path.startswith(CONTROL):
            self._reading = _Exchange(request, None)
            return
        exchange = self._reading = _Exchange(request, self._host.begin(self._number))
        assert exchange.recording is not None
        exchange.recording.head(request)
        try:
            exchange.chosen = self._host.choose_early(request, exchange.recording.record)
        except ScriptError as error:
            exchange.action = self._host.bad_script(request, error)
            return
        faults = exchange.chosen.faults if exchange.chosen is not None else None
        if faults is not None and faults.refuse is not None and faults.refuse.when is RefuseWhen.HEAD:
            exchange.action = faults.refuse
            self._answer_unread(exchange)
        elif faults is not None and faults.ignore_request_body:
            exchange.action = self._host.reply(request, exchange.chosen, exchange.recording.record)
            self._answer_unread(exchange)
        elif (request.header("expect") or "").lower() == "100-continue":
            self._transport.write(_CONTINUE)

    def _answer_unread(self, exchange: _Exchange) -> None:
        """Answers on the head alone; nothing more is read from this connection."""
        self._reading = None
        self._last = True
        self._transport.pause_reading()
        self._enqueue(exchange)

    def _part(self, part: bytes) -> None:
        if self._reading is not None and self._reading.recording is not None:
            self._reading.recording.body(part)

    def _complete(self, request: Request) -> None:
        exchange, self._reading = self._reading, None
        if exchange is None or self._last:
            return
        exchange.request = request
        if exchange.recording is not None:
            exchange.recording.received()
        self._enqueue(exchange)

    def _enqueue(self, exchange: _Exchange) -> None:
        self._waiting.append(exchange)
        if len(self._waiting) > MAX_WAITING:
            self._bad_request("too many requests before the first was answered")
        elif self._playing is None:
            self._answer()

    # replies out

    def _answer(self) -> None:
        exchange = self._playing = self._waiting.popleft()
        action = exchange.action if exchange.action is not None else self._decide(exchange)
        if isinstance(action, Refuse):
            if exchange.recording is not None:
                exchange.recording.end(End.REFUSED)
            self._close(action.how)
            return
        self._player = Player(self._transport, action, exchange.recording, lambda how: self._done(action, how))
        if self._full:
            self._player.pause()
        self._player.start()

    def _decide(self, exchange: _Exchange) -> Reply | Refuse:
        if exchange.recording is None:
            return self._host.control(exchange.request)
        return self._host.reply(exchange.request, exchange.chosen, exchange.recording.record)

    def _done(self, reply: Reply, how: How | None) -> None:
        """The player has written all it will."""
        if how is How.STALL:
            return
        exchange, self._playing, self._player = self._playing, None, None
        if exchange is not None and exchange.recording is not None:
            exchange.recording.end(End.COMPLETE if how is None else End.CUT)
        match how:
            case How.RST:
                self._close(CloseHow.RST)
            case How.FIN:
                self._close(CloseHow.FIN)
            case _:
                self._after(reply)

    def _after(self, reply: Reply) -> None:
        if self._last or not reply.keep_alive:
            self._close(CloseHow.FIN)
        elif self._waiting:
            self._loop.call_soon(self._answer_waiting)
        elif reply.close_idle_after_s is not None:
            self._idle_timer = self._loop.call_later(reply.close_idle_after_s, self._close, CloseHow.FIN)

    def _answer_waiting(self) -> None:
        if self._waiting and self._playing is None and not self._closing:
            self._answer()

    # ends

    def stop(self) -> None:
        """The simulator ends: so does the connection, whatever it plays."""
        self._end_all(End.STOPPED)
        self._transport.abort()

    def _bad_request(self, reason: str) -> None:
        body = error_json(400, ErrorSpec(f"Bad HTTP request: {reason}"))
        head = head_bytes(400, (("Content-Type", "application/json"), ("Content-Length", str(len(body)))))
        if self._playing is None:
            self._transport.write(head + body)
        self._close(CloseHow.FIN)

    def _close(self, how: CloseHow) -> None:
        self._closing = True
        self._stop_idle()
        if how is CloseHow.RST:
            reset(self._transport)
        else:
            self._transport.close()

    def _stop_idle(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    def _end_all(self, end: End, *, write_failed: bool = False) -> None:
        self._closing = True
        self._stop_idle()
        if self._player is not None:
            self._player.stop()
        for exchange in (self._playing, self._reading, *self._waiting):
            if exchange is not None and exchange.recording is not None:
                exchange.recording.end(end, write_failed=write_failed)
        self._playing = self._reading = self._player = None
        self._waiting.clear()
