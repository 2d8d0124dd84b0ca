"""What is served: the file, and under it the objects of the database, as one snapshot for workers.

    the file ────read──┬──good──▶ merged ──▶ snapshot; what is another than before is said, line by line
    objects ──take─────┘
                       └─bad (the file)───▶ its errors are said; what was served is served on

The file wins: an object of the database whose name the file has is kept there, not served, and reported.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from headrace.config.changes import changes, refused
from headrace.config.draft import Loaded, load
from headrace.config.errors import ConfigError
from headrace.config.objects import LeftOut, Merged, merge
from headrace.link.messages import Snapshot
from headrace.link.snapshot import snapshot_of
from headrace.model.catalogue import StoredObject
from headrace.model.settings import Settings


class CatalogueSource:
    """The file under `path` and the database's `objects`, for a gateway that was started with the settings `running`.

    `before` is the snapshot of an earlier run; one with the same content keeps its version. `objects_are_known` tells
    whether these are all that the database has. `say` has lines for the operator.
    """

    def __init__(
        self,
        path: Path,
        running: Settings,
        objects: Sequence[StoredObject],
        before: Snapshot | None,
        say: Callable[[str], None],
        *,
        objects_are_known: bool = True,
    ) -> None:
        self.objects = tuple(objects)
        self._are_known = objects_are_known
        self.snapshot = before
        """What is to be served; None while there was no good file."""
        self._path = path
        self._running = running
        self._say = say
        self._loaded: Loaded | None = None
        self._merged: Merged | None = None
        self._seen: tuple[int, ...] | None = None
        self._is_bad = False

    def has_changed(self) -> bool:
        """Whether the file is another than when it was last read, good or bad."""
        return self._signature() != self._seen

    async def read(self) -> bool:
        """Read the file; whether there is another snapshot. A bad one changes nothing."""
        self._seen = self._signature()
        try:
            loaded = await asyncio.to_thread(self._load)
        except ConfigError as error:
            self._is_bad = True
            for line in refused(error):
                self._say(line)
            return False
        if self._is_bad:
            self._is_bad = False
            self._say(f"{self._path}: good again")
        known = self._loaded.warnings if self._loaded is not None else loaded.warnings  # a start has said them
        self._loaded = loaded
        for warning in loaded.warnings:
            if warning not in known:
                self._say(f"warning: {warning}")
        return await self._merge()

    async def take(self, objects: Sequence[StoredObject]) -> bool:
        """Other objects of the database; whether there is another snapshot."""
        self._are_known = True
        if tuple(objects) == self.objects:
            return self._renew()
        self.objects = tuple(objects)
        return await self._merge()

    def doubt(self) -> bool:
        """The database does not answer, so there may be keys that are not known here; whether there is another
        snapshot."""
        self._are_known = False
        return self._renew()

    async def _merge(self) -> bool:
        if self._loaded is None:
            return False
        merged = await asyncio.to_thread(merge, self._loaded, self.objects)
        before, self._merged = self._merged, merged
        for line in _report(before, merged, self._running):
            self._say(line)
        return self._renew()

    def _renew(self) -> bool:
        """Whether what is to be served is another than before."""
        if self._merged is None:
            return False
        loaded = self._merged.loaded
        parts = replace(loaded.catalogue, keys_are_known=self._are_known)
        snapshot = snapshot_of(loaded.settings.stream, parts, self.snapshot)
        is_new, self.snapshot = snapshot is not self.snapshot, snapshot
        return is_new

    def _load(self) -> Loaded:
        return load(self._path).resolve(self._running.state.secret)

    def _signature(self) -> tuple[int, ...]:
        """What tells one state of the file from another; a link is followed. Empty where there is no file."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return (found.st_ino, found.st_size, found.st_mtime_ns)


def _report(before: Merged | None, after: Merged, running: Settings) -> list[str]:
    """What is to be said of a merge: what it changed, and which objects are not served from now on."""
    lines: list[str] = []
    if before is not None:
        found = changes(before.loaded, after.loaded, running)
        lines += (f"reloaded: {line}" for line in found.lines or ("nothing has changed",))
    known: set[LeftOut] = {*before.shadowed, *before.broken} if before is not None else set()
    lines += (f"not served: {one}" for one in (*after.shadowed, *after.broken) if one not in known)
    lines += (f"warning: {one}" for one in after.warnings if before is None or one not in before.warnings)
    return lines
