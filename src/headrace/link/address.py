"""Where the link is: its files in the state directory, whose path may be longer than a socket's address can be."""

import errno
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NAME: Final = "link.sock"
SNAPSHOT: Final = "snapshot"
"""The file that `snapshot` reads and writes."""
MOST_BYTES: Final = 103
"""Of a socket's path, with room for the NUL: 108 on Linux, 104 on macOS."""
BACKLOG: Final = 128


def listen(directory: Path) -> socket.socket:
    """A listening socket for the link, of this user only; it replaces one that lies there. Raises OSError.

    Only the holder of the directory's lock may call it.
    """
    path = directory / NAME
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _reachable(path) as address:
            sock.bind(address)
        path.chmod(0o600)  # before `listen`: until then nobody can connect
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def connect(directory: Path) -> socket.socket:
    """A connection to the link, at once: it waits in the queue where nobody accepts. Raises OSError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        with _reachable(directory / NAME) as address:
            sock.connect(address)
    except OSError:
        sock.close()
        raise
    return sock


@contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """An address that leads to `path`, within: a long one is named through a descriptor of its directory."""
    if len(os.fsencode(path)) <= MOST_BYTES:
        yield str(path)
        return
    if sys.platform != "linux":
        raise OSError(errno.ENAMETOOLONG, "the path of state.directory is too long for a socket in it", str(path))
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{path.name}"
    finally:
        os.close(descriptor)
