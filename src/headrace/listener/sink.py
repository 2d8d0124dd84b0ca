"""Writes one response to one client: framing, back-pressure, and the hash of what was relayed.

| response | framing | says `Connection: close` |
| --- | --- | --- |
| length known | Content-Length | if the connection will close |
| length None, HTTP/1.1 | chunked | never: clients take a cut for an end where it stands (case B086) |
| length None, HTTP/1.0 | the connection's end | never |
| to HEAD, or 204, 304 | no body; what is written is hashed and dropped | if the connection will close |

Only a reset tells a broken body that ends with the connection from a whole one, and a Unix socket has none: its peer is
told ECONNRESET only if bytes of its own are unread here, and the request has been read. Over a Unix socket clients
should speak HTTP/1.1, as docs/how-to/behind-nginx.md says.

The head waits for the first body bytes of the same loop turn, so both leave in one send; without any it leaves at the
end of the turn. A body of another length than promised is our own fault: the connection is reset, so that no client
takes the response for whole, and with `strict` (tests) LengthError is raised. After `finish`, `abort`, or the client's
leaving, writes do nothing and are not hashed.
"""

import hashlib
import socket
import struct
from asyncio import WriteTransport
from collections.abc import Callable
from typing import Final, Protocol

from headrace.http.chunk import FRAME, LAST, frame_parts
from headrace.http.head import response_head
from headrace.listener.edge import Edge
from headrace.model.headers import Headers
from headrace.model.ports import SinkWatcher

JOIN_MAX: Final = 16 * 1024
"""Data up to this size is copied into one piece with its frame: cheaper than three buffers in one writev."""

_OWN: Final = frozenset({b"connection", b"content-length", b"keep-alive", b"transfer-encoding"})
"""Fields that the framing alone decides."""

_RESET: Final = struct.pack("ii", 1, 0)


class LengthError(Exception):
    """More or fewer bytes than the Content-Length that was sent."""


class Carrier(Protocol):
    """The connection as its sink sees it."""

    edge: Edge

    @property
    def transport(self) -> WriteTransport:
        """What it writes to."""

    def will_close(self) -> bool:
        """Whether the connection closes after the response that is about to start."""

    def streaming(self) -> None:
        """The response may take long: give back what can be given back."""

    def response_done(self) -> None:
        """The response is in the transport."""


