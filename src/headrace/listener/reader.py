"""Reads requests off one connection with llhttp, and keeps its limits: 64 KiB and 100 fields a head, counted as fed.

The parser's callbacks land here. A head that is complete and sound goes to `take`, one that is not to `refuse`; a body
goes to its request. Once `_deaf`, nothing is parsed any more: what comes is dropped, and the connection closes after
the last response.

* A head that begins behind another request in what one read brought is counted from the next read on, so it may come
  to twice the limit.
* Chunk extensions and trailers are dropped, and bounded: FRAMING_RATIO bytes for each byte of the body, and MAX_HEAD
  bytes on end without one of the body.
* After an Upgrade llhttp takes the rest of the connection for another protocol. Nothing but WebSocket is ever switched
  to, so a fresh parser, told the framing by a head of our own, reads the body that llhttp skipped (RFC 9110 section
  7.8).
* llhttp takes the protocol names RTSP and ICE for HTTP; they are answered as HTTP.
"""

import time
from typing import Final

import httptools

from headrace.http.head import (
    FRAMING_TOO_LARGE,
    HEAD_TOO_LARGE,
    MAX_FIELDS,
    MAX_HEAD,
    TOO_MANY_FIELDS,
    Framing,
    parser_problem,
    read_framing,
)
from headrace.http.target import split_target
from headrace.listener.edge import Client
from headrace.listener.request import ServerRequest
from headrace.model.headers import Headers, as_parsed
from headrace.model.problem import Problem
from headrace.model.request import RequestHead

FRAMING_RATIO: Final = 16


class Stop(Exception):  # noqa: N818 - no error: it leaves the parser from within a callback
    """What follows cannot be a request; the connection is deaf."""


