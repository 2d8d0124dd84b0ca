"""The snapshot on the disk: what workers take, and apart from it the objects that the database had.

The control process writes it before it sends it. It holds the secrets of upstreams, hence the seal.
"""

from secrets import token_hex
from typing import Final

import msgspec

from headrace.link.address import SNAPSHOT
from headrace.link.messages import Snapshot
from headrace.link.sealed_file import SealedFile
from headrace.model.catalogue import CatalogueParts, StoredObject
from headrace.model.settings import StreamSettings

FORMAT: Final = 1


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The file's content."""

    format: int = FORMAT
    snapshot: Snapshot
    objects: tuple[StoredObject, ...] = ()
    """What the database had, as it had it: for a start while the database is away."""


SNAPSHOT_FILE: Final = SealedFile(SNAPSHOT, Kept, FORMAT)


def snapshot_of(stream: StreamSettings, parts: CatalogueParts, before: Snapshot | None = None) -> Snapshot:
    """A snapshot of this content: `before` itself where that has it, else one with a version of its own.

    Not a hash: the order within sets differs from process to process.
    """
    if before is not None and (before.stream, before.parts) == (stream, parts):
        return before
    return Snapshot(version=token_hex(8), stream=stream, parts=parts)
