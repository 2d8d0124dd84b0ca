"""A file with every option: each is there, each arrives."""

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.config.explain import GROUPS, Line, lines
from headrace.config.options.file import FileOptions
from headrace.config.source import Block, Location, has, read, value_at
from headrace.model.channel import Auth, BaseUrl, Proxy
from headrace.model.settings import Address, StreamSettings
from tests.config.options.whole import TEXT, load_whole

ROOT = read(TEXT)[0]
LINES = [line for group in GROUPS for line in lines(group)]


def location(path: str) -> Location:
    """`channels.NAME.credentials[].secret` → where the file has it: in the first of each."""
    found: list[str | int] = []
    for part in re.findall(r"[A-Za-z_0-9]+|\[\]", path):
        if part in {"NAME", "TIER"}:
            here = value_at(ROOT, found)
            assert isinstance(here, Block), path
            found.append(next(iter(here)))
        else:
            found.append(0 if part == "[]" else part)
    return found


@pytest.mark.parametrize("line", LINES, ids=lambda line: str(line.path))
def test_the_file_sets_every_option(line: Line) -> None:
    assert has(ROOT, location(line.path)), f"set {line.path} in whole.yaml"


def test_the_file_has_every_section() -> None:
    assert set(ROOT) == set(FileOptions.model_fields)


def as_by_default(value: Any, path: str) -> Iterator[str]:
    """The fields of a value, and of the values in it, that are what they would be if nothing were set."""
    for field in fields(value):
        inner, here = getattr(value, field.name), f"{path}.{field.name}"
        if has_default(field) and inner == default(field):
            yield here
        for number, one in enumerate(inner if isinstance(inner, tuple) else (inner,)):
            if is_dataclass(one) and not isinstance(one, Auth | BaseUrl | Proxy | Address):
                yield from as_by_default(one, f"{here}[{number}]")


def has_default(field: "Field[Any]") -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def default(field: "Field[Any]") -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


UNSET = {
    "model.stream[0].commit",  # the section's is the other one; likewise:
    "model.stream[0].client_gone",
    "key.overrides[0].early_open_never",  # one of two says never
    "key.overrides[0].early_open_cold",
    "key.stop",  # of keys in the database alone
    "key.former",  # no secret of the file is replaced but by another
    "key.is_former",
    # no credential waits, and no owner for upstreams
    "channel.credentials[0].limits[0].wait",
    "channel.credentials[0].limits[0].upstream_wait",
}


def test_every_option_arrives_in_the_model_values(tmp_path: Path) -> None:
    draft = load_whole(tmp_path)
    parts = {"channel": draft.channels, "model": draft.models, "key": draft.keys, "owner": draft.owners}
    found = set(as_by_default(draft.settings, "settings"))
    for name, (one,) in parts.items():
        found |= set(as_by_default(one, name))
    assert found == UNSET
    assert draft.models[0].stream.commit is StreamSettings().commit


def test_money_arrives_exactly(tmp_path: Path) -> None:
    draft = load_whole(tmp_path)
    rates = draft.models[0].prices[0].rates
    assert (rates.input, rates.cached_input, rates.output, rates.per_call) == (1_250_000_000, 125_000_000, 10**10, 1)
    assert [nano for _, nano in rates.cache_write] == [1_562_500_000, 1_600_000_000, 2_500_000_000, 3_000_000_000]
    key, owner = draft.keys[0], draft.owners[0]
    assert key.budget is not None
    assert (key.budget.amount, key.multiplier, owner.multiplier) == (100_500_000_000, 1_200_000_000, 900_000_000)


def test_waits_come_from_the_section_where_they_are_not_set(tmp_path: Path) -> None:
    draft = load_whole(tmp_path)
    assert (draft.keys[0].limits.wait, draft.keys[0].limits.upstream_wait) == (1.0, 10.0)
    assert (draft.owners[0].limits.wait, draft.owners[0].limits.upstream_wait) == (2.0, 20.0)
    bare = load_whole(tmp_path, re.sub(r", wait: .s(, upstream_wait: 10s)?", "", TEXT))
    assert (bare.keys[0].limits.wait, bare.keys[0].limits.upstream_wait) == (4.0, 20.0)
    assert bare.owners[0].limits.wait == 4.0


def test_prices_may_be_a_list_and_are_put_in_order(tmp_path: Path) -> None:
    several = "price: [{from: 2027-02-01, input: 3}, {input: 1}, {from: 2027-01-01, input: 2, output: 0}]\n"
    text = re.sub(r"    price:\n(      .*\n)+", f"    {several}", TEXT)
    prices = load_whole(tmp_path, text).models[0].prices
    assert [price.rates.input for price in prices] == [10**9, 2 * 10**9, 3 * 10**9]
    assert (prices[0].since, prices[1].rates.output, prices[2].rates.output) == (None, 0, None)
