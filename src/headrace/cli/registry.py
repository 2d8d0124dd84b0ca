"""What a gateway would serve by its file and its database, and the way to change what the database has of it.

with registry(config) as found:      the file, the objects, both merged as the control process does it
    found.create(object)             judged first, by the file's own validators; ends the command where it is bad
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import typer

from headrace.cli.configuration import BAD_FILE
from headrace.cli.gateway_file import GatewayFile, read_gateway_file
from headrace.cli.object_document import ObjectDocument
from headrace.cli.output import fail
from headrace.cli.state_child import StateChild, StateFailedError, StatePlace, at_state
from headrace.config.draft import load_state
from headrace.config.errors import ConfigError
from headrace.config.objects import merge
from headrace.config.secret import STATE_SECRET_BYTES, generated_secret
from headrace.config.source import place
from headrace.model.catalogue import CatalogueParts, ObjectKind, StoredObject
from headrace.state.errands import Change, CreateObject, ListObjects, OneObject, RemoveObject, ReplaceObject, Words

BAD_VALUE = 2


class Deleted(msgspec.Struct):
    """What `--json` prints where an object was removed."""

    deleted: str


@dataclass(frozen=True, slots=True)
class PutAll:
    """Names of objects that were put."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)


class Registry:
    """The objects of one gateway. What is refused ends the command, with the reason."""

    def __init__(self, file: GatewayFile, secret: bytes, child: StateChild) -> None:
        self.file = file
        self.secret = secret
        """The gateway's own."""
        self.child = child
        """For orders of other kinds."""
        self._loaded = file.draft.resolve(secret)
        self.stored = _listed(child)
        self.merged = merge(self._loaded, self.stored)
        """What would be served now."""

    @property
    def parts(self) -> CatalogueParts:
        """What would be served now."""
        return self.merged.loaded.catalogue

    def find(self, kind: ObjectKind, name: str) -> StoredObject | None:
        """The object of the database; None where it has none of this name."""
        return next((one for one in self.stored if (one.kind, one.name) == (kind, name)), None)

    def own(self, kind: ObjectKind, name: str) -> StoredObject:
        """The object of the database, to be changed. Ends the command where it is not there to be changed."""
        found, where = self.find(kind, name), self.declared_at(kind, name)
        if found is not None:
            if where:
                typer.echo(f"warning: {kind.value} {name} is declared in {where} too, and that one is served", err=True)
            return found
        if where:
            fail(f"{kind.value} {name} is declared in {where}: change it there; a changed file is taken by itself")
        fail(f"there is no {kind.value} {name}; `headrace {kind.value}s list` shows all")

    def declared_at(self, kind: ObjectKind, name: str) -> str:
        """Where the file has it, as `headrace.yaml:7`; empty where it has not."""
        drafted = self.file.draft
        names = [one.name for one in (drafted.keys if kind is ObjectKind.KEY else drafted.owners)]
        if kind in {ObjectKind.KEY, ObjectKind.OWNER}:
            location: tuple[str | int, ...] = (f"{kind.value}s", names.index(name)) if name in names else ()
        else:
            section = drafted.models if kind is ObjectKind.MODEL else drafted.channels
            location = (f"{kind.value}s", name) if any(one.name == name for one in section) else ()
        return f"{self.file.path}:{place(self.file.root, location)[0]}" if location else ""

    @property
    def file_parts(self) -> CatalogueParts:
        """What the file alone declares."""
        return self._loaded.catalogue

    def alone(self, one: StoredObject) -> CatalogueParts:
        """What an object would come to if the file had no key, no owner, and no model of its name."""
        channels = self.file_parts.channels
        bare = CatalogueParts(channels, tuple(other for other in self.file_parts.models if other.name != one.name))
        return merge(replace(self._loaded, catalogue=bare), [one]).loaded.catalogue

    def problem(self, one: StoredObject) -> str:
        """Why an object of the database is not served; empty where it is."""
        unserved = (*self.merged.shadowed, *self.merged.broken)
        return next((left.reason for left in unserved if (left.kind, left.name) == (one.kind, one.name)), "")

    # ---- changes

    def create(self, one: StoredObject) -> None:
        """Add an object."""
        if where := self.declared_at(one.kind, one.name):
            fail(f"{one.kind.value} {one.name} is there already, in {where}: choose another name")
        if self.find(one.kind, one.name) is not None:
            fail(f"{one.kind.value} {one.name} is there already, in the database: choose another name")
        self._judge(one)
        self._do(CreateObject(object=one))

    def replace(self, one: StoredObject, before: StoredObject) -> None:
        """Put another document in the place of `before`."""
        self._judge(one)
        self._do(ReplaceObject(object=one, before=before))

    def put_all(self, objects: Sequence[StoredObject], *, dry_run: bool) -> "PutAll":
        """Add the objects, or put them in the place of those of their names; one of them at a time."""
        done = PutAll()
        for one in objects:
            before = self.find(one.kind, one.name)
            if before is None:
                done.added.append(one.name)
            elif ObjectDocument(before) == ObjectDocument(one):
                done.unchanged.append(one.name)
                continue
            else:
                done.changed.append(one.name)
            if not dry_run:
                self._do(CreateObject(object=one) if before is None else ReplaceObject(object=one, before=before))
        return done

    def remove(self, one: StoredObject) -> None:
        """Remove an object of the database."""
        self._do(RemoveObject(kind=one.kind, name=one.name))

    def _judge(self, one: StoredObject) -> None:
        """End the command where the object would not be served; say what would have no effect."""
        others = [other for other in self.stored if (other.kind, other.name) != (one.kind, one.name)]
        merged = merge(self._loaded, [*others, one])
        faults = [left.reason for left in merged.broken if (left.kind, left.name) == (one.kind, one.name)]
        if faults:
            fail(f"{one.kind.value} {one.name} cannot be: {faults[0]}", BAD_VALUE)
        for warning in merged.warnings:
            if warning.startswith(f"{one.kind.value} {one.name}: "):
                typer.echo(f"warning: {warning}", err=True)
        self.stored = (*others, one)
        self.merged = merged

    def _do(self, order: Change) -> None:
        try:
            self.child.do(order)
        except StateFailedError as error:
            fail(str(error))


@contextmanager
def registry(config: Path, *, writes: bool = False) -> Iterator[Registry]:
    """The objects of the gateway with this file. Ends the command where the file is bad, or the database cannot be
    asked. With `writes` the gateway's own secret is made where it is not there yet."""
    file = read_gateway_file(config)
    place = _place(config, writes)
    with at_state(place) as child:
        try:
            found = Registry(file, place.secret, child)
        except StateFailedError as error:
            fail(str(error))
        yield found


def _place(config: Path, writes: bool) -> StatePlace:
    try:
        state = load_state(config, secrets=True)
        directory = Path(state.directory)
        secret = state.secret
        if not secret and (writes or (directory / "secret").exists()):
            secret = generated_secret(directory)
    except ConfigError as error:
        fail(str(error), BAD_FILE)
    # Without a secret there is nothing that was sealed under it.
    return StatePlace(directory, state.database, secret or bytes(STATE_SECRET_BYTES))


def _listed(child: StateChild) -> tuple[StoredObject, ...]:
    """All objects; those that cannot be read are said."""
    found: list[StoredObject] = []
    for answer in child.ask(ListObjects()):
        match answer:
            case OneObject():
                found.append(answer.object)
            case Words():
                typer.echo(f"warning: {answer.text}", err=True)
            case _:
                pass
    return tuple(found)
