"""`headrace usage`."""

import time
from pathlib import Path

import msgspec
import pytest

from tests.cli.declared import Beside
from tests.cli.ledger import fill
from tests.stand.postgres import Postgres
from tests.state.journals import entry

DAY_S = 86_400.0
PLAIN = entry("a", at=20_000 * DAY_S, tokens=1_000_000)
ENTRIES = (
    PLAIN,
    msgspec.structs.replace(PLAIN, id="b", at=20_002 * DAY_S, key="ops", usage_origin="estimated"),
    msgspec.structs.replace(PLAIN, id="c", at=20_002 * DAY_S, key="ops", owner="", model="other"),
)
SINCE = ("--since", "2024-10-01")


@pytest.fixture
def filled(beside: Beside) -> Beside:
    fill(beside.directory, *ENTRIES)
    return beside


def test_a_table_for_people(filled: Beside) -> None:
    result = filled.run("usage", *SINCE, "--by", "key,owner")
    assert [line.split() for line in result.stdout.splitlines()[2:]] == [
        ["dev", "ann", "1", "9", "2", "1,000,000", "0", "0.1", "0.2", "0", "0"],
        ["ops", "-", "1", "9", "2", "1,000,000", "0", "0.1", "0.2", "0", "0"],
        ["ops", "ann", "1", "9", "2", "1,000,000", "0", "0.1", "0.2", "1", "0"],
        ["total", "3", "27", "6", "3,000,000", "0", "0.3", "0.6", "1", "0"],
    ]
    assert result.stderr == "of 1 of 3 requests the tokens are estimated, wholly or in part\n"


def test_for_programs(filled: Beside) -> None:
    told = filled.told("usage", *SINCE, "--until", "2024-10-05", "--by", "label:team")
    assert (told["since"], told["until"]) == ("2024-10-01T00:00:00Z", "2024-10-05T00:00:00Z")
    assert [(row["groups"], row["cost"]) for row in told["rows"]] == [({"label:team": "red"}, "0.1")]
    lines = filled.did("usage", *SINCE, "--by", "model", "--key", "ops", "--label", "team=red", "--csv").splitlines()
    assert lines[0].startswith("model,entries,") and [line.split(",")[0] for line in lines[1:]] == ["m", "other"]


def test_bars_by_day(filled: Beside) -> None:
    lines = filled.did("usage", *SINCE, "--by", "day", "--plot", "--measure", "requests").splitlines()
    assert lines[0] == "requests by day"
    assert [line.split()[:2] for line in lines[1:]] == [["2024-10-04", "1"], ["2024-10-05", "0"], ["2024-10-06", "2"]]
    assert [len(line) for line in lines[1:]] == [max(map(len, lines[1:])) // 2 + 8, 13, max(map(len, lines[1:]))]


@pytest.mark.parametrize(("measure", "shown"), [("cost", "0.1"), ("charge", "0.2"), ("tokens", "1,000,009")])
def test_what_bars_show(filled: Beside, measure: str, shown: str) -> None:
    assert (
        filled.did("usage", *SINCE, "--key", "dev", "--plot", "--measure", measure).splitlines()[1].split()[1] == shown
    )


def test_this_month_is_what_is_not_said(beside: Beside) -> None:
    fill(beside.directory, PLAIN, msgspec.structs.replace(PLAIN, id="new", at=time.time()))
    assert beside.told("usage")["total"]["entries"] == 1


def test_nothing_at_all(beside: Beside) -> None:
    result = beside.run("usage", "--since", "1d")
    assert (result.exit_code, result.stdout) == (0, "") and result.stderr.startswith("nothing was used since ")


@pytest.mark.parametrize(
    "arguments",
    [["--by", "colour"], ["--by", ""], ["--by", "key,key"], ["--by", "label:"], ["--label", "x"], ["--since", "soon"],
     ["--json", "--csv"], ["--plot", "--csv"], ["--measure", "joy"]],
)  # fmt: skip
def test_bad_usage(beside: Beside, arguments: list[str]) -> None:
    assert beside.run("usage", *arguments).exit_code == 2


def test_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.new_database()
    beside = Beside(tmp_path, url)
    assert "run `headrace migrate`" in beside.refused("usage")
    fill(tmp_path, *ENTRIES, url=url)
    assert beside.told("usage", *SINCE)["total"]["charge"] == "0.6"
