"""A client of raw sockets: sends exact bytes, hears a reply with its framing and its times, and leaves as it likes."""

import select
import socket
import ssl
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType
from typing import Self

RESET = struct.pack("ii", 1, 0)


class End(Enum):
    """How a reply ended."""

    OPEN = auto()
    """It has not, as far as was read."""
    FRAMED = auto()
    """As its framing says."""
    CLOSED = auto()
    """By FIN."""
    RESET = auto()
    """By RST."""


@dataclass(slots=True)
class Piece:
    """One HTTP chunk (or what one read gave, where the body is not chunked) and when it was whole."""

    at: float
    data: bytes


@dataclass(slots=True)
class Reply:
    """A reply as far as it was read. Header names are in lower case."""

    status: int
    headers: list[tuple[str, str]]
    pieces: list[Piece] = field(default_factory=list)
    end: End = End.OPEN

    @property
    def body(self) -> bytes:
        return b"".join(piece.data for piece in self.pieces)

    def header(self, name: str) -> str | None:
        """The only value of a header, or None; two of one name are an error here."""
        values = [value for found, value in self.headers if found == name]
        assert len(values) < 2, f"{name} stands twice"
        return values[0] if values else None

    @property
    def id(self) -> str:
        """The gateway's id for the exchange, which both names must carry."""
        value = self.header("x-request-id")
        assert value is not None
        assert value == self.header("request-id")
        return value


class Client:
    """One connection. Every wait ends after `wait_s`, as a failure. `connected`: a socket in place of a new one."""

    def __init__(
        self,
        port: int,
        *,
        receive_buffer: int | None = None,
        wait_s: float = 10.0,
        connected: socket.socket | None = None,
    ) -> None:
        self._wait_s = wait_s
        self._unread = bytearray()
        self._reply: Reply | None = None
        self._length: int | None = None
        self._chunked = False
        self._ended: End | None = None
        if connected is not None:
            self._socket = connected
            self._socket.settimeout(wait_s)
            return
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._socket.settimeout(wait_s)
        try:
            self._socket.connect(("127.0.0.1", port))
        except OSError:
            self._socket.close()
            raise
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def local_port(self) -> int:
        """The port that it connects from."""
        port: int = self._socket.getsockname()[1]
        return port

    # ---- what it does

    def send(self, data: bytes) -> None:
        """All of `data`; that the gateway stops listening to it is no error."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def shut(self) -> None:
        """FIN; the reply can still be read."""
        self._socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """RST."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self._socket.close()

    def close(self) -> None:
        self._socket.close()

    # ---- what it hears

    def has_answer(self) -> bool:
        """Whether there is anything to read, which may be the connection's end."""
        return bool(self._unread or select.select([self._socket], [], [], 0)[0])

    def skip(self) -> int:
        """Read once, behind the reply's head, and forget it; the bytes that were read."""
        self._unread.clear()
        self._read()
        return len(self._unread)

    def interim(self, status: int) -> None:
        """An interim reply, before the head."""
        while b"\r\n\r\n" not in self._unread:
            assert self._read(), f"no reply, but {self._ended}"
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d" % status)

    def head(self, *, method: str = "POST") -> Reply:
        """The next reply's head; interim replies are passed over."""
        while True:
            while b"\r\n\r\n" not in self._unread:
                assert self._read(), f"no reply, but {self._ended}"
            at = self._unread.index(b"\r\n\r\n")
            lines = self._unread[:at].decode("latin-1").split("\r\n")
            del self._unread[: at + 4]
            version, status = lines[0].split(" ", 2)[:2]
            assert version == "HTTP/1.1"
            if status[0] != "1":
                break
        fields = [line.partition(":") for line in lines[1:]]
        reply = Reply(int(status), [(name.lower(), value.strip()) for name, _, value in fields])
        self._chunked = reply.header("transfer-encoding") == "chunked"
        length = reply.header("content-length")
        assert not (self._chunked and length), "two framings"
        self._length = None if length is None else int(length)
        if method == "HEAD" or reply.status in (204, 304):
            self._length, self._chunked = 0, False
        self._reply = reply
        self._take()
        return reply

    def read(self, until: bytes) -> Reply:
        """More of the reply, until its body holds `until`."""
        reply = self._heard()
        while until not in reply.body:
            assert reply.end is End.OPEN, f"ended ({reply.end.name}) without {until!r}: {reply.body[-500:]!r}"
            self._more()
        return reply

    def read_for(self, seconds: float) -> Reply:
        """More of the reply, until so many seconds are over or it has ended."""
        until = time.monotonic() + seconds
        reply = self._heard()
        try:
            while reply.end is End.OPEN and (left := until - time.monotonic()) > 0:
                self._socket.settimeout(left)
                self._more()
        except TimeoutError:
            pass
        finally:
            self._socket.settimeout(self._wait_s)
        return reply

    def rest(self) -> Reply:
        """The reply to its end."""
        reply = self._heard()
        while reply.end is End.OPEN:
            self._more()
        return reply

    def ended(self) -> End:
        """How the connection ends; nothing may come before."""
        while self._read():
            assert not self._unread, f"more came: {bytes(self._unread[:200])!r}"
        assert self._ended is not None
        return self._ended

    def _heard(self) -> Reply:
        return self._reply if self._reply is not None else self.head()

    def _more(self) -> None:
        if not self._read():
            assert self._ended is not None and self._reply is not None
            self._reply.end = self._ended
        self._take()

    def _read(self) -> bool:
        """Whether anything came before the connection's end."""
        if self._ended is not None:
            return False
        try:
            data = self._socket.recv(65536)
        except (ConnectionResetError, ssl.SSLEOFError):  # the latter: TLS that ended without a goodbye
            self._ended = End.RESET
            return False
        if not data:
            self._ended = End.CLOSED
            return False
        self._unread += data
        return True

    def _take(self) -> None:
        """Move what has come into the reply, by its framing."""
        reply, unread = self._reply, self._unread
        if reply is None or reply.end is End.FRAMED:
            return
        now = time.monotonic()
        if self._chunked:
            self._take_chunks(reply, now)
            return
        size = len(unread) if self._length is None else min(len(unread), self._length)
        if size:
            reply.pieces.append(Piece(now, bytes(unread[:size])))
            del unread[:size]
        if self._length is not None:
            self._length -= size
            if not self._length:
                reply.end = End.FRAMED

    def _take_chunks(self, reply: Reply, now: float) -> None:
        unread = self._unread
        while (at := unread.find(b"\r\n")) >= 0:
            size = int(unread[:at], 16)
            end = at + 2 + size
            if len(unread) < end + 2:
                return
            assert unread[end : end + 2] == b"\r\n"
            data = bytes(unread[at + 2 : end])
            del unread[: end + 2]
            if not size:
                reply.end = End.FRAMED
                return
            reply.pieces.append(Piece(now, data))
