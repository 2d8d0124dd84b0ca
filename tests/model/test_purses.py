"""Which budgets an exchange counts against, and how they are called at a moment."""

from datetime import UTC, datetime

import pytest

from headrace.model.allowance import purse_of
from headrace.model.catalogue import CatalogueParts
from headrace.model.key import Key
from headrace.model.limits import Budget, Window
from headrace.model.owner import Owner
from headrace.model.purses import Budgets, purse_parts

NOON = datetime(2026, 3, 15, 12, 30, tzinfo=UTC).timestamp()
DAY = int(datetime(2026, 3, 15, tzinfo=UTC).timestamp())
MONTH = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp())
BUDGETS = Budgets.of(
    CatalogueParts(
        keys=(Key("a", b"1", owner="team", budget=Budget(1, Window.DAY)), Key("free", b"2", owner="team")),
        owners=(
            Owner("team", budget=Budget(1, Window.MONTH)),
            Owner("idle"),
            Owner("all", budget=Budget(1, Window.TOTAL)),
        ),
    )
)


def test_every_budget_has_one_purse_at_a_moment() -> None:
    assert BUDGETS.at(NOON) == {
        f"key:a|day|{DAY}": DAY,
        f"owner:team|month|{MONTH}": MONTH,
        "owner:all|total|0": 0,
    }


def test_an_exchange_counts_for_its_key_and_its_owner_in_the_window_that_it_began_in() -> None:
    assert BUDGETS.counting("a", "team", NOON) == [f"key:a|day|{DAY}", f"owner:team|month|{MONTH}"]
    assert BUDGETS.counting("a", "", NOON - 86_400) == [f"key:a|day|{DAY - 86_400}"]
    assert BUDGETS.counting("free", "all", NOON) == ["owner:all|total|0"]
    assert BUDGETS.counting("team", "a", NOON) == [], "a key is not its namesake owner"


def test_equal_catalogues_have_equal_budgets_whatever_the_amounts() -> None:
    one = CatalogueParts(keys=(Key("a", b"1", budget=Budget(1)),))
    more = CatalogueParts(keys=(Key("a", b"1", budget=Budget(2)), Key("free", b"2")))
    other = CatalogueParts(keys=(Key("a", b"1", budget=Budget(1, Window.HOUR)),))
    assert Budgets.of(one) == Budgets.of(more) != Budgets.of(other)


def test_a_purse_says_what_it_is_of() -> None:
    for name in ("dev", "a|b", "x:y", "a|day|3"):
        assert purse_parts(purse_of(f"owner:{name}", Window.DAY, 86_400)) == ("owner", name, Window.DAY, 86_400)
    for none in ("", "key:dev", "key:dev|year|0", "key:dev|day|noon"):
        with pytest.raises(ValueError):
            purse_parts(none)
