"""Objects of the database beside the file's own: `merge` adds what is whole, and says what it left out and why.

The documents have the file's shape and go through the file's validators. The file wins: an object whose name the file
has is kept out of the way and reported as shadowed, and so is a price for a model that has its own. A broken one is
left out, and so is a model that needs it; nothing else suffers. A document may not refer to the environment or to files
of secrets: whoever may write one through an API must not be able to read what the gateway can.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from headrace.config.checks import Finding, check_channel, check_model, check_prices
from headrace.config.convert import (
    channel_from_options,
    key_from_options,
    model_from_options,
    owner_from_options,
    prices_from_options,
)
from headrace.config.draft import Loaded
from headrace.config.errors import Fault
from headrace.config.forms import Reading
from headrace.config.idle import idle_options
from headrace.config.json_source import read_document
from headrace.config.options.group import Options
from headrace.config.options.objects import (
    ChannelOptions,
    ModelOptions,
    OwnerOptions,
    StoredKeyOptions,
    StoredPriceOptions,
)
from headrace.config.places import read_model_name, read_name
from headrace.config.sections import SectionReader
from headrace.config.source import Block, fault, place
from headrace.model.catalogue import CatalogueParts, ObjectKind, StoredObject
from headrace.model.channel import Channel, Model
from headrace.model.key import Former, Key, digest_key, key_digest
from headrace.model.owner import Owner
from headrace.model.price import Price

G = TypeVar("G", bound=Options)


_ORDER = (ObjectKind.CHANNEL, ObjectKind.MODEL, ObjectKind.PRICE, ObjectKind.OWNER, ObjectKind.KEY)
"""A model needs its channels, a price its model."""
SHOWN_UNUSED = 3


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An object of the database that is not served. The reason holds no secret."""

    kind: ObjectKind
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind.value} {self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Merged:
    """The file with the database's objects: what is served, and what is not."""

    loaded: Loaded
    shadowed: tuple[LeftOut, ...]
    """Of a name that the file has too; prices of models that have their own."""
    broken: tuple[LeftOut, ...]
    warnings: tuple[str, ...]
    """Options of objects that have no effect; prices of models that are not there."""


class _BrokenError(Exception):
    """This object cannot be served; the text says why."""


def merge(loaded: Loaded, objects: Sequence[StoredObject]) -> Merged:
    """The file's configuration with the database's objects. Never raises for an object, whatever it holds."""
    merger = _Merger(loaded)
    for one in sorted(objects, key=lambda one: (_ORDER.index(one.kind), one.name)):
        merger.add(one)
    return merger.merged()


@dataclass(slots=True)
class _Merger:
    """Collects what is good, by kind and name, in the order in which it comes: the file's first."""

    loaded: Loaded
    shadowed: list[LeftOut] = field(default_factory=list)
    broken: list[LeftOut] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    channels: dict[str, Channel] = field(init=False)
    models: dict[str, Model] = field(init=False)
    keys: dict[str, Key] = field(init=False)
    owners: dict[str, Owner] = field(init=False)
    digests: dict[bytes, str] = field(init=False)
    unused: list[str] = field(default_factory=list)
    reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        parts = self.loaded.catalogue
        self.channels = {one.name: one for one in parts.channels}
        self.models = {one.name: one for one in parts.models}
        self.keys = {one.name: one for one in parts.keys}
        self.owners = {one.name: one for one in parts.owners}
        self.digests = {one.digest: one.name for one in parts.keys}
        self.reading = Reading(self.loaded.ground.folder, {}, references=False)

    def add(self, one: StoredObject) -> None:
        if reason := self._shadow(one):
            self.shadowed.append(LeftOut(one.kind, one.name, reason))
            return
        try:
            self._take(one)
        except _BrokenError as error:
            self.broken.append(LeftOut(one.kind, one.name, str(error)))

    def merged(self) -> Merged:
        parts = CatalogueParts(
            tuple(self.channels.values()),
            tuple(self.models.values()),
            tuple(self.keys.values()),
            tuple(self.owners.values()),
        )
        loaded = replace(self.loaded, catalogue=parts)
        warnings = (*self.warnings, *_unused_prices(self.unused))
        return Merged(loaded, tuple(self.shadowed), tuple(self.broken), warnings)

    def _shadow(self, one: StoredObject) -> str:
        """Why what the object would give is there already; empty where it is not."""
        match one.kind:
            case ObjectKind.CHANNEL:
                is_there = one.name in self.channels
            case ObjectKind.MODEL:
                is_there = one.name in self.models
            case ObjectKind.OWNER:
                is_there = one.name in self.owners
            case ObjectKind.KEY:
                is_there = one.name in self.keys
            case ObjectKind.PRICE:
                model = self.models.get(one.name)
                return "the model has a price of its own, and that counts" if model is not None and model.prices else ""
        return "the file has one of this name, and that is served" if is_there else ""

    def _take(self, one: StoredObject) -> None:
        root, location = _tree(one)
        match one.kind:
            case ObjectKind.CHANNEL:
                channel = self._options(ChannelOptions, one, root, location)
                _refuse(root, location, check_channel(root, one.name, channel))
                self.channels[one.name] = channel_from_options(one.name, channel)
            case ObjectKind.MODEL:
                model, stream = self._options(ModelOptions, one, root, location), self.loaded.settings.stream
                _refuse(root, location, check_model(one.name, model, self.channels, stream))
                self.models[one.name] = model_from_options(one.name, model, stream)
            case ObjectKind.PRICE:
                price = self._options(StoredPriceOptions, one, root, location).price
                _refuse(root, location, check_prices((*location, "price"), price))
                self._give(one.name, prices_from_options(price))
            case ObjectKind.OWNER:
                owner = self._options(OwnerOptions, one, root, location)
                self.owners[one.name] = owner_from_options(owner, self.loaded.ground.waits)
            case ObjectKind.KEY:
                self._key(self._options(StoredKeyOptions, one, root, location))

    def _give(self, name: str, prices: tuple[Price, ...]) -> None:
        if name in self.models:
            self.models[name] = replace(self.models[name], prices=prices)
        else:
            self.unused.append(name)

    def _key(self, options: StoredKeyOptions) -> None:
        if options.secret is not None:
            digest = key_digest(digest_key(self.loaded.settings.state.secret), options.secret.text.encode())
        elif not (digest := options.digest):
            raise _BrokenError("has neither digest nor secret")
        former = tuple(Former(one.digest, one.until) for one in options.former)
        digests = (digest, *(one.digest for one in former))
        for other in filter(None, map(self.digests.get, digests)):
            raise _BrokenError(f"has the same secret as key {other}")
        self.digests |= dict.fromkeys(digests, options.name)
        key = key_from_options(options, self.loaded.ground.waits)
        self.keys[options.name] = replace(key, digest=digest, former=former, stop=options.stop)

    def _options(self, kind: type[G], one: StoredObject, root: Block, location: tuple[str, ...]) -> G:
        reader = SectionReader(root, self.reading)
        options = reader.section(kind, location)
        if options is None:
            raise _BrokenError(_words(root, location, reader.faults))
        for idle in idle_options(options):
            path = place(Block(), idle.location)[1]
            self.warnings.append(f"{one.kind.value} {one.name}: {path}: {idle.message}")
        return options


def _tree(one: StoredObject) -> tuple[Block, tuple[str, ...]]:
    """The object as a file with nothing else would have it, and where it stands there."""
    try:
        block = read_document(one.document)
        (read_model_name if one.kind in {ObjectKind.MODEL, ObjectKind.PRICE} else read_name)(one.name)
    except ValueError as error:
        raise _BrokenError(str(error)) from None
    root = Block()
    if one.kind in {ObjectKind.KEY, ObjectKind.OWNER}:
        if block.setdefault("name", one.name) != one.name:
            raise _BrokenError("has another name inside")
        root[one.kind.value] = block
        return root, (one.kind.value,)
    root[section := f"{one.kind.value}s"] = inner = Block()
    inner[one.name] = block
    return root, (section, one.name)


def _unused_prices(names: Sequence[str]) -> Iterator[str]:
    """One sentence for all of them: a whole price list may have been stored."""
    if names:
        more = f" and {len(names) - SHOWN_UNUSED} more" if len(names) > SHOWN_UNUSED else ""
        yield f"prices of the database for no model of this name: {', '.join(names[:SHOWN_UNUSED])}{more}"


def _refuse(root: Block, location: tuple[str, ...], findings: Iterator[Finding]) -> None:
    if faults := [fault(root, where, what) for where, what in findings]:
        raise _BrokenError(_words(root, location, faults))


def _words(root: Block, location: tuple[str, ...], faults: Sequence[Fault]) -> str:
    """What is wrong, its paths as from the object on."""
    whole = place(root, location)[1]
    paths = (one.path.removeprefix(whole).removeprefix(".") for one in faults)
    return "; ".join(f"{path}: {one.message}" if path else one.message for path, one in zip(paths, faults, strict=True))
