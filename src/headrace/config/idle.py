"""Which options of a group are set and do nothing in this version: silence about them would be a lie.

An option is marked where it is defined (`options.group.NoEffect`). A protocol that no request can ask for yet is one
value of an option that does have an effect, so those are listed here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.config.options.group import Options, no_effect
from headrace.model.wire import WireProtocol

UNSERVED = {
    WireProtocol.RESPONSES_WS: "no WebSocket is taken",
    WireProtocol.FILES: "no request for files is taken",
    WireProtocol.VECTOR_STORES: "no request for vector stores is taken",
}
"""Protocols that may be named, and that no request can ask for, with what happens instead."""


@dataclass(frozen=True, slots=True)
class Idle:
    """One such option: which it is, wherever it stands; where it stands; what to say of it."""

    option: str
    location: tuple[str | int, ...]
    text: str

    @property
    def message(self) -> str:
        """As a warning says it behind the option's path."""
        return f"has no effect in this version: {self.text}"


def idle_options(group: Options, location: tuple[str | int, ...] = ()) -> Iterator[Idle]:
    """All of them in a group and the groups inside it; `location` is where the group stands."""
    for name, field in type(group).model_fields.items():
        value = getattr(group, name)
        if name not in group.model_fields_set or _says_nothing(value):
            continue
        here = (*location, field.alias or name)
        if mark := no_effect(field):
            yield Idle(f"{type(group).__name__}.{name}", here, mark.text)
            continue
        for part, inner in _inside(value):
            if isinstance(inner, Options):
                yield from idle_options(inner, (*here, *part))
            elif isinstance(inner, WireProtocol) and inner in UNSERVED:
                yield Idle(inner.value, (*here, *part), f"{UNSERVED[inner]} for {inner.value}")


def _says_nothing(value: object) -> bool:
    """Whether an option is set to what it would be without: off, or empty."""
    return value is False or value in ((), {}) or (isinstance(value, Options) and not value.model_fields_set)


def _inside(value: object) -> Iterator[tuple[tuple[str | int, ...], object]]:
    if isinstance(value, tuple):
        for index, one in enumerate(value):
            yield (index,), one
    elif isinstance(value, dict):
        for name, one in value.items():
            yield (name,), one
    else:
        yield (), value
