"""Each object of one kind with where it is declared, and whether it is served: the file's, then the database's."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from headrace.cli.registry import Registry
from headrace.model.catalogue import CatalogueParts, ObjectKind

FILE: Final = "file"
DATABASE: Final = "database"
SERVED: Final = "active"
SHADOWED: Final = "shadowed"
BROKEN: Final = "broken"


class Named(Protocol):
    """An object of a catalogue."""

    @property
    def name(self) -> str:
        """Its name among those of its kind."""


N = TypeVar("N", bound=Named)


@dataclass(frozen=True, slots=True)
class Standing(Generic[N]):
    """One declaration of an object."""

    name: str
    source: str
    """`file` or `database`."""
    state: str
    """`active`; `shadowed`: the file has another of its name; `broken`: it cannot be served."""
    problem: str
    """Why it is not served; empty where it is."""
    value: N | None
    """None for one that is broken."""


def standings(found: Registry, kind: ObjectKind, of: Callable[[CatalogueParts], Sequence[N]]) -> Iterator[Standing[N]]:
    """All declarations by name. `of` takes this kind's objects out of a catalogue."""
    from_file = {one.name for one in of(found.file_parts)}
    stored = {one.name: one for one in found.stored if one.kind is kind}
    served = {one.name: one for one in of(found.parts)}
    for name in sorted(served.keys() | stored.keys()):
        if name in served:
            yield Standing(name, FILE if name in from_file else DATABASE, SERVED, "", served[name])
        if name in stored and (name in from_file or name not in served):
            alone = next((one for one in of(found.alone(stored[name])) if one.name == name), None)
            state = SHADOWED if name in from_file and alone is not None else BROKEN
            yield Standing(name, DATABASE, state, found.problem(stored[name]), alone)
