"""What a reload did, a line for each thing, and what it did not do before a restart; never with a secret.

Options are shown as the file has them: the classes of the options know each one's text. Where an option is marked as
not to be shown (`repr=False`), and for header and query fields, it is only said that it has changed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from pydantic.fields import FieldInfo

from headrace.config.draft import Loaded
from headrace.config.errors import ConfigError
from headrace.config.options.group import (
    Options,
    default_words,
    form_of,
    group_within,
    is_group,
    is_mapping,
    item_form,
)
from headrace.config.options.objects import (
    ChannelOptions,
    CommonKeyOptions,
    CredentialOptions,
    ModelOptions,
    OwnerOptions,
    RouteOptions,
)
from headrace.config.options.settings import CorsOptions, KeyStreamOptions, ServerOptions, StateOptions, StreamOptions
from headrace.config.options.spending import PriceOptions, WaitOptions
from headrace.config.places import show_moment
from headrace.model.channel import Channel, Credential, Model, Route
from headrace.model.key import Key
from headrace.model.limits import Limits
from headrace.model.owner import Owner
from headrace.model.price import Price
from headrace.model.settings import ServerSettings, Settings, StreamSettings

HIDDEN = frozenset({"headers", "query"})
"""Mappings whose values may be secrets of a provider that has its own way."""
ABSENT = "none"


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between two configurations."""

    done: tuple[str, ...]
    """In force for new exchanges."""
    restart: tuple[str, ...]
    """Of `server` and `state`: not in force before a restart."""

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it for people; what is not in force says so."""
        return (*self.done, *(f"{line}; takes effect at the next start" for line in self.restart))


class Fact(NamedTuple):
    """The value of one option, and its text where that may be shown."""

    value: object
    text: str | None


Facts = dict[str, Fact]
"""By the option's path inside its object; what is not set at all is not there."""


class Named(Protocol):
    """An object that is known by its name."""

    @property
    def name(self) -> str:
        """No other object of its kind has it."""


N = TypeVar("N", bound=Named)


def changes(old: Loaded, new: Loaded, running: Settings | None = None) -> Changes:
    """What came with `new` in place of `old`.

    `running` are the settings that the processes were started with, where those of `old` never came into force: so
    what needs a restart is said again and again until there was one.
    """
    was, now = old.catalogue, new.catalogue
    started = running if running is not None else old.settings
    done = [
        *_compare(_stream(old.settings.stream), _stream(new.settings.stream)),
        *_compare(_waits(old.ground.waits), _waits(new.ground.waits)),
        *_objects("channel", was.channels, now.channels, _channel),
        *_objects("model", was.models, now.models, lambda one, other: _model(one, other, old, new)),
        *_objects("owner", was.owners, now.owners, lambda one, other: _owner(one, other, old, new)),
        *_objects("key", was.keys, now.keys, lambda one, other: _key(one, other, old, new)),
    ]
    restart = [
        *_compare(_server(started.server), _server(new.settings.server)),
        *_compare(_facts(StateOptions, started.state, "state."), _facts(StateOptions, new.settings.state, "state.")),
    ]
    return Changes(tuple(done), tuple(restart))


def refused(error: ConfigError) -> tuple[str, ...]:
    """What to say of a file that could not be loaded anew."""
    return (*str(error).splitlines(), f"{error.file}: nothing was changed")


# ------------------------------------------------------------------------------------------------------- differences


def _compare(old: Facts, new: Facts) -> Iterator[str]:
    for path in dict.fromkeys([*old, *new]):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        texts = [fact.text if fact else ABSENT for fact in (before, after)]
        if None in texts or texts[0] == texts[1]:
            yield f"{path}: {'added' if before is None else 'removed' if after is None else 'changed'}"
        else:
            yield f"{path}: {texts[0]} → {texts[1]}"


def _objects(
    kind: str, old: Iterable[N], new: Iterable[N], differences: Callable[[N, N], Iterator[str]]
) -> Iterator[str]:
    before, after = {one.name: one for one in old}, {one.name: one for one in new}
    for name, one in after.items():
        if name not in before:
            yield f"{kind} {name}: added"
        elif before[name] != one:
            yield from (f"{kind} {name}: {line}" for line in differences(before[name], one))
    yield from (f"{kind} {name}: removed" for name in before if name not in after)


def _channel(old: Channel, new: Channel) -> Iterator[str]:
    yield from _compare(_facts(ChannelOptions, old), _facts(ChannelOptions, new))
    yield from _objects("credential", old.credentials, new.credentials, _credential)


def _credential(old: Credential, new: Credential) -> Iterator[str]:
    yield from _compare(_facts(CredentialOptions, old), _facts(CredentialOptions, new))


def _model(old: Model, new: Model, before: Loaded, after: Loaded) -> Iterator[str]:
    yield from _compare(_facts(ModelOptions, old), _facts(ModelOptions, new))
    own = _stream(old.stream, ""), _stream(new.stream, "")
    yield from _compare(*_not_inherited(own, (_stream(before.settings.stream, ""), _stream(after.settings.stream, ""))))
    yield from _compare(_prices(old.prices), _prices(new.prices))
    yield from _objects("route", map(_NamedRoute, old.routes), map(_NamedRoute, new.routes), _route)


