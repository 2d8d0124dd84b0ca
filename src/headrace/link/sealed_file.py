"""A file of the state directory that holds one value: sealed, whole or not there, and of the gateway's user alone.

The control process writes it; a worker that starts reads it, whoever else is away.
"""

import os
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from headrace.sealing import SealError, seal, unseal

REMEDY: Final = "the control process writes a new one"


class SealedFileError(Exception):
    """The file cannot be used; the text is a sentence that says why and what to do."""


class Content(Protocol):
    """What such a file holds: a struct that says in which format."""

    @property
    def format(self) -> int:
        """The number of its format."""


C = TypeVar("C", bound=Content)
Stamp = tuple[int, ...]


class SealedFile(Generic[C]):
    """The file called `name`, which is the seal's purpose too; `kind` and `format` are what this version writes."""

    def __init__(self, name: str, kind: type[C], format: int) -> None:
        self.name = name
        self._kind = kind
        self._format = format

    def write(self, directory: Path, secret: bytes, content: C) -> None:
        """Put it in its place, on the disk when this returns. Raises OSError; the file before stays then.

        Only one may write at a time.
        """
        sealed = seal(secret, self.name, msgspec.msgpack.encode(content))
        draft = directory / f".{self.name}-{os.getpid()}"
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123  a mode that the umask cannot widen
                file.write(sealed)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(directory / self.name)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        _sync(directory)

    def read(self, directory: Path, secret: bytes) -> C | None:
        """What the file holds; None where there is none. Raises SealedFileError."""
        path = directory / self.name
        try:
            sealed = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SealedFileError(f"{path} cannot be read: {error.strerror}") from None
        try:
            content = msgspec.msgpack.decode(unseal(secret, self.name, sealed), type=self._kind)
        except SealError as error:
            raise SealedFileError(f"{path} cannot be used: {error}; {REMEDY}") from None
        except msgspec.MsgspecError as error:
            raise SealedFileError(f"{path} is of another version: {error}; {REMEDY}") from None
        if content.format != self._format:
            raise SealedFileError(f"{path} has format {content.format}, not {self._format}; {REMEDY}")
        return content

    def stamp(self, directory: Path) -> Stamp:
        """What tells one writing of the file from another; empty where there is none. Raises OSError."""
        try:
            found = (directory / self.name).stat()
        except FileNotFoundError:
            return ()
        return (found.st_ino, found.st_size, found.st_mtime_ns)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
