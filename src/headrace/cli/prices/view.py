"""Prices as people and programs are shown them: currency units per million tokens, exactly."""

from collections.abc import Iterator

import msgspec

from headrace.cli.moments import iso_of, words_of
from headrace.cli.output import Section
from headrace.config.money import show_nano
from headrace.model.limits import NANO
from headrace.model.price import Price, Rates, price_at

TITLE = "per million tokens"


class PriceReport(msgspec.Struct, kw_only=True):
    """One price for programs."""

    version: str
    since: str | None
    """ISO; null: always."""
    rates: dict[str, str]
    tiers: dict[str, dict[str, str]]
    long_context: dict[str, str]
    """`above` (tokens), and a factor for each dimension that has one."""


def report(price: Price) -> PriceReport:
    """One price for programs."""
    long = price.long_context
    factors = {"above": str(long.above), **{one.value: show_nano(by) for one, by in long.factors}} if long else {}
    return PriceReport(
        version=price.version,
        since=iso_of(price.since) if price.since is not None else None,
        rates=dict(rate_rows(price.rates)),
        tiers={name: dict(rate_rows(rates)) for name, rates in price.tiers},
        long_context=factors,
    )


def rate_rows(rates: Rates) -> Iterator[tuple[str, str]]:
    """What is priced, by its name in the file."""
    for name in Rates.__dataclass_fields__:
        value = getattr(rates, name)
        if isinstance(value, tuple):
            yield from ((f"{name}.{one.value}", show_nano(rate)) for one, rate in value)
        elif value is not None:
            yield name, show_nano(value)


def brief(price: Price | None) -> tuple[str, str]:
    """Input and output for a table of models."""
    if price is None:
        return "unknown", "unknown"
    return _rate(price.rates.input), _rate(price.rates.output)


def sections(prices: tuple[Price, ...], now: float) -> Iterator[Section]:
    """Each price with all that it says, the one that counts now marked."""
    current = price_at(prices, now)
    for price in prices:
        since = "always" if price.since is None else f"from {words_of(price.since)}"
        mark = ", counts now" if price is current else ""
        yield Section(f"price {TITLE}, {since}{mark}", tuple(_facts(price)))


def _facts(price: Price) -> Iterator[tuple[str, str]]:
    yield "version", price.version
    yield from rate_rows(price.rates)
    for name, rates in price.tiers:
        yield from ((f"tier {name}: {dimension}", rate) for dimension, rate in rate_rows(rates))
    if (long := price.long_context) is not None:
        for one, factor in long.factors:
            if factor != NANO:
                yield f"above {long.above:,} input tokens: {one.value}", f"× {show_nano(factor)}"


def _rate(nano: int | None) -> str:
    return "-" if nano is None else show_nano(nano)
