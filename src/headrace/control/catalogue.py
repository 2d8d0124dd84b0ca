"""What is served, from the file: read at the start and again when it has changed; a bad file changes nothing.

read ──good──▶ what was added, changed, removed; which changes wait for a restart
     └─bad───▶ its errors; what was served is served on
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Protocol, TypeVar

from headrace.config.draft import Loaded, load
from headrace.config.errors import ConfigError
from headrace.model.catalogue import CatalogueParts
from headrace.model.settings import ServerSettings, StateSettings, StreamSettings


class Named(Protocol):
    """A channel, a model or a key."""

    @property
    def name(self) -> str:
        """What it is called; no two of a kind have the same."""


N = TypeVar("N", bound=Named)


class CatalogueSource:
    """The file under `path`, for a gateway that runs with these settings. `say` has lines for the operator."""

    def __init__(self, path: Path, server: ServerSettings, state: StateSettings, say: Callable[[str], None]) -> None:
        self._path = path
        self._server = server
        self._state = state
        self._say = say
        self._loaded: Loaded | None = None
        self._seen: tuple[int, ...] | None = None

    @property
    def stream(self) -> StreamSettings:
        """The stream settings; for after a good read."""
        assert self._loaded is not None
        return self._loaded.settings.stream

    @property
    def parts(self) -> CatalogueParts:
        """What is served; for after a good read."""
        assert self._loaded is not None
        return self._loaded.catalogue

    def has_changed(self) -> bool:
        """Whether the file is another than when it was last read, good or bad."""
        return self._signature() != self._seen

    async def read(self) -> bool:
        """Read the file; whether it is good. What is to be said of it is said."""
        self._seen = self._signature()
        try:
            loaded = await asyncio.to_thread(self._load)
        except ConfigError as error:
            self._say(
                str(error) if self._loaded is None else f"{error}\nnothing was changed: what was served is served on"
            )
            return False
        before, self._loaded = self._loaded, loaded
        if before is not None:
            for line in reload_report(before, loaded, self._server, self._state):
                self._say(line)
        return True

    def _load(self) -> Loaded:
        return load(self._path).resolve(self._state.secret)

    def _signature(self) -> tuple[int, ...]:
        """What tells one state of the file from another; a link is followed. Empty where there is no file."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return (found.st_ino, found.st_size, found.st_mtime_ns)


def reload_report(before: Loaded, after: Loaded, server: ServerSettings, state: StateSettings) -> Iterator[str]:
    """Sentences on what a reload changed; `server` and `state` are what the gateway runs with."""
    old, new = before.catalogue, after.catalogue
    changes = [
        *_changes("channel", old.channels, new.channels),
        *_changes("model", old.models, new.models),
        *_changes("key", old.keys, new.keys),
    ]
    if before.settings.stream != after.settings.stream:
        changes.append("stream options changed")
    yield f"reloaded: {'; '.join(changes) if changes else 'nothing has changed'}"
    waiting = [*_differing("server", server, after.settings.server), *_differing("state", state, after.settings.state)]
    if waiting:
        yield f"these changes need a restart: {', '.join(waiting)}"


def _changes(kind: str, old: Sequence[N], new: Sequence[N]) -> Iterator[str]:
    was, now = {one.name: one for one in old}, {one.name: one for one in new}
    for word, names in (
        ("added", [name for name in now if name not in was]),
        ("changed", [name for name in now if name in was and was[name] != now[name]]),
        ("removed", [name for name in was if name not in now]),
    ):
        if names:
            yield f"{kind} {_listed(names)} {word}"


def _listed(names: Sequence[str], most: int = 10) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _differing(
    section: str, one: ServerSettings | StateSettings, other: ServerSettings | StateSettings
) -> Iterator[str]:
    for field in fields(one):
        if getattr(one, field.name) != getattr(other, field.name) and field.name != "secret":
            yield f"{section}.{field.name}"
