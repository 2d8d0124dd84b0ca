"""Where a worker's journal lies, and how far it has been read.

    <directory>/journal/<node>/<slot>/<incarnation>/<n>.segment

An incarnation is one life of one worker: no two processes ever write to one. Names that begin with a dot are not yet
there: what they name is renamed into its place once it is whole and locked.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

SUFFIX = ".segment"


class Position(msgspec.Struct, frozen=True):
    """How far an incarnation has been read: a segment's number, and bytes from its beginning. `Position()` is the
    beginning of all."""

    segment: int = 1
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One life of one worker: the node and the slot that it served in, its own name, and its folder."""

    node: str
    slot: int
    name: str
    path: Path

    @classmethod
    def of(cls, directory: Path, node: str, slot: int, name: str) -> Self:
        """The one of this name under the state directory, whether it is there or not."""
        return cls(node, slot, name, directory / "journal" / node / str(slot) / name)

    def segment(self, number: int) -> Path:
        """A segment's file."""
        return self.path / f"{number}{SUFFIX}"


def segment_numbers(folder: Path) -> list[int]:
    """The numbers of the segments in an incarnation's folder, ascending; none where it is gone."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return []
    stems = [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
    return sorted(int(stem) for stem in stems if stem.isascii() and stem.isdecimal())


def incarnations(directory: Path) -> list[Incarnation]:
    """All under a state directory, the oldest first: their names sort by time. A missing directory has none."""
    found = [
        Incarnation(path.parent.parent.name, int(path.parent.name), path.name, path)
        for path in (directory / "journal").glob("*/*/*")
        if path.parent.name.isascii() and path.parent.name.isdecimal() and not path.name.startswith(".")
    ]
    return sorted((one for one in found if one.path.is_dir()), key=lambda one: (one.name, one.node, one.slot))
