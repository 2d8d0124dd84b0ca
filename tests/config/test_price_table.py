"""The file of a price table, in each of its forms, becomes prices for the database."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.config.draft import Loaded, load
from headrace.config.errors import ConfigError
from headrace.config.objects import merge
from headrace.config.price_community import KINDS
from headrace.config.price_table import PriceTable, read_price_table
from headrace.model.catalogue import CatalogueParts, ObjectKind
from headrace.model.price import Lifetime, Price, Rates
from headrace.model.settings import Settings
from tests.config.conftest import Write

Table = Callable[[str, str], Path]
FILE = """\
channels: {c: {base_url: https://a.example, protocols: [chat], credentials: [{name: m, secret: sssssssssssssssss}]}}
models:
  a: {routes: [{channel: c}]}
  b-*: {routes: [{channel: c}]}
"""


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Writes a table under a name."""

    def write_table(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_table


FORMS = {
    "t.csv": "model,from,tier,input,cache_write_1h,output\na,,,1.25,2.5,10\na,,flex,0.625,,\n"
    "b-*,2027-01-01,,3,,\nb-*,,,2,,\n",
    "t.yaml": """\
        a: {input: 1.25, cache_write: {1h: 2.50}, output: 10, tiers: {flex: {input: 0.625}}}
        b-*: [{from: 2027-01-01, input: 3}, {input: 2}]
        """,
    "t.json": '{"a": {"input": 1.25, "cache_write": {"1h": "2.5"}, "output": 10, "tiers": {"flex": {"input": 0.625}}},'
    ' "b-*": [{"from": "2027-01-01", "input": 3}, {"input": 2}]}',
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_prices(name: str, table: Table, write: Write) -> None:
    found = read_price_table(table(name, FORMS[name]))
    assert found.warnings == ()
    assert [(one.kind, one.name) for one in found.objects] == [(ObjectKind.PRICE, "a"), (ObjectKind.PRICE, "b-*")]
    merged = merge(load(write(FILE), {}).resolve(bytes(32)), found.objects)
    assert (merged.shadowed, merged.broken, merged.warnings) == ((), (), ())
    rates = Rates(input=1_250_000_000, cache_write=((Lifetime.HOUR, 2_500_000_000),), output=10**10)
    assert [one.prices for one in merged.loaded.catalogue.models] == [
        (Price(rates, (("flex", Rates(input=625_000_000)),)),),
        (Price(Rates(input=2 * 10**9)), Price(Rates(input=3 * 10**9), since=1798761600.0)),
    ]


def test_a_figure_stays_the_text_that_it_was(table: Table) -> None:
    (one,) = read_price_table(table("t.yaml", "a: {input: 0.123456789}")).objects
    assert one.document == '{"price": {"input": "0.123456789"}}'


COMMUNITY = """\
{
  "sample_spec": {"litellm_provider": "one of them", "input_cost_per_token": "a number"},
  "a": {"input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05, "max_tokens": 8192},
  "b": {"output_cost_per_image": 0.04},
  "c": {"output_cost_per_image": 0.04},
  "d": {"input_cost_per_token": 1e-06, "input_cost_per_image": 0.04},
  "e?": {"input_cost_per_token": 1e-06},
  "f": {"input_cost_per_token": 2},
  "g": "nothing"
}
"""


def test_out_of_a_communitys_list_what_can_be_taken_is(table: Table) -> None:
    path = table("prices.json", COMMUNITY)
    assert [(one.name, json.loads(one.document)) for one in read_price_table(path).objects] == [
        ("a", {"price": {"input": "1.25", "output": "10"}}),
        ("d", {"price": {"input": "1"}}),
    ]
    assert read_price_table(path).warnings == (
        f"{path}:2: left out: sample_spec: input_cost_per_token is no price",
        f"{path}:4: left out: b, c: has no price per token",
        f"{path}:7: left out: e?: the model's name must be 1 to 200 visible ASCII characters without ? [ ]",
        f"{path}:8: left out: f: input: must be at most 1000000; it is a price from 0 to 1000000, such as 1.25",
        f"{path}:4: not taken of b, c: output_cost_per_image",
        f"{path}:6: not taken of d: input_cost_per_image",
    )


def test_many_models_take_one_line(table: Table) -> None:
    many = ", ".join(f'"m{n}": {{"input_cost_per_second": 1}}' for n in range(9))
    path = table("p.json", f'{{"a": {{"input_cost_per_token": 0}}, {many}}}')
    assert read_price_table(path).warnings == (
        f"{path}:1: left out: m0, m1, m2 and 6 more: has no price per token",
        f"{path}:1: not taken of m0, m1, m2 and 6 more: input_cost_per_second",
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.csv", "model,input\na,1\nb,1e3\n", ":3: column input: must be a price from 0 to 1000000, such as 1.25"),
        ("t.csv", 'model,input\na,"1,25"\n', ":2: column input: must be a price"),
        ("t.csv", "model,tier,cache_write_5m\na,flex,x\n", ":2: column cache_write_5m: must be a price"),
        ("t.csv", "model,tier,input\na,a b,1\n", ":2: column tier: must be 1 to 64 letters"),
        ("t.csv", "model,from,input\na,soon,1\n", ":2: column from: must be never or an ISO date or time"),
        ("t.csv", "model,from,input\na,2027-01-01,1\na,2027-01-01T00:00Z,2\n", ":3: a: counts from the same moment"),
        ("t.csv", "model,input\na b,1\n", ":2: the model's name must be 1 to 200 visible ASCII characters"),
        ("t.csv", "model,input\na,\n", ":2: a: names no price"),
        ("t.csv", "model,input\n", ": holds no prices"),
        ("t.csv", "", ":1: the first row names the columns"),
        ("t.yaml", "", ": holds no prices"),
        (
            "t.yaml",
            "a: {input: 1}\nb:\n  input: 1\n  outputs: 2\n",
            ":4: b.outputs: unknown option (did you mean output?)",
        ),
        ("t.yaml", "a:\n- {input: 1}\n- {from: x, input: 1}\n", ":3: a[1].from: must be never or an ISO date"),
        ("t.yaml", "a:\n- {input: 1}\n- {input: 2}\n", ":3: a[1]: counts from the same moment as price[0]"),
        ("t.yaml", "a: 5\n", ":1: a: must be a mapping of options, or a list of them"),
        ("t.yaml", "a:\n", ":1: a: has no value"),
        ("t.yaml", "a: {input: env:HOME}\n", ":1: a.input: must be a price"),
        ("t.json", '{"a": {"input": 1},\n"a": {"input": 2}}', ":2: a: stands twice; the first is in line 1"),
        ("t.json", '{"a": {"input": 1e-6}}', ":1: a.input: must be a price"),
        ("t.json", '{"a": \n', "not valid YAML"),
        ("t.json", "[]", ":1: the file must be a mapping"),
    ],
)
def test_an_error_names_file_line_and_column(name: str, text: str, said: str, table: Table) -> None:
    path = table(name, text)
    with pytest.raises(ConfigError) as error:
        read_price_table(path)
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)


def test_all_that_is_wrong_is_said_at_once(table: Table) -> None:
    path = table("t.csv", "model,input,output\na,x,y\nb,1,z\nc,1,2,3\n")
    with pytest.raises(ConfigError) as error:
        read_price_table(path)
    places = [line.removeprefix(f"{path}:").split(":")[:2] for line in str(error.value).splitlines()]
    assert places == [
        ["2", " column input"],
        ["2", " column output"],
        ["3", " column output"],
        ["4", " has 4 cells, the header 3"],
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_price_table(tmp_path / "gone.csv")


def test_a_table_says_what_it_is(table: Table) -> None:
    assert read_price_table(table("t.csv", "model,input\na,0\n")) == PriceTable(
        read_price_table(table("t.yaml", "a: [{input: 0}]\n")).objects, ()
    )


fields = st.builds(
    "{}{}{}".format,
    st.sampled_from([*KINDS, "search_context_cost_per_query", "input", "cost"]),
    st.sampled_from(["", "_above_200k_tokens", "_above_1k_tokens"]),
    st.sampled_from(["", "_flex", "_priority"]),
)
figures = st.none() | st.integers(-1, 10) | st.floats(0, 1e-3) | st.text(max_size=3)
anything = st.recursive(
    figures, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=3), one, max_size=3)
)


@given(st.dictionaries(st.text(max_size=9), st.dictionaries(fields, anything, max_size=6) | anything, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_table_holds_it_is_read_or_refused(table: Table, value: object) -> None:
    path = table("t.json", json.dumps(value))
    try:
        found = read_price_table(path)
    except ConfigError:
        return
    merged = merge(Loaded(Settings(), CatalogueParts(), ()), found.objects)
    assert not merged.broken, "what was taken can be served"
