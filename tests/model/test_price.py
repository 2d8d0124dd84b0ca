"""Which price counts when, what it is called, and that it is exact."""

import subprocess
import sys
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.limits import NANO
from headrace.model.price import (
    VERSION_DIGITS,
    Call,
    Dimension,
    Lifetime,
    LongContext,
    Price,
    Rates,
    price_at,
    scaled,
    version_of,
)

ALWAYS, NEW_YEAR, SPRING = (Price(Rates(input=n), since=at) for n, at in ((1, None), (2, 100.0), (3, 200.0)))
WRITES = ((Lifetime.HOUR, 5), (Lifetime.FIVE_MINUTES, 4))
RATES = Rates(input=1_250_000_000, cache_write=WRITES, output=10, calls=((Call.WEB_SEARCH, 1), (Call.GROUNDING, 2)))
LONG = LongContext(200_000, ((Dimension.INPUT, 2 * NANO), (Dimension.OUTPUT, 3 * NANO // 2)))
FULL = Price(RATES, (("flex", Rates(input=1)), ("priority", Rates(input=4))), LONG, 1.5)


def test_the_latest_that_has_begun_counts() -> None:
    prices = (ALWAYS, NEW_YEAR, SPRING)
    assert [price_at(prices, at) for at in (0.0, 99.9, 100.0, 199.9, 200.0, 1e9)] == [
        ALWAYS, ALWAYS, NEW_YEAR, NEW_YEAR, SPRING, SPRING,
    ]  # fmt: skip


def test_before_the_first_there_is_none() -> None:
    assert price_at((NEW_YEAR, SPRING), 99.0) is None
    assert price_at((), 1.0) is None


def test_a_version_is_the_contents_name() -> None:
    assert len(FULL.version) == VERSION_DIGITS
    assert FULL.version == version_of(FULL) == version_of(replace(FULL))
    others = [
        replace(FULL, since=2.5),
        replace(FULL, since=None),
        replace(FULL, tiers=FULL.tiers[:1]),
        replace(FULL, tiers=(("flex", Rates(output=2)), FULL.tiers[1])),
        replace(FULL, long_context=replace(LONG, above=200_001)),
        replace(FULL, long_context=replace(LONG, factors=LONG.factors[:1])),
        replace(FULL, rates=replace(RATES, input=None)),
        replace(FULL, rates=replace(RATES, reasoning=0)),
        replace(FULL, rates=replace(RATES, cache_write=((Lifetime.HOUR, 4), (Lifetime.FIVE_MINUTES, 5)))),
        replace(FULL, rates=replace(RATES, calls=())),
    ]
    assert len({FULL.version, *(one.version for one in others)}) == 11


def test_the_order_of_the_parts_is_no_content() -> None:
    turned = Price(
        replace(RATES, cache_write=WRITES[::-1], calls=RATES.calls[::-1]),
        FULL.tiers[::-1],
        replace(LONG, factors=LONG.factors[::-1]),
        1.5,
    )
    assert turned.version == FULL.version


def test_a_version_is_the_same_everywhere() -> None:
    """In entries it outlives processes and versions of Python: these are written down."""
    assert Price(Rates(input=1_250_000_000, output=10_000_000_000)).version == "56b24652476a"
    assert FULL.version == "5c5a488d9291"
    code = (
        "from headrace.model.price import Price, Rates; print(Price(Rates(input=1_250_000_000, output=10**10)).version)"
    )
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            encoding="utf-8",
        )
        assert told.stdout.strip() == "56b24652476a"


def test_a_version_goes_with_a_snapshot() -> None:
    back = msgspec.msgpack.decode(msgspec.msgpack.encode(FULL), type=Price)
    assert (back, back.version) == (FULL, FULL.version)


def test_a_long_context_has_rates_of_its_own() -> None:
    assert scaled(RATES, LONG) == replace(RATES, input=2_500_000_000, output=15)
    writes = LongContext(1, ((Dimension.CACHE_WRITE, 2 * NANO), (Dimension.REASONING, 5)))
    assert scaled(RATES, writes).cache_write == ((Lifetime.HOUR, 10), (Lifetime.FIVE_MINUTES, 8))
    assert scaled(RATES, writes).reasoning is None, "what has no price has none in a long context"


@given(st.integers(0, 10**15), st.integers(0, 10**12))
def test_a_price_is_exact_or_is_none(rate: int, factor: int) -> None:
    long = LongContext(1, ((Dimension.OUTPUT, factor),))
    if rate * factor % NANO:
        for tiers in ((), (("flex", Rates(output=rate)),)):
            with pytest.raises(ValueError, match="makes the price of output finer than a billionth"):
                Price(Rates() if tiers else Rates(output=rate), tiers, long)
    else:
        assert scaled(Price(Rates(output=rate), (), long).rates, long).output == rate * factor // NANO
