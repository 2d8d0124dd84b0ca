"""A price table as rows and columns."""

import pytest

from headrace.config.options.spending import PriceOptions, RateOptions
from headrace.config.price_csv import COLUMNS, column_of, models_from_csv
from headrace.config.source import place
from headrace.model.price import Call, Lifetime

TABLE = """\
model,from,tier,input,cached_input,cache_write_5m,cache_write_1h,output,calls_web_search
a,,,1.25,0.125,1.5,,10,0.01
b,,,2,,,,,

a,,Flex,0.625,,0.75,,5,
a,2027-01-01,standard,1.5,,,3,12,
"a,*",,,"1",,,,,
"""


def test_rows_become_prices() -> None:
    models, faults = models_from_csv(TABLE)
    assert not faults
    assert models == {
        "a": [
            {
                "input": "1.25",
                "cached_input": "0.125",
                "cache_write": {"5m": "1.5"},
                "output": "10",
                "calls": {"web_search": "0.01"},
                "tiers": {"flex": {"input": "0.625", "cache_write": {"5m": "0.75"}, "output": "5"}},
            },
            {"from": "2027-01-01", "input": "1.5", "cache_write": {"1h": "3"}, "output": "12"},
        ],
        "b": [{"input": "2"}],
        "a,*": [{"input": "1"}],
    }
    assert models.lines == {"a": 2, "b": 3, "a,*": 7}


def test_there_is_a_column_for_everything_that_has_a_rate() -> None:
    plain = set(RateOptions.model_fields) - {"cache_write", "calls"}
    inner = {f"cache_write_{one.value}" for one in Lifetime} | {f"calls_{one.value}" for one in Call}
    assert set(COLUMNS) == {"model", "from", "tier"} | plain | inner
    assert {field.alias or name for name, field in PriceOptions.model_fields.items()} - {"long_context"} == (
        plain | {"cache_write", "calls", "from", "tiers"}
    ), "a price has something else now: it needs a column"


def test_a_value_knows_its_row() -> None:
    models, _ = models_from_csv(TABLE)
    places = [("a", 0), ("a", 1), ("a", 0, "tiers", "flex", "input"), ("a", 0, "tiers", "flex", "cache_write", "5m")]
    assert [place(models, one)[0] for one in places] == [2, 6, 5, 5]


def test_a_row_may_take_several_lines() -> None:
    models, faults = models_from_csv('model,input\n"a\nb",1\n\nc,2\n')
    assert (models.lines["c"], faults) == (5, [])


@pytest.mark.parametrize(
    ("text", "line", "path", "message"),
    [
        ("", 1, "", "the first row names the columns"),
        ("model;input\na;1\n", 1, "", "between commas"),
        ("model,inputs\na,1\n", 1, "", "column 2 is unknown (did you mean input?); there are: model, from"),
        ("model,input,Input\na,1,2\n", 1, "column input", "stands twice"),
        ("model,input\na,1,2\n", 2, "", "has 3 cells, the header 2"),
        ("model,input\n ,1\n", 2, "column model", "is required"),
        ("model,input\na,1\nb,2\na,3\n", 4, "", "is for the same model, moment and tier as line 2"),
        ("model,tier,input\na,,1\na,Default,2\n", 3, "", "is for the same model, moment and tier as line 2"),
        ("model,tier,input\na,flex,1\na,FLEX,2\n", 3, "", "is for the same model, moment and tier as line 2"),
        ("model,input\na,1\nb," + "1" * 200_000 + "\n", 3, "", "is not CSV"),
    ],
)
def test_what_is_no_table(text: str, line: int, path: str, message: str) -> None:
    (fault,) = models_from_csv(text)[1]
    assert (fault.line, fault.path) == (line, path)
    assert message in fault.message


def test_a_short_row_lacks_its_last_cells() -> None:
    assert models_from_csv("model,input,output\na,1\n") == ({"a": [{"input": "1"}]}, [])


@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("[0].input", "column input"),
        ("[1].tiers.flex.input", "column input"),
        ("[0].cache_write.5m", "column cache_write_5m"),
        ("[0].tiers.flex.calls.grounding", "column calls_grounding"),
        ("[0].from", "column from"),
        ("[0].tiers.?", "column tier"),
        ("[1]", ""),
        ("", ""),
    ],
)
def test_a_path_leads_back_to_its_column(path: str, column: str) -> None:
    assert column_of(path) == column
