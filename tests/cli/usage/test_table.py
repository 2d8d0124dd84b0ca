"""Reports for people and for programs."""

import csv
import io

from headrace.cli.output import plain_lines
from headrace.cli.usage.sums import Row, Sums, row_from_line, total
from headrace.cli.usage.table import notes, report, section, write_csv
from headrace.state.errands import UsageLine

LARGE = 2**70 + 1
ROWS = [
    Row(("dev", "gpt"), Sums(entries=1234, input=1_000_000, output=5, cost=1_230_000_000, charge=1, unknown_cost=3)),
    Row(("", "gpt"), Sums(entries=1, estimated=2, input=7, cached_input=2, cache_write=1, reasoning=4, cost=LARGE)),
]


def test_a_line_of_the_database_as_numbers() -> None:
    numbers = {"input": "1", "cached_input": "2", "cache_write": "3", "output": "4", "reasoning": "5"}
    line = UsageLine(groups=("a",), entries=7, estimated=8, unknown_cost=9, **numbers, cost=str(LARGE), charge="6")
    assert row_from_line(line) == Row(("a",), Sums(7, 8, 9, 1, 2, 3, 4, 5, LARGE, 6))


def test_a_total_is_exact() -> None:
    whole = total(ROWS)
    assert (whole.entries, whole.estimated, whole.unknown_cost) == (1235, 2, 3)
    assert (whole.input, whole.cost) == (1_000_007, LARGE + 1_230_000_000)
    assert total([]) == Sums()


def test_the_table() -> None:
    lines = list(plain_lines(section("usage", ("key", "model"), ROWS)))
    assert lines[0] == "usage"
    assert [line.split() for line in lines[2:]] == [
        ["dev", "gpt", "1,234", "1,000,000", "0", "5", "0", "1.23", "0.000000001", "0", "3"],
        ["-", "gpt", "1", "7", "2", "0", "4", "1180591620717.411303425", "0", "2", "0"],
        ["total", "1,235", "1,000,007", "2", "5", "4", "1180591620718.641303425", "0.000000001", "2", "3"],
    ]
    assert len({len(line) for line in lines[1:]}) == 1, "numbers end at the right"


def test_one_row_needs_no_total() -> None:
    assert len(section("usage", ("key", "model"), ROWS[:1]).rows) == 1


def test_csv() -> None:
    file = io.StringIO()
    write_csv(file, ("key", "label:a,b"), [Row(('o"dd', "x\ny"), ROWS[1].sums), ROWS[0]])
    first, second = csv.DictReader(io.StringIO(file.getvalue()))
    assert (first["key"], first["label:a,b"], first["input"], first["cost"]) == (
        'o"dd', "x\ny", "7", "1180591620717.411303425",
    )  # fmt: skip
    assert (second["entries"], second["unknown_cost"], second["cost"]) == ("1234", "3", "1.23")


def test_for_programs() -> None:
    told = report("2027-01-01T00:00:00Z", None, ("key", "model"), ROWS)
    assert (told.since, told.until, told.by) == ("2027-01-01T00:00:00Z", None, ("key", "model"))
    assert told.rows[0].groups == {"key": "dev", "model": "gpt"}
    assert (told.rows[1].cost, told.rows[1].input, told.rows[1].cache_write) == ("1180591620717.411303425", 7, 1)
    assert (told.total.groups, told.total.entries, told.total.cost) == ({}, 1235, "1180591620718.641303425")


def test_what_must_be_known_to_read_the_amounts() -> None:
    assert list(notes(total(ROWS))) == [
        "3 of 1,235 requests have no known cost, and count for 0",
        "of 2 of 1,235 requests the tokens are estimated, wholly or in part",
    ]
    assert list(notes(Sums(entries=5))) == []
