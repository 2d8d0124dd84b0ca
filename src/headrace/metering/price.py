"""What a usage costs: every token in one bucket, every bucket at one rate, one division at the end.

    input   uncached ──┬─ audio          audio_input     output  visible ──┬─ audio    audio_output
                       ├─ images         image                             ├─ images   image_output, else image
                       └─ all the rest   input                             └─ the rest output
            read from a cache            cached_input            reasoning             reasoning, else output
            written to one, by lifetime  cache_write

Upstreams do not say how much of what was cached was audio or images, so those are looked for in the uncached input
only, and in the visible output. What was used and has no rate is named in `Cost.unpriced`, and the cost is then not
known; no use of it is free.
"""

from collections.abc import Callable, Iterator

import msgspec

from headrace.model.limits import NANO
from headrace.model.price import STANDARD_TIERS, Lifetime, Price, Rates, scaled
from headrace.model.usage import NO_CALLS, Calls, Leaves, Usage

MILLION = 1_000_000
MOST_NAME = 64
"""Characters of a name out of a reply that `Cost.unpriced` repeats."""

_WRITES = tuple((life, f"cache_write.{life.value}") for life in Lifetime)
"""In the order of `Leaves`."""

PriceOf = Callable[[str], Price | None]


class Cost(msgspec.Struct, frozen=True, gc=False):
    """What was used costs `millionths` of a nano-unit, and what has no price (`unpriced`, sorted). Costs add up.

    Three are made for a request: a struct takes 0.2 µs, a frozen dataclass 1.
    """

    millionths: int = 0
    unpriced: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether everything that was used has a price."""
        return not self.unpriced

    def __add__(self, other: "Cost") -> "Cost":
        if not (self.unpriced or other.unpriced):
            return Cost(self.millionths + other.millionths)
        return Cost(self.millionths + other.millionths, tuple(sorted({*self.unpriced, *other.unpriced})))


Bucket = tuple[str, int, int | None]
"""How `Cost.unpriced` calls the tokens, their number, and nano-units per million of them (None: not priced)."""


def cost_of(usage: Usage, price: Price | None, price_of: PriceOf) -> Cost:
    """What one attempt's usage costs at `price`, its `per_call` included. `price_of` has the prices of the other models
    that were used on the way, by their names.

    A total that is None leaves the cost unknown; a usage of nothing at all is for the caller to tell apart before.
    """
    cost = _own_cost(usage, price)
    for extra in usage.extra:
        other = cost_of(extra.usage, price_of(extra.model), price_of)
        of = f" of {extra.model[:MOST_NAME]}"
        cost += Cost(other.millionths, tuple(word + of for word in other.unpriced))
    return cost


def hold_of(input_tokens: int, output_tokens: int, price: Price) -> int:
    """What so many tokens of plain input and output cost at `price`, in millionths of a nano-unit, as `cost_of` would
    say it; what has no rate counts as nothing. Before an answer no more is known of it, and this takes a fifth of the
    time."""
    rates = price.rates
    if (long := price.long_context) is not None and input_tokens > long.above:
        rates = scaled(rates, long)
    return input_tokens * (rates.input or 0) + output_tokens * (rates.output or 0) + (rates.per_call or 0) * MILLION


def rounded(millionths: int, multiplier: int = NANO) -> int:
    """Nano-units: `millionths` times `multiplier` (in billionths), divided once, half up."""
    divisor = MILLION * NANO
    return (millionths * multiplier + divisor // 2) // divisor


def served_tier(usage: Usage) -> str:
    """What a price's tiers are looked up by: tier, speed and place that served, in lower case and joined by `-`, each
    unless it is standard."""
    words = (word.lower().removeprefix("on_demand_") for word in (usage.tier, usage.speed, usage.geo))
    return "-".join(word for word in words if word not in STANDARD_TIERS)


def buckets(usage: Usage, rates: Rates) -> list[Bucket]:
    """The usage's tokens, each in one bucket; most of the empty buckets are left out."""
    leaves = usage.leaves()
    text, visible = leaves.uncached, leaves.visible
    found: list[Bucket] = []
    if usage.audio_input or usage.image_input:
        audio = min(usage.audio_input or 0, text)
        image = min(usage.image_input or 0, text - audio)
        text -= audio + image
        found += (("audio_input", audio, rates.audio_input), ("image", image, rates.image))
    if usage.audio_output or usage.image_output:
        audio = min(usage.audio_output or 0, visible)
        image = min(usage.image_output or 0, visible - audio)
        visible -= audio + image
        made, word = (rates.image, "image") if rates.image_output is None else (rates.image_output, "image_output")
        found += (("audio_output", audio, rates.audio_output), (word, image, made))
    found += (("input", text, rates.input), ("output", visible, rates.output))
    if leaves.cache_read:
        found.append(("cached_input", leaves.cache_read, rates.cached_input))
    if leaves.reasoning:
        reasoning, word = (rates.output, "output") if rates.reasoning is None else (rates.reasoning, "reasoning")
        found.append((word, leaves.reasoning, reasoning))
    if any(leaves[2:7]):
        found += _writes(leaves, rates)
    return found


def _writes(leaves: Leaves, rates: Rates) -> Iterator[Bucket]:
    """What was written to a cache, by lifetime. One that was not said costs what 5 minutes do, the upstreams' own
    default; without a rate for them what the only lifetime costs that has one."""
    if leaves.cache_write_unspecified:
        rate = _write_rate(rates, Lifetime.FIVE_MINUTES)
        if rate is None and len(rates.cache_write) == 1:
            rate = rates.cache_write[0][1]
        yield ("cache_write", leaves.cache_write_unspecified, rate)
    for (life, word), tokens in zip(_WRITES, leaves[3:7], strict=True):
        if tokens:
            yield (word, tokens, _write_rate(rates, life))


def _write_rate(rates: Rates, life: Lifetime) -> int | None:
    return next((rate for one, rate in rates.cache_write if one is life), None)


def _own_cost(usage: Usage, price: Price | None) -> Cost:
    if price is None:
        return Cost(0, ("price",))
    rates, unpriced = _rates(usage, price)
    total = (rates.per_call or 0) * MILLION
    for word, tokens, rate in buckets(usage, rates):
        if rate is not None:
            total += tokens * rate
        elif tokens:
            unpriced.append(word)
    if usage.calls is not NO_CALLS:
        by_call = {call.value: rate for call, rate in rates.calls}
        for name in Calls.__struct_fields__:
            if count := getattr(usage.calls, name):
                total += count * by_call.get(name, 0) * MILLION
                unpriced += () if name in by_call else (f"calls.{name}",)
    return Cost(total, tuple(sorted(set(unpriced))) if unpriced else ())


def _rates(usage: Usage, price: Price) -> tuple[Rates, list[str]]:
    """The rates that hold, and what is not known of them. In a tier that has none those outside the tiers are the
    nearest: something to count a budget by, while the cost is not known."""
    rates, unknown = price.rates, []
    tier = "" if usage.tier in STANDARD_TIERS and not usage.speed and not usage.geo else served_tier(usage)
    if tier:
        own = next((rates for name, rates in price.tiers if name == tier), None)
        if own is None:
            unknown.append(f"tier {tier[:MOST_NAME]}")
        else:
            rates = own
    if usage.input_total is None:
        unknown.append("unknown input")
    if usage.output_total is None:
        unknown.append("unknown output")
    long = price.long_context
    if long is not None and (usage.input_total or 0) > long.above:
        rates = scaled(rates, long)
    return rates, unknown