class Reader(Client):
    """The reading half of a connection."""

    __slots__ = (
        "_address",
        "_began",
        "_deaf",
        "_dropped",
        "_dry",
        "_fed",
        "_fields",
        "_framing",
        "_incoming",
        "_parser",
        "_size",
        "_target",
        "_upgraded",
    )

    def __init__(self) -> None:
        self._parser: httptools.HttpRequestParser | None = None
        self._incoming: ServerRequest | None = None  # its body is being read
        self._deaf = False
        self._upgraded = False
        self._began = 0.0
        self._fed = 0  # bytes of the head that is being read; 0 between heads
        self._framing = 0  # bytes fed since the head, body included
        self._dry = 0  # bytes fed since the body's last byte
        self._size = 0  # the body's, when the framing was last looked at
        self._dropped = 0
        self._target = b""
        self._fields: Headers = []
        self._address = ""

    # --------------------------------------------------------------------------------- what the connection adds

    def take(self, head: RequestHead, framing: Framing, keep_alive: bool) -> ServerRequest:
        """A request whose head is complete. Raises Stop if it cannot be kept."""
        raise NotImplementedError

    def refuse(self, head: RequestHead | None, problem: Problem) -> None:
        """A request that cannot be one."""
        raise NotImplementedError

    def body_came(self) -> None:
        """Some of a body has come."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------- feeding

    def read(self, data: bytes) -> None:
        """Parse what the network brought. Not to be called when deaf."""
        if not self._fed and self._incoming is None and data[0] <= 13:
            data = data.lstrip(b"\r\n")  # empty lines before a request are allowed (RFC 9112 section 2.2)
        if self._fed + len(data) <= MAX_HEAD:
            self._feed(data)
            return
        rest = memoryview(data)
        while rest and not self._deaf:
            room = MAX_HEAD - self._fed
            if room <= 0:
                self.refuse(self.partial_head(), HEAD_TOO_LARGE)
                break
            self._feed(rest[:room])
            rest = rest[room:]
        self._dropped += len(rest)

    def stop_reading(self) -> None:
        """Nothing that comes from here on can be a request."""
        self._deaf = True
        self._parser = None
        self._incoming = None
        self._fed = 0
        self._dropped += 1
        self._fields = []

    def release_parser(self) -> None:
        """Give the parser back (1 KiB) if it is between requests; the next byte makes a new one (0.3 µs)."""
        if self._incoming is None and not self._fed:
            self._parser = None
            self._fields = []
            self._target = b""

    def partial_head(self) -> RequestHead | None:
        """What is known of a head that is refused before its end: enough for the dialect of the answer."""
        parser = self._parser
        if parser is None or not self._target:
            return None
        method = parser.get_method().decode("ascii")
        target = split_target(method, self._target)
        if isinstance(target, Problem):
            return None
        return RequestHead(method, *target, as_parsed(self._fields), peer=self._address)

    def _feed(self, data: bytes | memoryview) -> None:
        """Parse; the connection is deaf afterwards if the parser gave up."""
        parser = self._parser
        if parser is None:
            parser = self._parser = httptools.HttpRequestParser(self)
        request = self._incoming
        if request is None:
            self._fed += len(data)
        elif request.framing.length is None:
            self._framing += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_on(bytes(data[upgrade.args[0] :]))
        except httptools.HttpParserError as error:
            self._parser_failed(error)
        if self._fed and len(self._fields) > MAX_FIELDS:
            self.refuse(self.partial_head(), TOO_MANY_FIELDS)
        elif self._framing > MAX_HEAD and request is not None and request is self._incoming:
            self._check_framing(request, len(data))

    def _check_framing(self, request: ServerRequest, fed: int) -> None:
        """Whether a chunked body is more wrapping than body."""
        self._dry = self._dry + fed if request.size == self._size else 0
        self._size = request.size
        if self._dry > MAX_HEAD or self._framing - self._size > MAX_HEAD + FRAMING_RATIO * self._size:
            self.stop_reading()
            request.fail(FRAMING_TOO_LARGE)

    def _read_on(self, rest: bytes) -> None:
        """Go on as HTTP/1.1 after an Upgrade.

        WebSocket: here the line will be able to take the connection over, with `rest` as its first bytes.
        """
        request = self._incoming
        self._upgraded = False
        self._parser = None
        if request is None or request.complete:
            self.on_message_complete()
        else:
            length = request.framing.length
            field = b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %d" % length
            connection = b"keep-alive" if request.keep_alive else b"close"
            self._feed(b"POST / HTTP/1.1\r\n%b\r\nConnection: %b\r\n\r\n" % (field, connection))
        if rest and not self._deaf:
            self._feed(rest)

    def _parser_failed(self, error: httptools.HttpParserError) -> None:
        """llhttp gave up, or a callback left it."""
        if self._deaf:
            return
        if isinstance(error, httptools.HttpParserCallbackError):
            raise error  # a fault of our own, not the client's
        request = self._incoming
        reason = str(error)
        if request is None:
            self.refuse(self.partial_head(), parser_problem(reason, in_body=False))
        else:
            self.stop_reading()
            request.fail(parser_problem(reason, in_body=True))

    # ----------------------------------------------------------------------------------------- llhttp's callbacks

    def on_message_begin(self) -> None:
        """The first byte of a method, or of a head of our own."""
        if self._incoming is None:
            self._began = time.monotonic()
            self._fed = self._fed or 1  # the head may begin in the middle of what was fed
            self._target = b""
            self._fields = []

    def on_url(self, part: bytes) -> None:
        """Some of the target."""
        if self._incoming is None:
            self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field of a head, or of trailers: those nobody takes out of the list. Called 24 times for a request."""
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        """Check the head; hand the request on, or refuse it."""
        parser = self._parser
        if self._incoming is not None or parser is None:
            return
        version = parser.get_http_version()
        method = parser.get_method().decode("ascii")
        target = split_target(method, self._target)
        if isinstance(target, Problem):
            self.refuse(None, target)
            raise Stop
        path, query = target
        http_1_0 = version == "1.0"
        head = RequestHead(method, path, query, as_parsed(self._fields), http_1_0, False, self._address)
        framing = read_framing(head, version)
        if isinstance(framing, Problem):
            self.refuse(head, framing)
            raise Stop
        head.has_body = framing.length != 0
        self._fed = self._framing = self._dry = self._size = 0
        self._fields = []
        self._incoming = self.take(head, framing, not http_1_0 and parser.should_keep_alive())
        self._parser = parser  # a response that began in `take` may have given it back
        self._upgraded = parser.should_upgrade()

    def on_body(self, data: bytes) -> None:
        """Some of the body, decoded."""
        if self._incoming is not None:
            self.body_came()
            self._incoming.receive(data)

    def on_message_complete(self) -> None:
        """The end of the body. With an upgrade llhttp says so before the body."""
        request = self._incoming
        if self._upgraded or request is None:
            return
        self._incoming = None
        self._deaf = self._deaf or not request.keep_alive
        request.received()
