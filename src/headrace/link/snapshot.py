"""The snapshot on the disk: sealed, whole or not there, so that a worker starts while nobody can give it one.

    <directory>/snapshot        what workers take, and apart from it the objects that the database had

The control process writes it before it sends it. It holds the secrets of upstreams, hence the seal.
"""

import os
from pathlib import Path
from secrets import token_hex
from typing import Final

import msgspec

from headrace.link.address import SNAPSHOT
from headrace.link.messages import Snapshot
from headrace.model.catalogue import CatalogueParts, StoredObject
from headrace.model.settings import StreamSettings
from headrace.sealing import SealError, seal, unseal

PURPOSE: Final = "snapshot"
FORMAT: Final = 1


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The file's content."""

    format: int = FORMAT
    snapshot: Snapshot
    objects: tuple[StoredObject, ...] = ()
    """What the database had, as it had it: for a start while the database is away."""


class SnapshotError(Exception):
    """The file cannot be used; the text is a sentence that says why and what to do."""


def snapshot_of(stream: StreamSettings, parts: CatalogueParts, before: Snapshot | None = None) -> Snapshot:
    """A snapshot of this content: `before` itself where that has it, else one with a version of its own.

    Not a hash: the order within sets differs from process to process.
    """
    if before is not None and (before.stream, before.parts) == (stream, parts):
        return before
    return Snapshot(version=token_hex(8), stream=stream, parts=parts)


def write(directory: Path, secret: bytes, kept: Kept) -> None:
    """Put the file in its place, on the disk when this returns. Raises OSError; the file before stays then."""
    sealed = seal(secret, PURPOSE, msgspec.msgpack.encode(kept))
    draft = directory / f".{SNAPSHOT}-{os.getpid()}"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123  a mode that the umask cannot widen
            file.write(sealed)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(directory / SNAPSHOT)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    _sync(directory)


def read(directory: Path, secret: bytes) -> Kept | None:
    """What the file holds; None where there is none. Raises SnapshotError."""
    path = directory / SNAPSHOT
    try:
        sealed = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotError(f"{path} cannot be read: {error.strerror}") from None
    try:
        kept = msgspec.msgpack.decode(unseal(secret, PURPOSE, sealed), type=Kept)
    except SealError as error:
        raise SnapshotError(f"{path} cannot be used: {error}; the control process writes a new one") from None
    except msgspec.MsgspecError as error:
        raise SnapshotError(f"{path} is of another version: {error}; the control process writes a new one") from None
    if kept.format != FORMAT:
        raise SnapshotError(f"{path} has format {kept.format}, not {FORMAT}; the control process writes a new one")
    return kept


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
