"""The parts of a catalogue, from wherever they come: the file, the database, a snapshot."""

from dataclasses import dataclass

from headrace.model.channel import Channel, Model
from headrace.model.key import Key


@dataclass(frozen=True, slots=True)
class CatalogueParts:
    """Channels, models and keys in the order of their source. Every route names one of the channels."""

    channels: tuple[Channel, ...] = ()
    models: tuple[Model, ...] = ()
    keys: tuple[Key, ...] = ()
