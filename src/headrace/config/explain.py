"""Lists every option of the file from its one source: path, type, default, and what it does."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from pydantic.fields import FieldInfo

from headrace.config.forms import ONE_OR_MANY_GROUPS
from headrace.config.options.file import FileOptions
from headrace.config.options.group import (
    NoEffect,
    Options,
    default_words,
    form_of,
    group_within,
    is_group,
    is_mapping,
    item_form,
    no_effect,
    written,
)
from headrace.config.options.objects import (
    ChannelOptions,
    CredentialOptions,
    KeyOptions,
    ModelOptions,
    OwnerOptions,
    RouteOptions,
)
from headrace.config.options.settings import CorsOptions, ServerOptions, StateOptions, StreamOptions, TlsOptions
from headrace.config.options.spending import (
    BudgetOptions,
    KeyLimitOptions,
    LimitOptions,
    LongContextOptions,
    OwnerLimitOptions,
    PriceOptions,
    RateOptions,
    WaitOptions,
)


@dataclass(frozen=True, slots=True)
class Group:
    """A group of options: the path that stands before each, the class that defines them, and for a group that is an
    option itself the class that has it."""

    title: str
    prefix: str
    options: type[Options]
    within: type[Options] | None = None

    @property
    def doc(self) -> str:
        """What the group is about."""
        return inspect.cleandoc(self.options.__doc__ or "")

    @property
    def effect(self) -> str:
        """What to say where the whole group does nothing in this version; else nothing."""
        if self.within is None:
            return ""
        path = self.prefix.removesuffix("[]").split(".")
        field = next(written(self.within)[part] for part in reversed(path) if part in written(self.within))
        return _effect(no_effect(field))


GROUPS = (
    Group("server", "server", ServerOptions),
    Group("TLS", "server.tls", TlsOptions, ServerOptions),
    Group("cross-origin requests", "server.cors", CorsOptions, ServerOptions),
    Group("state", "state", StateOptions),
    Group("stream", "stream", StreamOptions),
    Group("limits", "limits", WaitOptions, FileOptions),
    Group("channels", "channels.NAME", ChannelOptions),
    Group("credentials of a channel", "channels.NAME.credentials[]", CredentialOptions),
    Group("limits of a credential", "channels.NAME.credentials[].limits", LimitOptions, CredentialOptions),
    Group("models", "models.NAME", ModelOptions),
    Group("routes of a model", "models.NAME.routes[]", RouteOptions),
    Group("price of a model", "models.NAME.price", PriceOptions, ModelOptions),
    Group("price in a service tier", "models.NAME.price.tiers.TIER", RateOptions, ModelOptions),
    Group("price of a long context", "models.NAME.price.long_context", LongContextOptions, ModelOptions),
    Group("keys", "keys[]", KeyOptions),
    Group("limits of a key", "keys[].limits", KeyLimitOptions, KeyOptions),
    Group("budget of a key", "keys[].budget", BudgetOptions, KeyOptions),
    Group("owners", "owners[]", OwnerOptions),
    Group("limits of an owner", "owners[].limits", OwnerLimitOptions, OwnerOptions),
    Group("budget of an owner", "owners[].budget", BudgetOptions, OwnerOptions),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One option. `default` is a value as the file would have it where `is_value`, else words about it; `effect` says
    so where it does nothing in this version."""

    path: str
    name: str
    form: str
    default: str
    is_value: bool
    doc: str
    effect: str = ""


def explain() -> str:
    """All options as text for people: `headrace check --explain`."""
    parts = []
    for group in GROUPS:
        effect = f"\n{group.effect}" if group.effect else ""
        parts.append(f"# {group.title}: {group.doc}{effect}".replace("\n", "\n# ") + "\n")
        parts += [f"{line.path}: {line.form}; {_default(line)}\n    {meaning(line)}\n" for line in lines(group)]
    return "\n".join(parts)


def lines(group: Group) -> Iterator[Line]:
    """The group's options: name and secret first, those last that it shares with `stream`."""
    fields = written(group.options)
    shared = {name for name in fields if name in StreamOptions.model_fields and group.options is not StreamOptions}
    for name in sorted(fields, key=lambda name: (name in shared, _rank(name))):
        field = fields[name]
        if is_group(field):
            continue  # it has lines of its own
        default, is_value = _shown_default(field)
        if name in shared:
            default, is_value = ("the model's" if group.options is KeyOptions else f"stream.{name}"), False
        effect = _effect(no_effect(field))
        yield Line(f"{group.prefix}.{name}", name, _form(field), default, is_value, field.description or "", effect)


def _rank(name: str) -> int:
    return {"name": 0, "secret": 1}.get(name, 2)


def meaning(line: Line) -> str:
    """What an option does, and whether it does it."""
    return f"{line.doc} {line.effect}".rstrip()


def _effect(mark: NoEffect | None) -> str:
    return f"No effect in this version: {mark.text}." if mark else ""


def _default(line: Line) -> str:
    return line.default if line.default == "required" else f"default {line.default}"


def _form(field: FieldInfo) -> str:
    if form := form_of(field):
        return form.name
    inner = get_args(field.annotation)
    if is_mapping(field):
        value = "a mapping" if group_within(field) else item_form(inner[1]).name
        return f"a mapping from {item_form(inner[0]).name} to {value}"
    if group_within(field):
        return "a mapping, or a list of them" if ONE_OR_MANY_GROUPS in field.metadata else "a list of mappings"
    return f"a list, or one: {item_form(inner[0]).name}"


def _shown_default(field: FieldInfo) -> tuple[str, bool]:
    if field.is_required():
        return "required", False
    if words := default_words(field):
        return words, False
    if form := form_of(field):
        return form.show(field.default), True
    if not field.default:
        return "none", False
    form = item_form(get_args(field.annotation)[0])
    return ", ".join(form.show(item) for item in field.default), True
