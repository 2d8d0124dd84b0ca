"""`headrace prices`: shown, set and deleted."""

import pytest

from tests.cli.declared import Beside


def test_a_price_from_nothing_to_nothing(beside: Beside) -> None:
    assert "has no price" in beside.refused("prices", "show", "gpt")
    assert "counts now" in beside.did("prices", "set", "gpt", "--input", "1.25", "--cache-write", "5m=1.5")
    beside.did("prices", "set", "gpt", "--output", "10")
    later = beside.told("prices", "set", "gpt", "--input", "2", "--output", "11", "--from", "2099-01-01")
    assert (later["model"], later["source"]) == ("gpt", "database")
    now, then = later["prices"]
    assert now["rates"] == {"input": "1.25", "cache_write.5m": "1.5", "output": "10"}
    assert (then["since"], then["rates"]) == ("2099-01-01T00:00:00Z", {"input": "2", "output": "11"})
    assert beside.told("prices", "show", "gpt") == later
    rows = [line.split() for line in beside.did("prices", "list").splitlines()[2:]]
    assert rows == [
        ["gpt", "1.25", "10", "2", "database"],
        ["priced", "1.25", "10", "1", "file"],
        ["sim-*", "unknown", "unknown", "0"],
    ]
    assert beside.did("prices", "delete", "gpt", "--from", "2099-01-01") == "1 of 2 prices of gpt deleted\n"
    assert "has no price from that moment on" in beside.refused("prices", "delete", "gpt", "--from", "2099-01-01")
    assert beside.told("prices", "delete", "gpt") == {"deleted": "gpt"}
    assert "has no price" in beside.refused("prices", "show", "gpt")


def test_a_price_that_waits_for_its_model(beside: Beside) -> None:
    assert "waits for it" in beside.did("prices", "set", "later", "--input", "1")
    result = beside.run("prices", "list")
    assert result.exit_code == 0 and result.stderr == "prices of the database for no model of this name: later\n"


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["set", "priced", "--input", "1"], "the price of priced is declared in ", 1),
        (["set", "gpt"], "price gpt cannot be: ", 2),
        (["set", "gpt", "--input", "cheap"], "price[0].input: must be a price", 2),
        (["delete", "gpt"], "there is no price gpt", 1),
        (["show", "none"], "there is no model none", 1),
    ],
)
def test_what_is_refused(beside: Beside, arguments: list[str], words: str, code: int) -> None:
    assert words in beside.refused("prices", *arguments, code=code)