class _NamedRoute(NamedTuple):
    route: Route

    @property
    def name(self) -> str:
        upstream = self.route.upstream_model
        return f"{self.route.channel} ({upstream})" if upstream else self.route.channel


def _route(old: _NamedRoute, new: _NamedRoute) -> Iterator[str]:
    yield from _compare(_facts(RouteOptions, old.route), _facts(RouteOptions, new.route))
    yield from _compare(_prices(old.route.prices), _prices(new.route.prices))


def _owner(old: Owner, new: Owner, before: Loaded, after: Loaded) -> Iterator[str]:
    own = _facts(OwnerOptions, old), _facts(OwnerOptions, new)
    yield from _compare(*_not_inherited(own, (_waits(before.ground.waits), _waits(after.ground.waits))))


def _key(old: Key, new: Key, before: Loaded, after: Loaded) -> Iterator[str]:
    own = _facts(CommonKeyOptions, old), _facts(CommonKeyOptions, new)
    yield from _compare(*_not_inherited(own, (_waits(before.ground.waits), _waits(after.ground.waits))))
    yield from _compare({"secret": Fact(old.digest, None)}, {"secret": Fact(new.digest, None)})
    yield from _compare(_overrides(old), _overrides(new))


def _not_inherited(own: tuple[Facts, Facts], under: tuple[Facts, Facts]) -> tuple[Facts, Facts]:
    """What both versions of an object have from the section beneath is that section's change, not theirs."""
    common = [
        path
        for path in own[0]
        if all(mine.get(path) == theirs.get(path) for mine, theirs in zip(own, under, strict=True))
    ]
    return tuple({path: fact for path, fact in facts.items() if path not in common} for facts in own)  # type: ignore[return-value]


# -------------------------------------------------------------------------------------------------------------- facts


def _facts(options: type[Options], value: object, prefix: str = "") -> Facts:
    """What the options of a class say in a model value, as far as its attributes have their names. Lists of groups are
    the caller's."""
    facts: Facts = {}
    for name, field in options.model_fields.items():
        current = getattr(value, name, _MISSING)
        if current is _MISSING:
            continue
        path = f"{prefix}{field.alias or name}"
        inner = group_within(field)
        if inner is not None:
            facts |= _inner_facts(inner, field, current, path)
        elif is_mapping(field):
            facts |= _mapping(name, field, current, path)
        else:
            facts[path] = Fact(current, None if field.repr is False else _text(field, current))
    return facts


_MISSING = object()


def _inner_facts(inner: type[Options], field: FieldInfo, current: Any, path: str) -> Facts:
    if is_group(field):
        return _facts(inner, current, f"{path}.") if current is not None else {}
    facts: Facts = {}
    if is_mapping(field):
        for name, one in current:
            facts |= _facts(inner, one, f"{path}.{name}.")
    return facts


def _mapping(name: str, field: FieldInfo, current: Any, path: str) -> Facts:
    keys, values = (item_form(one) for one in field.annotation.__args__)  # type: ignore[union-attr]  # a dict has two
    return {
        f"{path}.{keys.show(key)}": Fact(value, None if name in HIDDEN else values.show(value))
        for key, value in current
    }


def _text(field: FieldInfo, current: Any) -> str:
    words = default_words(field)
    if words and (current is None or current == field.default):
        return words
    if form := form_of(field):
        return form.show(current)
    form = item_form(field.annotation.__args__[0])  # type: ignore[union-attr]  # a tuple has one
    shown = [form.show(one) for one in current or ()]
    return ", ".join(sorted(shown) if isinstance(current, frozenset) else shown) or words or ABSENT


def _stream(settings: StreamSettings, prefix: str = "stream.") -> Facts:
    return _facts(StreamOptions, settings, prefix)


def _waits(waits: Limits) -> Facts:
    return _facts(WaitOptions, waits, "limits.")


def _server(settings: ServerSettings) -> Facts:
    origins = CorsOptions.model_fields["origins"]
    cors = {"server.cors.origins": Fact(settings.cors_origins, _text(origins, settings.cors_origins))}
    return _facts(ServerOptions, settings, "server.") | cors


def _overrides(key: Key) -> Facts:
    set_, facts = key.overrides, {}
    for name, field in KeyStreamOptions.model_fields.items():
        never = getattr(set_, f"{name}_never", False)
        value = getattr(set_, name)
        if never or value is not None:
            facts[name] = Fact(value, _text(field, value))
    return facts


def _prices(prices: Iterable[Price]) -> Facts:
    facts: Facts = {}
    for price in prices:
        prefix = "price." if price.since is None else f"price from {show_moment(price.since)}: "
        flat = _facts(PriceOptions, price.rates, prefix) | _facts(PriceOptions, price, prefix)
        facts |= {path: fact for path, fact in flat.items() if fact.value is not None and not path.endswith("from")}
    return facts
