"""What the options of a price come to."""

from typing import Any

import pytest
import typer

from headrace.cli.prices.fields import PLAIN, RateFields, price_of_moment, prices_in, without_moment
from headrace.config.options.spending import RateOptions

NOW = 1_800_000_000.0
JANUARY, MAY = "2027-01-31", "2027-05-01T12:00:00Z"


def put(price: dict[str, Any], **given: Any) -> dict[str, Any]:
    RateFields(**given).put_into(price)
    return price


def test_every_rate_has_an_option() -> None:
    assert {*PLAIN, "cache_write", "calls"} == set(RateOptions.model_fields)
    assert set(RateFields.__dataclass_fields__) == {*PLAIN, "cache_write", "call"}


def test_rates() -> None:
    assert put({}, input="1.25", cache_write=["5m=1.5", "1h=2"]) == {
        "input": "1.25", "cache_write": {"5m": "1.5", "1h": "2"},
    }  # fmt: skip


def test_what_is_not_given_stays_and_none_takes_away() -> None:
    before = {"input": "1", "output": "2", "cache_write": {"5m": "3", "1h": "4"}, "tiers": {"flex": {"input": "1"}}}
    assert put(dict(before)) == before
    assert put(dict(before), output="none", cache_write=["5m=none"]) == {
        "input": "1", "cache_write": {"1h": "4"}, "tiers": {"flex": {"input": "1"}},
    }  # fmt: skip
    assert "cache_write" not in put(dict(before), cache_write=["5m=none", "1h=none"])


@pytest.mark.parametrize("text", ["5m", "=1", ""])
@pytest.mark.parametrize("option", ["cache_write", "call"])
def test_a_price_without_its_name(option: str, text: str) -> None:
    with pytest.raises(typer.BadParameter, match="must be a name, = and the price"):
        put({}, **{option: [text]})


def test_prices_of_calls() -> None:
    assert put({"calls": {"web_fetch": "1"}}, call=["web_search=0.01"]) == {
        "calls": {"web_fetch": "1", "web_search": "0.01"},
    }  # fmt: skip


def test_a_price_is_found_by_its_moment_however_it_is_written() -> None:
    prices: list[dict[str, Any]] = [{"input": "1"}, {"from": "2027-01-31T01:00:00+01:00", "input": "2"}]
    assert price_of_moment(prices, None, NOW) is prices[0]
    assert price_of_moment(prices, JANUARY, NOW) is prices[1]
    assert price_of_moment([{"from": "never"}], None, NOW) == {"from": "never"}
    assert len(prices) == 2


def test_a_moment_without_a_price_gets_one() -> None:
    prices: list[dict[str, Any]] = []
    price_of_moment(prices, MAY, NOW)["input"] = "3"
    price_of_moment(prices, None, NOW)["input"] = "1"
    assert prices == [{"from": MAY, "input": "3"}, {"input": "1"}]


def test_without_one_of_them() -> None:
    prices: list[dict[str, Any]] = [{"input": "1"}, {"from": JANUARY}, {"from": MAY}]
    assert without_moment(prices, JANUARY, NOW) == [prices[0], prices[2]]
    assert without_moment(prices, "2030-01-01", NOW) == prices


@pytest.mark.parametrize(("member", "count"), [(None, 0), ({"input": "1"}, 1), ([{"input": "1"}, {}], 2)])
def test_one_price_may_stand_without_a_list(member: object, count: int) -> None:
    assert len(prices_in(member)) == count
