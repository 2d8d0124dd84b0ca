"""Asks a gateway over HTTP as a client does, and hands on the reply's body as it comes. TCP, TLS or a Unix socket."""

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

CONNECT_S = 5.0
SILENCE_S = 300.0
"""The longest time without a byte: a gateway sends keepalives long before."""
PIECE = 64 << 10


class AskError(Exception):
    """The gateway could not be asked, or its reply broke off; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `path` is absolute, with its query; `headers` are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply whose head has come. `headers` are in lower case; `pieces` are the body's bytes, AskError where it breaks
    off."""

    status: int
    headers: Mapping[str, str]
    pieces: Iterator[bytes]


@contextmanager
def asking(root: str, request: Request, authorities: str = "") -> Iterator[Reply]:
    """Send a request to the gateway at `root` (`http://…`, `https://…` or `unix:PATH`). Raises AskError.

    `authorities` is a PEM file whose certificates are trusted beside the system's.
    """
    connection = _connection(root, authorities)
    try:
        with _told(root):
            connection.connect()
            if isinstance(connection.sock, socket.socket):
                connection.sock.settimeout(SILENCE_S)
            connection.request(request.method, request.path, request.body, dict(request.headers))
            answer = connection.getresponse()
        yield Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, _pieces(answer, root))
    finally:
        connection.close()


def _pieces(answer: http.client.HTTPResponse, root: str) -> Iterator[bytes]:
    left = int(answer.headers.get("content-length") or 0)
    while True:
        with _told(root):
            piece = answer.read1(PIECE)
        if not piece:
            break
        left -= len(piece)
        yield piece
    if left > 0:  # which http.client lets pass in silence
        raise AskError(f"the connection to {root} broke off: {left} bytes of the reply are missing")


@contextmanager
def _told(root: str) -> Iterator[None]:
    """What can go wrong on the wire, in words."""
    try:
        yield
    except (ConnectionRefusedError, FileNotFoundError):
        raise AskError(
            f"no gateway listens at {root}: start one with `headrace serve`, or name another with --url"
        ) from None
    except ssl.SSLCertVerificationError as error:
        raise AskError(
            f"the certificate of {root} cannot be trusted: {error.verify_message}; name the gateway with --url as its"
            " certificate does"
        ) from None
    except ssl.SSLError as error:
        raise AskError(f"no TLS with {root}: {error.reason or error}; does it speak plain http?") from None
    except TimeoutError:
        raise AskError(f"{root} does not answer") from None
    except (http.client.HTTPException, ConnectionError) as error:
        raise AskError(f"the connection to {root} broke off: {str(error) or type(error).__name__}") from None
    except OSError as error:
        raise AskError(f"cannot reach {root}: {error.strerror or error}") from None


def _connection(root: str, authorities: str) -> http.client.HTTPConnection:
    if root.startswith("unix:"):
        return _UnixConnection(root.removeprefix("unix:"))
    parts = urlsplit(root)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if parts.scheme not in {"http", "https"} or not host:
        raise AskError(f"{root} is no base URL; it begins with http:// or https://, such as http://127.0.0.1:8080")
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=CONNECT_S)
    context = ssl.create_default_context()
    if authorities:
        with _told(root):
            context.load_verify_locations(authorities)
    return http.client.HTTPSConnection(host, port, timeout=CONNECT_S, context=context)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=CONNECT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(CONNECT_S)
        self.sock.connect(self._path)
