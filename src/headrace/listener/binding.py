"""Addresses as bound sockets."""

import errno
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from headrace.model.settings import Address

BACKLOG: Final = 4096
"""The kernel takes the smaller of this and net.core.somaxconn (4096)."""

SOCKET_MODE: Final = 0o660
"""Of a Unix socket's file, whatever the umask: a front proxy gets in by group."""


def bind_all(addresses: Sequence[Address]) -> list[socket.socket]:
    """A bound socket for each address, or none at all. Raises OSError."""
    bound: list[socket.socket] = []
    try:
        for address in addresses:
            bound.append(bind(address))
    except OSError:
        for sock in bound:
            sock.close()
        raise
    return bound


def bind(address: Address, *, shared: bool = False) -> socket.socket:
    """A listening address as a bound socket; the file of a dead server's Unix socket is replaced. Raises OSError.

    A `shared` TCP address may be bound again by the same user's `shared` sockets (SO_REUSEPORT); the kernel spreads
    connections over those that listen. Without it, one that anybody listens on is in use.
    """
    if address.path:
        return _bind_unix(address.path)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address.host, address.port))
    except OSError:
        sock.close()
        raise
    return sock


def _bind_unix(path: str) -> socket.socket:
    """A Unix socket at `path` for owner and group; it replaces one that nobody listens on any more."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if Path(path).is_socket():
            sock.setblocking(False)  # a full queue is an answer too
            if sock.connect_ex(path) != errno.ECONNREFUSED:
                raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), path)
            Path(path).unlink()
        sock.bind(path)
        Path(path).chmod(SOCKET_MODE)  # before `listen`: until then nobody can connect
    except OSError:
        sock.close()
        raise
    return sock


def address_of(sock: socket.socket) -> Address:
    """Where a bound socket listens."""
    name = sock.getsockname()
    return Address(path=name) if sock.family == socket.AF_UNIX else Address(host=name[0], port=name[1])
