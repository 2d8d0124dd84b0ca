"""A group of options, and what can be asked of its fields: their names in the file, the groups inside them."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.fields import FieldInfo

from headrace.config.forms import DefaultText, Form, wrong_shape


class Options(BaseModel):
    """A group of options. Unknown names are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


@dataclass(frozen=True, slots=True)
class NoEffect:
    """Marks an option that this version reads and checks, and does not act on. The text says what happens instead."""

    text: str


def _refuse_nothing(value: object) -> object:
    if value is None:
        raise ValueError(f"{wrong_shape(value)}; it takes a mapping of options")
    return value


GIVEN = BeforeValidator(_refuse_nothing)
"""A group that may be left out, but not be left empty."""


def written(group: type[Options]) -> dict[str, FieldInfo]:
    """The group's fields by the names that they have in the file."""
    return {field.alias or name: field for name, field in group.model_fields.items()}


def no_effect(field: FieldInfo) -> NoEffect | None:
    """The mark of an option that does nothing yet."""
    return next((item for item in field.metadata if isinstance(item, NoEffect)), None)


def form_of(field: FieldInfo) -> Form[Any] | None:
    """The form of an option that is one text."""
    return _form_among(field.metadata)


def item_form(annotation: object) -> Form[Any]:
    """The form of what stands in a list, or on one side of a mapping."""
    form = _form_among(getattr(annotation, "__metadata__", ()))
    assert form is not None, "every value of an option has a form"
    return form


def default_words(field: FieldInfo) -> str:
    """What is said of a default that is no plain value; empty for others."""
    return next((item.text for item in field.metadata if isinstance(item, DefaultText)), "")


def group_within(field: FieldInfo) -> type[Options] | None:
    """The group that an option is, or holds many of; None for one that is plain text."""
    return _group_among(field.annotation)


def is_group(field: FieldInfo) -> bool:
    """Whether an option is one group itself: not a list, not a mapping of names to groups."""
    return group_within(field) is not None and not is_many(field) and not is_mapping(field)


def is_many(field: FieldInfo) -> bool:
    """Whether an option is a list."""
    return get_origin(field.annotation) is tuple


def is_mapping(field: FieldInfo) -> bool:
    """Whether an option maps names that the file chooses."""
    return get_origin(field.annotation) is dict


def _group_among(annotation: object) -> type[Options] | None:
    if isinstance(annotation, type) and issubclass(annotation, Options):
        return annotation
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in {Union, UnionType}:
        return next((found for one in inner if (found := _group_among(one))), None)
    if origin is Annotated or origin is tuple:
        return _group_among(inner[0])
    if origin is dict:
        return _group_among(inner[1])
    return None


def _form_among(metadata: Iterable[object]) -> Form[Any] | None:
    return next((item for item in metadata if isinstance(item, Form)), None)
