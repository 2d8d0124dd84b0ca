"""What a gateway is by its state directory: one at a time (a lock), and a node with a name of its own."""

import fcntl
import os
from base64 import b32encode
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

LOCK: Final = "lock"
NODE: Final = "node"
NODE_CHARACTERS: Final = 8


class InUseError(Exception):
    """Another gateway serves from this directory; the text is a sentence."""


class Lock:
    """The lock on a state directory, held until `close` or the end of the process.

    Its descriptor is closed in every child, so it ends with its holder though children live on.
    """

    def __init__(self, directory: Path) -> None:
        """Take it, making the directory where it is not there. Raises InUseError and OSError."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 32).decode("ascii", "replace").strip()
            os.close(self._file)
            who = f" (pid {holder})" if holder.isdigit() else ""
            raise InUseError(
                f"another headrace{who} serves from {directory}; stop it, or give this one a state.directory of its own"
            ) from None
        except OSError:
            os.close(self._file)
            raise
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    @classmethod
    def inherited(cls, descriptor: int) -> Self:
        """One that this process took before it became another program."""
        made = cls.__new__(cls)
        made._file = descriptor
        return made

    @property
    def descriptor(self) -> int:
        """Of the lock's file."""
        return self._file

    def close(self) -> None:
        """Let it go."""
        os.close(self._file)


def node_of(directory: Path) -> str:
    """The directory's node: 8 characters of base32, made once. For the holder of the lock. Raises OSError."""
    path = directory / NODE
    with suppress(FileNotFoundError):
        name = path.read_text("ascii", "replace").strip()
        if name.isalnum():
            return name
    name = b32encode(os.urandom(5)).decode().lower()
    draft = directory / f".{NODE}-{os.getpid()}"
    draft.write_text(f"{name}\n", "ascii")
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.replace(path)
    return name
