"""The parts of a catalogue, from wherever they come: the file, the database, a snapshot."""

from dataclasses import dataclass, field
from enum import Enum

from headrace.model.channel import Channel, Model
from headrace.model.key import Key
from headrace.model.owner import Owner


@dataclass(frozen=True, slots=True)
class CatalogueParts:
    """Channels, models, keys and owners in the order of their source. Every route names one of the channels; a key's
    owner may have no more than its name."""

    channels: tuple[Channel, ...] = ()
    models: tuple[Model, ...] = ()
    keys: tuple[Key, ...] = ()
    owners: tuple[Owner, ...] = ()
    keys_are_known: bool = True
    """Whether there are no other keys: not while the database, which may have some, cannot be asked."""


class ObjectKind(Enum):
    """What a database can hold besides the file."""

    CHANNEL = "channel"
    MODEL = "model"
    KEY = "key"
    OWNER = "owner"
    PRICE = "price"
    """Of the model, or the pattern, of its name."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object of the database, its secrets in the clear."""

    kind: ObjectKind
    name: str
    document: str = field(repr=False)
    """JSON of the shape that the object has in the file; but a key may have its `digest` (64 hexadecimal digits) in
    place of `secret`. A number is best kept as a text: money is never to become a binary fraction."""
