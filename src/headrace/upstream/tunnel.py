"""Asks an HTTP proxy for a tunnel (CONNECT, RFC 9110 section 9.3.6), on a socket that is connected to it.

The proxy resolves the upstream's name. What follows in the tunnel is TLS or plain HTTP with the upstream itself, which
speaks only when spoken to: a byte behind the proxy's head is a fault of the proxy.
"""

import asyncio
import re
import socket
from typing import Final

from headrace.model.channel import Proxy

MAX_HEAD: Final = 16 * 1024
"""Bytes of a proxy's answer, interim ones included."""

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: ([^\r\n]*))?\r?\n")
_END = re.compile(rb"\r?\n\r?\n")


class RefusedError(Exception):
    """The proxy has answered, and not with a tunnel. Another of its addresses would say the same."""


async def open_tunnel(loop: asyncio.AbstractEventLoop, sock: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """Have `sock` lead to `host` and `port`. Raises RefusedError, or OSError where the connection breaks."""
    await loop.sock_sendall(sock, _request(proxy, host, port))
    answer = b""
    while True:
        end = _END.search(answer)
        if end is not None:
            status, phrase = _status(answer)
            if status >= 200:
                break
            answer = answer[end.end() :]
            continue
        if len(answer) > MAX_HEAD:
            raise RefusedError("its answer to CONNECT is too large")
        data = await loop.sock_recv(sock, 4096)
        if not data:
            raise ConnectionResetError("the proxy closed the connection before it answered CONNECT")
        answer += data
    if status >= 300:
        raise RefusedError(f"it answered CONNECT with {status} {phrase}".rstrip())
    if end.end() != len(answer):
        raise RefusedError("it sent more than its answer to CONNECT")


def _request(proxy: Proxy, host: str, port: int) -> bytes:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    credentials = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{credentials}\r\n".encode("ascii")


def _status(answer: bytes) -> tuple[int, str]:
    """The status and what can be shown of its phrase."""
    line = _STATUS.match(answer)
    if line is None:
        raise RefusedError("it does not speak HTTP")
    phrase = (line[2] or b"").decode("latin-1")
    return int(line[1]), "".join(sign for sign in phrase if sign.isascii() and sign.isprintable())[:80]
