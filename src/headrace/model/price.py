"""What a model costs: nano-units per million tokens by dimension, and when which of several prices counts.

A price is exact: a factor that would make a rate finer than a nano-unit per million tokens cannot stand in one. So no
amount is rounded before the one division that ends it (`metering.price`).
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from headrace.model.limits import NANO

VERSION_DIGITS = 12
"""Hexadecimal digits of a price's version: of a million prices two are alike with a chance of 1 in 500."""

STANDARD_TIERS = frozenset(
    {"", "default", "standard", "auto", "on_demand", "global", "not_available"}
    | {"unspecified", "service_tier_unspecified", "traffic_type_unspecified"}
)
"""How upstreams call what is no tier, speed or place of its own; it costs what the price says outside its tiers."""


class Lifetime(Enum):
    """How long what was written to a prompt cache lives there."""

    FIVE_MINUTES = "5m"
    HALF_HOUR = "30m"
    HOUR = "1h"
    TWELVE_HOURS = "12h"


class Call(Enum):
    """What a provider does on the way and charges by the call; the names are those of `usage.Calls`."""

    WEB_SEARCH = "web_search"
    WEB_FETCH = "web_fetch"
    GROUNDING = "grounding"
    IMAGE_GENERATION = "image_generation"
    CODE_EXECUTION = "code_execution"
    FILE_SEARCH = "file_search"


@dataclass(frozen=True, slots=True)
class Rates:
    """Nano-units per million tokens; `per_call` per exchange, `calls` per call. None: not priced, and its use makes a
    cost unknown."""

    input: int | None = None
    """Input that was neither read from nor written to a cache."""
    cached_input: int | None = None
    cache_write: tuple[tuple[Lifetime, int], ...] = ()
    output: int | None = None
    reasoning: int | None = None
    """None: reasoning costs what `output` does."""
    audio_input: int | None = None
    audio_output: int | None = None
    image: int | None = None
    image_output: int | None = None
    """None: images that were made cost what `image` says."""
    per_call: int | None = None
    """None: nothing is charged for the exchange itself."""
    calls: tuple[tuple[Call, int], ...] = ()

    @property
    def per_token(self) -> bool:
        """Whether tokens of any kind cost anything."""
        tokens = (self.input, self.cached_input, self.output, self.reasoning, self.audio_input, self.audio_output)
        return any(tokens) or any((self.image, self.image_output)) or any(rate for _, rate in self.cache_write)


class Dimension(Enum):
    """What tokens are priced by; `cache_write` stands for all of its lifetimes."""

    INPUT = "input"
    CACHED_INPUT = "cached_input"
    CACHE_WRITE = "cache_write"
    OUTPUT = "output"
    REASONING = "reasoning"
    AUDIO_INPUT = "audio_input"
    AUDIO_OUTPUT = "audio_output"
    IMAGE = "image"
    IMAGE_OUTPUT = "image_output"


@dataclass(frozen=True, slots=True)
class LongContext:
    """Above so many input tokens, all tokens of a request cost more (or less), in every tier."""

    above: int
    factors: tuple[tuple[Dimension, int], ...]
    """By dimension, in billionths; a dimension that is not there has the factor 1."""


@dataclass(frozen=True, slots=True)
class Price:
    """One price of a model. Raises ValueError for a long context whose rates are no whole nano-units."""

    rates: Rates
    tiers: tuple[tuple[str, Rates], ...] = ()
    """Rates in a service tier that was served, by its name in lower case; they stand for themselves, nothing comes from
    `rates`."""
    long_context: LongContext | None = None
    since: float | None = None
    """Seconds since the epoch; None: always."""
    version: str = field(init=False, default="", compare=False)
    """`version_of` it: made once, for every entry has it."""

    def __post_init__(self) -> None:
        if self.long_context is not None:
            for rates in (self.rates, *(rates for _, rates in self.tiers)):
                scaled(rates, self.long_context)
        object.__setattr__(self, "version", version_of(self))


def scaled(rates: Rates, long: LongContext) -> Rates:
    """What `rates` are above the bound. Raises ValueError where one would be finer than a billionth."""
    factors = dict(long.factors)

    def times(dimension: Dimension, rate: int) -> int:
        product, rest = divmod(rate * factors.get(dimension, NANO), NANO)
        if rest:
            raise ValueError(f"makes the price of {dimension.value} finer than a billionth")
        return product

    plain: dict[str, Any] = {
        dimension.value: times(dimension, rate)
        for dimension in Dimension
        if dimension is not Dimension.CACHE_WRITE and (rate := getattr(rates, dimension.value)) is not None
    }
    writes = tuple((life, times(Dimension.CACHE_WRITE, rate)) for life, rate in rates.cache_write)
    return replace(rates, **plain, cache_write=writes)


def price_at(prices: Sequence[Price], at: float) -> Price | None:
    """The price that counts at a moment (seconds since the epoch): of those that have begun the latest.

    `prices` stand in the order of their beginnings.
    """
    for price in reversed(prices):
        if price.since is None or price.since <= at:
            return price
    return None


def version_of(price: Price) -> str:
    """A name of the price's content: 12 hexadecimal digits, the same in every process and for every order of its parts.

    Only what is set goes into it, so a dimension that a later version of the gateway adds renames no price.
    """
    facts = [f"since={float(price.since)!r}"] if price.since is not None else []
    facts += _facts("rates", price.rates)
    for name, rates in price.tiers:
        facts += _facts(f"tiers.{name}", rates)
    if price.long_context is not None:
        facts.append(f"long_context.above={price.long_context.above}")
        facts += (f"long_context.{one.value}={factor}" for one, factor in price.long_context.factors)
    return hashlib.sha256("\n".join(sorted(facts)).encode()).hexdigest()[:VERSION_DIGITS]


def _facts(prefix: str, rates: Rates) -> Iterator[str]:
    for name in Rates.__dataclass_fields__:
        value = getattr(rates, name)
        if isinstance(value, tuple):
            yield from (f"{prefix}.{name}.{one.value}={rate}" for one, rate in value)
        elif value is not None:
            yield f"{prefix}.{name}={value}"