class ClientSink:
    """`model.ports.Sink` over a transport."""

    __slots__ = (
        "_bodiless",
        "_carrier",
        "_chunked",
        "_hash",
        "_head",
        "_http_1_0",
        "_left",
        "_open",
        "_send",
        "_transport",
        "_watcher",
        "gone",
        "paused",
        "started",
    )

    gone: bool
    paused: bool
    started: bool

    def __init__(self, carrier: Carrier, method: str, http_1_0: bool) -> None:
        self._carrier: Carrier | None = carrier
        self._transport = carrier.transport
        self._bodiless = method == "HEAD"
        self._http_1_0 = http_1_0
        self._watcher: SinkWatcher | None = None
        self._open = self._chunked = False
        self.gone = False
        self.paused = False
        self.started = False

    @property
    def unsent(self) -> int:
        """Bytes that the transport still holds."""
        return self._transport.get_write_buffer_size()

    def watch(self, watcher: SinkWatcher | None) -> None:
        """Who hears of back-pressure and of the client's leaving."""
        self._watcher = watcher

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """Hold the head for the first bytes of this loop turn. Raises ValueError for a field with CR, LF or NUL."""
        carrier = self._carrier
        if self.started or carrier is None:
            return
        bodiless = self._bodiless = self._bodiless or status in {204, 304}
        chunked = length is None and not self._http_1_0 and not bodiless
        fields = [field for field in headers if field[0] not in _OWN]
        if length is not None:
            if status != 204:
                fields.append((b"content-length", str(length).encode()))
            if carrier.will_close():
                fields.append((b"connection", b"close"))
        elif chunked:
            fields.append((b"transfer-encoding", b"chunked"))
        head = response_head(status, fields)
        self._chunked = chunked
        self._left = None if bodiless else length
        self._hash = hashlib.sha256()
        self._head = head
        self._send: Callable[[bytes], None] = self._send_first
        self.started = self._open = True
        carrier.edge.loop.call_soon(self._flush_head)
        if length is None:
            carrier.streaming()

    def write(self, data: bytes) -> None:
        """Relayed bytes: hashed, framed and handed to the transport in this call."""
        if self._open and data:
            self._hash.update(data)
            if self._chunked and len(data) <= JOIN_MAX:
                self._send(FRAME % (len(data), data))
            else:
                self._put(data)

    @property
    def frame_writer(self) -> Callable[[bytes], None] | None:
        """The transport's own `write`, once the head has left: an event meets no call of ours here."""
        return self._send if self._open and self._chunked and not self._head else None

    def passed(self, data: bytes) -> None:
        """Relayed bytes that have left by `frame_writer`: hashed, even if the client has left since."""
        self._hash.update(data)

    def insert(self, data: bytes) -> None:
        """Bytes of the gateway's own: not hashed."""
        if self._open and data:
            self._put(data)

    def finish(self) -> None:
        """End the body as the framing says; the connection goes on to its next request, or closes."""
        if not self._open:
            return
        if self._left:
            self._mismatch(f"{self._left} bytes short")
            return
        self._open = False
        if self._chunked:
            self._send(LAST)
        else:
            self._flush_head()
        carrier, self._carrier, self._watcher = self._carrier, None, None
        if carrier is not None:
            carrier.response_done()

    def abort(self) -> None:
        """Reset the connection (RST): the client can take nothing for an end. What the transport still held is lost."""
        if self._carrier is None:
            return
        self._detach()
        reset(self._transport)

    def hash_out(self) -> str:
        """SHA-256 (hex) of all that `write` was given while the client was there."""
        return (self._hash if self.started else hashlib.sha256()).hexdigest()

    def lost(self) -> None:
        """The client has left. For the connection."""
        if self._carrier is None:
            return
        watcher = self._watcher
        self._detach()
        self.gone = True
        if watcher is not None:
            watcher.sink_gone()

    def pause(self) -> None:
        """The transport's buffer is over the high-water mark. For the connection."""
        self.paused = True
        if self._watcher is not None:
            self._watcher.sink_paused()

    def resume(self) -> None:
        """The transport's buffer is under the low-water mark again. For the connection."""
        self.paused = False
        if self._watcher is not None:
            self._watcher.sink_resumed()

    def _detach(self) -> None:
        self._open = False
        self._carrier = None
        self._watcher = None
        self._send = self._transport.write

    def _put(self, data: bytes) -> None:
        """One piece of body, by whatever framing."""
        if self._bodiless:
            return
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                self._mismatch(f"{-self._left} bytes too many")
                return
        if not self._chunked:
            self._send(data)
        elif len(data) <= JOIN_MAX:
            self._send(FRAME % (len(data), data))
        else:
            self._flush_head()
            self._transport.writelines(frame_parts(data))

    def _send_first(self, data: bytes) -> None:
        """The head and the first bytes of the body in one piece."""
        self._send = self._transport.write
        if len(data) <= JOIN_MAX:
            self._send(self._head + data)
        else:
            self._transport.writelines((self._head, data))
        self._head = b""

    def _flush_head(self) -> None:
        """Send the head if it is still held."""
        if self.started and self._head and not self._transport.is_closing():
            self._send = self._transport.write
            self._transport.write(self._head)
            self._head = b""

    def _mismatch(self, what: str) -> None:
        strict = self._carrier is not None and self._carrier.edge.strict
        self.abort()
        if strict:
            raise LengthError(what)


def reset(transport: WriteTransport) -> None:
    """Close with RST: linger on, for no time (socket(7)). A Unix socket has none; there it is a close at once,
    which leaves Content-Length or the chunks without their end."""
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family != socket.AF_UNIX and sock.fileno() >= 0:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.abort()
