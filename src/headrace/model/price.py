"""What a model costs: nano-units per million tokens by dimension, and when which of several prices counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Lifetime(Enum):
    """How long what was written to a prompt cache lives there."""

    FIVE_MINUTES = "5m"
    HALF_HOUR = "30m"
    HOUR = "1h"
    TWELVE_HOURS = "12h"


@dataclass(frozen=True, slots=True)
class Rates:
    """Nano-units per million tokens; `per_call` per exchange. None: not priced, and its use makes a cost unknown."""

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
    per_call: int | None = None


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


@dataclass(frozen=True, slots=True)
class LongContext:
    """Above so many input tokens, all tokens of a request cost more (or less)."""

    above: int
    factors: tuple[tuple[Dimension, int], ...]
    """By dimension, in billionths; a dimension that is not there has the factor 1."""


@dataclass(frozen=True, slots=True)
class Price:
    """One price of a model."""

    rates: Rates
    tiers: tuple[tuple[str, Rates], ...] = ()
    """Rates in a service tier that was served, by its name; they stand for themselves, nothing comes from `rates`."""
    long_context: LongContext | None = None
    since: float | None = None
    """Seconds since the epoch; None: always."""


def price_at(prices: Sequence[Price], at: float) -> Price | None:
    """The price that counts at a moment (seconds since the epoch): of those that have begun the latest.

    `prices` stand in the order of their beginnings.
    """
    begun = [price for price in prices if price.since is None or price.since <= at]
    return begun[-1] if begun else None
