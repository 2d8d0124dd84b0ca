"""The parts of a catalogue, from wherever they come: the file, the database, a snapshot."""

from dataclasses import dataclass

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
