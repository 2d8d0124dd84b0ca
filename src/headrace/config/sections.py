"""Validates each section of the file by itself, so that one bad section hides no fault of another."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from headrace.config.errors import Fault
from headrace.config.forms import Reading, closest, wrong_shape
from headrace.config.options.file import FileOptions
from headrace.config.options.group import Options, group_within, is_mapping, written
from headrace.config.options.objects import ChannelOptions, KeyOptions, ModelOptions, OwnerOptions
from headrace.config.options.settings import ServerOptions, StateOptions, StreamOptions
from headrace.config.options.spending import WaitOptions
from headrace.config.places import read_model_name, read_name
from headrace.config.source import Block, Items, Location, fault, has, value_at

G = TypeVar("G", bound=Options)


@dataclass(frozen=True, slots=True)
class Sections:
    """The file's sections; None stands for one that has faults."""

    root: Block = field(repr=False)
    server: ServerOptions | None
    state: StateOptions | None
    stream: StreamOptions | None
    limits: WaitOptions | None
    channels: Mapping[str, ChannelOptions | None]
    models: Mapping[str, ModelOptions | None]
    keys: Sequence[KeyOptions | None]
    owners: Sequence[OwnerOptions | None]


def read_sections(root: Block, reading: Reading) -> tuple[Sections, tuple[Fault, ...]]:
    """All sections, and what is wrong within them."""
    reader = SectionReader(root, reading)
    for name in root:
        if name not in FileOptions.model_fields:
            reader.fault((name,), _unknown(FileOptions, name))
    sections = Sections(
        root,
        reader.section(ServerOptions, ("server",)),
        reader.section(StateOptions, ("state",)),
        reader.section(StreamOptions, ("stream",)),
        reader.section(WaitOptions, ("limits",)),
        {name: reader.section(ChannelOptions, ("channels", name)) for name in reader.names("channels")},
        {name: reader.section(ModelOptions, ("models", name)) for name in reader.names("models")},
        [reader.section(KeyOptions, ("keys", index)) for index in reader.indexes("keys")],
        [reader.section(OwnerOptions, ("owners", index)) for index in reader.indexes("owners")],
    )
    return sections, tuple(reader.faults)


class SectionReader:
    """Validates parts of one file, or of what is of its shape, and collects what is wrong with them."""

    def __init__(self, root: Block, reading: Reading) -> None:
        self.faults: list[Fault] = []
        self._root = root
        self._reading = reading

    def fault(self, location: Location, message: str) -> None:
        self.faults.append(fault(self._root, location, message))

    def section(self, kind: type[G], location: tuple[str | int, ...]) -> G | None:
        """The section at `location`; absent or empty, it has its defaults."""
        value = value_at(self._root, location)
        if value is None:
            value = Block()
        if not isinstance(value, Block):
            self.fault(location, "must be a mapping of options")
            return None
        try:
            return kind.model_validate(value, context=self._reading)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                if one["type"] == "too_short" and one["input"]:
                    continue  # pydantic counts the good items only; the bad ones have faults of their own
                where = self._location(location, one["loc"], one["type"] == "missing")
                self.fault(where, _message(kind, one["type"], one["loc"], one["input"], one.get("ctx", {})))
            return None

    def names(self, section: str) -> Iterator[str]:
        """The names in a section that maps names to options; those that cannot be names are faults."""
        value = self._root.get(section)
        if value is None:
            return
        if not isinstance(value, Block):
            self.fault((section,), "must be a mapping of names to options")
            return
        for name in value:
            try:
                if section == "models":
                    read_model_name(name)
                else:
                    read_name(name)
            except ValueError as error:
                self.fault((section, name), f"the name {error}")
            yield name

    def indexes(self, section: str) -> Iterator[int]:
        """The indexes of a section that is a list."""
        value = self._root.get(section)
        if isinstance(value, Items):
            yield from range(len(value))
        elif value is not None:
            self.fault((section,), "must be a list of mappings, each with a name")

    def _location(self, section: tuple[str | int, ...], inner: Location, missing: bool) -> Location:
        """Where an error stands in the file, without pydantic's own markers and the index in an unwritten list."""
        location = section
        for part in inner:
            if has(self._root, (*location, part)):
                location = (*location, part)
        return (*location, inner[-1]) if missing else location


def _message(kind: type[Options], error: str, location: Location, value: object, context: Mapping[str, Any]) -> str:
    match error:
        case "value_error":
            return str(context["error"])
        case "missing":
            return "is required"
        case "extra_forbidden":
            return _unknown(_group_at(kind, location[:-1]), str(location[-1]))
        case "too_short":
            return "needs at least one item"
    shape = "a list" if error == "tuple_type" else "a mapping of options"
    if value is None:
        return f"{wrong_shape(value)}; it takes {shape}"
    return f"must be {shape}"


def _unknown(group: type[Options], name: str) -> str:
    names = list(written(group))
    return f"unknown option{closest(name, names)}; allowed here: {', '.join(names)}"


def _group_at(kind: type[Options], location: Location) -> type[Options]:
    """The group of options that stands at a location inside `kind`."""
    parts = iter(location)
    for part in parts:
        if isinstance(part, str):
            field = written(kind)[part]
            inner = group_within(field)
            assert inner is not None, "an unknown name can only stand in a group"
            kind = inner
            if is_mapping(field):
                next(parts)  # the name that the file chose
    return kind
