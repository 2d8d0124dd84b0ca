"""Lists every option of the file from its one source: path, type, default, and what it does."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args, get_origin

from pydantic.fields import FieldInfo

from headrace.config.forms import DefaultText, Form
from headrace.config.options import (
    ChannelOptions,
    CorsOptions,
    CredentialOptions,
    KeyOptions,
    ModelOptions,
    Options,
    RouteOptions,
    ServerOptions,
    StateOptions,
    StreamOptions,
    TlsOptions,
    is_group,
)


@dataclass(frozen=True, slots=True)
class Group:
    """A group of options: the path that stands before each, and the class that defines them."""

    title: str
    prefix: str
    options: type[Options]

    @property
    def doc(self) -> str:
        """What the group is about."""
        return inspect.cleandoc(self.options.__doc__ or "")


GROUPS = (
    Group("server", "server", ServerOptions),
    Group("TLS", "server.tls", TlsOptions),
    Group("cross-origin requests", "server.cors", CorsOptions),
    Group("state", "state", StateOptions),
    Group("stream", "stream", StreamOptions),
    Group("channels", "channels.NAME", ChannelOptions),
    Group("credentials of a channel", "channels.NAME.credentials[]", CredentialOptions),
    Group("models", "models.NAME", ModelOptions),
    Group("routes of a model", "models.NAME.routes[]", RouteOptions),
    Group("keys", "keys[]", KeyOptions),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One option. `default` is a value as the file would have it where `is_value`, else words about it."""

    path: str
    name: str
    form: str
    default: str
    is_value: bool
    doc: str


def explain() -> str:
    """All options as text for people: `headrace check --explain`."""
    parts = []
    for group in GROUPS:
        parts.append(f"# {group.title}: {group.doc}".replace("\n", "\n# ") + "\n")
        parts += [f"{line.path}: {line.form}; {_default(line)}\n    {line.doc}\n" for line in lines(group)]
    return "\n".join(parts)


def lines(group: Group) -> Iterator[Line]:
    """The group's options: its own first, then those that it shares with `stream`."""
    fields = group.options.model_fields
    shared = {name for name in fields if name in StreamOptions.model_fields and group.options is not StreamOptions}
    for name in sorted(fields, key=lambda name: name in shared):
        field = fields[name]
        if is_group(field):
            continue  # it has lines of its own
        default, is_value = _shown_default(field)
        if name in shared:
            default, is_value = ("the model's" if group.options is KeyOptions else f"stream.{name}"), False
        yield Line(f"{group.prefix}.{name}", name, _form(field), default, is_value, field.description or "")


def _default(line: Line) -> str:
    return line.default if line.default == "required" else f"default {line.default}"


def _form(field: FieldInfo) -> str:
    if form := _form_among(field.metadata):
        return form.name
    inner = get_args(field.annotation)
    if get_origin(field.annotation) is dict:
        return f"a mapping from {_inner_form(inner[0]).name} to {_inner_form(inner[1]).name}"
    if isinstance(inner[0], type) and issubclass(inner[0], Options):
        return "a list of mappings"
    return f"a list, or one: {_inner_form(inner[0]).name}"


def _shown_default(field: FieldInfo) -> tuple[str, bool]:
    if field.is_required():
        return "required", False
    if text := next((item for item in field.metadata if isinstance(item, DefaultText)), None):
        return text.text, False
    if form := _form_among(field.metadata):
        return form.show(field.default), True
    if not field.default:
        return "none", False
    form = _inner_form(get_args(field.annotation)[0])
    return ", ".join(form.show(item) for item in field.default), True


def _inner_form(annotation: object) -> Form[object]:
    form = _form_among(getattr(annotation, "__metadata__", ()))
    assert form is not None, "every value of an option has a form"
    return form


def _form_among(metadata: object) -> Form[object] | None:
    assert isinstance(metadata, list | tuple)
    return next((item for item in metadata if isinstance(item, Form)), None)
