"""What can be asked of a group's fields, and that every field answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

from headrace.config.forms import Reading
from headrace.config.options.file import FileOptions
from headrace.config.options.group import (
    Options,
    form_of,
    group_within,
    is_group,
    is_many,
    is_mapping,
    item_form,
    written,
)
from headrace.config.options.objects import CredentialOptions, ModelOptions, StoredKeyOptions, StoredPriceOptions
from headrace.config.options.settings import ServerOptions, TlsOptions
from headrace.config.options.spending import BudgetOptions, PriceOptions, RateOptions


def groups(top: type[Options]) -> Iterator[type[Options]]:
    """The group, and all inside it."""
    yield top
    for field in top.model_fields.values():
        if inner := group_within(field):
            yield from groups(inner)


READING = Reading(Path(), {})
ALL: list[type[Options]] = [*groups(FileOptions), StoredKeyOptions, StoredPriceOptions]
FIELDS = [(f"{group.__name__}.{name}", field) for group in ALL for name, field in group.model_fields.items()]


@pytest.mark.parametrize("field", [field for _, field in FIELDS], ids=[name for name, _ in FIELDS])
def test_every_option_is_of_one_shape(field: FieldInfo) -> None:
    shapes = [form_of(field) is not None, is_group(field), is_many(field), is_mapping(field)]
    assert sum(shapes) == 1
    if form_of(field) is None and group_within(field) is None:
        inner = field.annotation.__args__  # type: ignore[union-attr]  # a list or a mapping has some
        assert all(item_form(one).name for one in inner if one is not Ellipsis)


@pytest.mark.parametrize("group", ALL, ids=lambda group: str(group.__name__))
def test_a_default_is_what_reading_would_give(group: type[Options]) -> None:
    """Pydantic takes defaults as they are: one of another type would only show up where it is used."""
    for name, field in group.model_fields.items():
        if (form := form_of(field)) and not field.is_required() and field.default not in (None, "", b""):
            read = form.read(form.show(field.default), READING)
            assert type(read) is type(field.default), name


def test_names_are_those_of_the_file() -> None:
    assert "from" in written(PriceOptions)
    assert "since" not in written(PriceOptions)
    assert list(written(TlsOptions)) == ["cert", "key"]


def test_groups_are_found_in_every_wrapping() -> None:
    assert group_within(ServerOptions.model_fields["tls"]) is TlsOptions
    assert group_within(StoredKeyOptions.model_fields["budget"]) is BudgetOptions
    assert group_within(ModelOptions.model_fields["price"]) is PriceOptions
    assert group_within(PriceOptions.model_fields["tiers"]) is RateOptions
    assert group_within(CredentialOptions.model_fields["name"]) is None
