"""What a usage costs: exact to the last digit, every token once, and unknown where something has no price."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headrace.metering.price import MILLION, Cost, buckets, cost_of, hold_of, rounded, served_tier
from headrace.model.limits import NANO
from headrace.model.price import Call, Dimension, Lifetime, LongContext, Price, Rates
from headrace.model.usage import Calls, ExtraUsage, Usage

UNIT = NANO
"""One currency unit per million tokens."""
PLAIN = Price(Rates(input=UNIT, cached_input=UNIT // 10, output=4 * UNIT))
FULL = Rates(
    input=1,
    cached_input=10,
    cache_write=((Lifetime.FIVE_MINUTES, 100), (Lifetime.HOUR, 1000)),
    output=10**4,
    reasoning=10**5,
    audio_input=10**6,
    audio_output=10**7,
    image=10**8,
    image_output=10**9,
)
"""Rates that cannot be mistaken for each other, in nano-units per million: an amount's digits are the token counts."""


def no_other(name: str) -> Price | None:
    return None


def cost(usage: Usage, price: Price | None = PLAIN, price_of: Callable[[str], Price | None] = no_other) -> Cost:
    return cost_of(usage, price, price_of)


def used(input: int = 0, output: int = 0, **more: object) -> Usage:
    return Usage(input_total=input, output_total=output, **more)  # type: ignore[arg-type]  # fields of any type


# ------------------------------------------------------------------------------------------------- which rate is whose


@pytest.mark.parametrize(
    ("usage", "millionths"),
    [
        (used(3), 3),
        (used(9, cached_input=4), 5 + 40),
        (used(9, cache_write=4), 5 + 400),
        (used(9, cache_write=4, cache_write_5m=1, cache_write_1h=3), 5 + 3100),
        (used(9, cache_write=4, cache_write_1h=3), 5 + 3100),
        (used(9, cached_input=2, cache_write=4, cache_write_1h=4), 3 + 20 + 4000),
        (used(output=7), 70_000),
        (used(output=7, reasoning=2), 50_000 + 200_000),
        (used(9, audio_input=4), 5 + 4_000_000),
        (used(9, image_input=4), 5 + 400_000_000),
        (used(9, image_input=4, audio_input=3), 2 + 3_000_000 + 400_000_000),
        (used(output=9, audio_output=4), 50_000 + 40_000_000),
        (used(output=9, image_output=4, audio_output=3), 20_000 + 30_000_000 + 4_000_000_000),
        (used(9, tool_input=9, video_input=9, document_input=9), 9),
        (used(output=9, accepted_prediction=4, rejected_prediction=4), 90_000),
    ],
)
def test_each_token_has_the_rate_of_its_kind(usage: Usage, millionths: int) -> None:
    assert cost(usage, Price(FULL)) == Cost(millionths)


def test_what_is_no_text_is_found_among_what_was_not_cached() -> None:
    """Of 9 tokens 6 came from a cache: 3 can be audio, and none is left for images."""
    assert cost(used(9, cached_input=6, audio_input=5, image_input=5), Price(FULL)) == Cost(60 + 3_000_000)
    assert cost(used(output=9, reasoning=6, audio_output=5), Price(FULL)) == Cost(600_000 + 30_000_000)


def test_reasoning_and_made_images_have_a_rate_to_fall_back_on() -> None:
    price = Price(Rates(output=10, image=1000))
    assert cost(used(output=9, reasoning=4), price) == Cost(90)
    assert cost(used(output=9, image_output=4), price) == Cost(4050)
    free = Price(Rates(output=10, reasoning=0, image=1000, image_output=0))
    assert cost(used(output=9, reasoning=4, image_output=5), free) == Cost(0), "0 is a price"


@pytest.mark.parametrize(
    ("writes", "rate"),
    [
        (((Lifetime.HOUR, 7), (Lifetime.FIVE_MINUTES, 5)), 5),
        (((Lifetime.HALF_HOUR, 7),), 7),
        (((Lifetime.HALF_HOUR, 7), (Lifetime.HOUR, 8)), None),
        ((), None),
    ],
)
def test_a_write_of_unspecified_lifetime(writes: tuple[tuple[Lifetime, int], ...], rate: int | None) -> None:
    price = Price(Rates(input=0, cache_write=writes))
    assert cost(used(9, cache_write=1), price) == (Cost(rate) if rate else Cost(0, ("cache_write",)))


def test_an_exchange_has_a_price_of_its_own() -> None:
    assert cost(used(1), Price(Rates(input=3, per_call=2))) == Cost(3 + 2 * MILLION)


def test_calls_are_counted_one_by_one() -> None:
    price = Price(Rates(input=0, calls=((Call.WEB_SEARCH, 3), (Call.GROUNDING, 0))))
    assert cost(used(calls=Calls(web_search=2, grounding=1, file_search=0)), price) == Cost(6 * MILLION)
    assert cost(used(calls=Calls(web_search=1, web_fetch=1)), price) == Cost(3 * MILLION, ("calls.web_fetch",))


def test_the_calls_with_a_price_are_those_of_a_usage() -> None:
    assert [call.value for call in Call] == list(Calls.__struct_fields__)


# ------------------------------------------------------------------------------------------------------------- tiers


@pytest.mark.parametrize(
    ("told", "tier"),
    [
        ({}, ""),
        ({"tier": "default"}, ""),
        ({"tier": "STANDARD", "speed": "standard", "geo": "global"}, ""),
        ({"tier": "ON_DEMAND", "geo": "not_available"}, ""),
        ({"tier": "Flex"}, "flex"),
        ({"tier": "ON_DEMAND_PRIORITY"}, "priority"),
        ({"tier": "standard", "speed": "fast"}, "fast"),
        ({"tier": "priority", "speed": "fast", "geo": "us"}, "priority-fast-us"),
    ],
)
def test_what_served_has_one_name(told: dict[str, str], tier: str) -> None:
    usage = used(1, 1, **told)
    assert served_tier(usage) == tier
    price = Price(Rates(input=1, output=1), ((tier, Rates(input=10, output=10)),) if tier else ())
    assert cost(usage, price) == Cost(20 if tier else 2)


def test_a_tier_takes_nothing_from_outside() -> None:
    price = Price(Rates(input=1, output=1, per_call=1), (("flex", Rates(input=10)),))
    assert cost(used(3, 4, tier="flex"), price) == Cost(30, ("output",))


def test_an_unknown_tier_leaves_the_cost_unknown() -> None:
    """What the standard tier would cost is still there to count a budget by."""
    assert cost(used(3, 4, tier="turbo"), Price(Rates(input=1, output=1))) == Cost(7, ("tier turbo",))
    (word,) = cost(used(tier="x" * 1000)).unpriced
    assert len(word) < 100


# ------------------------------------------------------------------------------------------------------ long contexts


def test_above_the_bound_all_tokens_cost_the_factor() -> None:
    long = LongContext(10, ((Dimension.INPUT, 2 * NANO), (Dimension.OUTPUT, 3 * NANO // 2)))
    price = Price(Rates(input=4, cached_input=1, output=2, per_call=1), (("flex", Rates(input=6, output=4)),), long)
    assert cost(used(10, 5), price) == Cost(40 + 10 + MILLION)
    assert cost(used(11, 5, cached_input=3), price) == Cost(8 * 8 + 3 + 5 * 3 + MILLION)
    assert cost(used(11, 5, tier="flex"), price) == Cost(11 * 12 + 5 * 6)


# ------------------------------------------------------------------------------------------------------------ unknown


@pytest.mark.parametrize(
    ("usage", "unpriced"),
    [
        (used(9, 9, cached_input=1), ("cached_input",)),
        (used(9, 9, cache_write=1, cache_write_12h=1), ("cache_write.12h",)),
        (used(9, 9, audio_input=1, audio_output=1), ("audio_input", "audio_output")),
        (used(9, 9, image_input=1, image_output=1), ("image",)),
        (used(9, 9, calls=Calls(code_execution=1)), ("calls.code_execution",)),
        (Usage(input_total=9), ("unknown output",)),
        (Usage(output_total=9), ("unknown input",)),
    ],
)
def test_what_has_no_price_is_named(usage: Usage, unpriced: tuple[str, ...]) -> None:
    found = cost(usage, Price(Rates(input=1, output=1)))
    assert found.unpriced == unpriced
    assert not found.known
    assert found.millionths > 0, "what has a price is counted"


def test_a_word_stands_once() -> None:
    assert cost(used(output=9, reasoning=3), Price(Rates(input=1))) == Cost(0, ("output",))


def test_what_was_not_used_needs_no_price() -> None:
    empty = used(9, cached_input=0, cache_write=0, reasoning=0, audio_input=0, audio_output=0, calls=Calls(web_fetch=0))
    assert cost(empty, Price(Rates(input=1))) == Cost(9)


def test_without_a_price_nothing_is_known() -> None:
    assert cost(used(), None) == Cost(0, ("price",))


# ------------------------------------------------------------------------------------------------------- other models


def test_other_models_have_their_own_prices() -> None:
    inner = used(5, 1, tier="flex", extra=(ExtraUsage(kind="fallback", model="small", usage=used(7)),))
    usage = used(100, 10, extra=(ExtraUsage(kind="advisor", model="big", usage=inner),))
    prices = {"big": Price(Rates(input=3, per_call=1), (("flex", Rates(input=2)),)), "small": Price(Rates(input=11))}
    found = cost(usage, Price(Rates(input=1, output=1)), prices.get)
    assert found == Cost(110 + 10 + 77, ("output of big",))
    assert cost(usage, Price(Rates(input=1, output=1))) == Cost(110, ("price of big", "price of small of big"))


def test_costs_of_attempts_add_up() -> None:
    assert Cost(1, ("input",)) + Cost(2) + Cost(3, ("input", "calls.grounding")) == Cost(
        6, ("calls.grounding", "input")
    )
    assert sum([Cost(1), Cost(2)], Cost()).known


# ---------------------------------------------------------------------------------------------------------- exactness

tokens = st.integers(0, 10**9)
rate = st.integers(0, 10**15)
some_rate = st.none() | rate


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Counts that can be: parts within their totals, lifetimes within what was written."""
    uncached, read, visible, reasoning, unspecified = (draw(tokens) for _ in range(5))
    lives = {f"cache_write_{life.value}": draw(tokens) for life in Lifetime}
    write = unspecified + sum(lives.values())
    return Usage(
        input_total=uncached + read + write,
        cached_input=read,
        cache_write=write,
        **lives,  # type: ignore[arg-type]  # counts all of them
        audio_input=draw(tokens),
        image_input=draw(tokens),
        output_total=visible + reasoning,
        reasoning=reasoning,
        audio_output=draw(tokens),
        image_output=draw(tokens),
        tier=draw(st.sampled_from(["", "default", "flex", "turbo"])),
    )


rates = st.builds(
    Rates,
    input=some_rate,
    cached_input=some_rate,
    cache_write=st.dictionaries(st.sampled_from(Lifetime), rate).map(lambda by_life: tuple(by_life.items())),
    output=some_rate,
    reasoning=some_rate,
    audio_input=some_rate,
    audio_output=some_rate,
    image=some_rate,
    image_output=some_rate,
    per_call=some_rate,
)


@given(usages(), rates)
def test_every_token_is_in_one_bucket(usage: Usage, rates: Rates) -> None:
    found = buckets(usage, rates)
    assert sum(tokens for _, tokens, _ in found) == (usage.input_total or 0) + (usage.output_total or 0)
    assert all(tokens >= 0 for _, tokens, _ in found)


def expected(usage: Usage, rates: Rates, factor: Callable[[str], Fraction]) -> Fraction:
    """Currency units, worked out the slow way: kind by kind, in fractions."""
    read, write, reasoning = usage.cached_input or 0, usage.cache_write or 0, usage.reasoning or 0
    lives = {life: getattr(usage, f"cache_write_{life.value}") or 0 for life in Lifetime}
    by_life, uncached = dict(rates.cache_write), (usage.input_total or 0) - read - write
    audio_in = min(usage.audio_input or 0, uncached)
    image_in = min(usage.image_input or 0, uncached - audio_in)
    visible = (usage.output_total or 0) - reasoning
    audio_out = min(usage.audio_output or 0, visible)
    image_out = min(usage.image_output or 0, visible - audio_out)
    only = next(iter(by_life.values())) if len(by_life) == 1 else None
    kinds = [
        (uncached - audio_in - image_in, "input", rates.input),
        (audio_in, "audio_input", rates.audio_input),
        (image_in, "image", rates.image),
        (read, "cached_input", rates.cached_input),
        (write - sum(lives.values()), "cache_write", by_life.get(Lifetime.FIVE_MINUTES, only)),
        *((count, "cache_write", by_life.get(life)) for life, count in lives.items()),
        (visible - audio_out - image_out, "output", rates.output),
        (audio_out, "audio_output", rates.audio_output),
        (image_out, "image" if rates.image_output is None else "image_output",
         rates.image if rates.image_output is None else rates.image_output),
        (reasoning, "output" if rates.reasoning is None else "reasoning",
         rates.output if rates.reasoning is None else rates.reasoning),
    ]  # fmt: skip
    per_token = sum(
        (count * Fraction(one or 0, NANO * MILLION) * factor(kind) for count, kind, one in kinds), Fraction()
    )
    return per_token + Fraction(rates.per_call or 0, NANO)


@given(usages(), rates, rates, st.integers(0, 10**12))
def test_a_cost_is_exact(usage: Usage, base: Rates, flex: Rates, multiplier: int) -> None:
    found = cost(usage, Price(base, (("flex", flex),)))
    exact = expected(usage, flex if usage.tier == "flex" else base, lambda kind: Fraction(1))
    assert Fraction(found.millionths, MILLION * NANO) == exact
    charge = exact * NANO * Fraction(multiplier, NANO)
    assert rounded(found.millionths, multiplier) == (charge + Fraction(1, 2)).__floor__()


@given(usages(), rates, st.dictionaries(st.sampled_from(Dimension), st.integers(0, 10**12)), st.integers(1, 10**9))
def test_a_long_context_is_exact(usage: Usage, base: Rates, factors: dict[Dimension, int], above: int) -> None:
    whole = {dimension: factor // NANO * NANO for dimension, factor in factors.items()}
    assume((usage.input_total or 0) > above)
    found = cost(usage, Price(base, long_context=LongContext(above, tuple(whole.items()))))
    by_name = {dimension.value: Fraction(factor, NANO) for dimension, factor in whole.items()}
    assert Fraction(found.millionths, MILLION * NANO) == expected(
        usage, base, lambda kind: by_name.get(kind, Fraction(1))
    )


@given(usages(), rates, st.sampled_from(["input_total", "output_total"]), tokens)
def test_more_tokens_never_cost_less_where_nothing_else_changes(
    usage: Usage, base: Rates, total: str, more: int
) -> None:
    plain = Usage(input_total=usage.input_total, output_total=usage.output_total)
    counts = {"input_total": plain.input_total or 0, "output_total": plain.output_total or 0}
    larger = Usage(**counts | {total: counts[total] + more})  # type: ignore[arg-type]  # counts, both
    assert cost(larger, Price(base)).millionths >= cost(plain, Price(base)).millionths


@pytest.mark.parametrize(
    ("millionths", "multiplier", "nano"),
    [
        (0, NANO, 0),
        (499_999, NANO, 0),
        (500_000, NANO, 1),
        (1_499_999, NANO, 1),
        (1_500_000, NANO, 2),
        (1_000_000, NANO // 2, 1),
        (999_999, NANO // 2, 0),
        (250_000, 2 * NANO, 1),
        (10**40 + 500_000, NANO, 10**34 + 1),
        (10**12, 0, 0),
    ],
)
def test_rounding_is_half_up_and_only_once(millionths: int, multiplier: int, nano: int) -> None:
    assert rounded(millionths, multiplier) == nano


def test_rounding_the_sum_is_not_summing_what_is_rounded() -> None:
    half = Cost(500_000)
    assert rounded((half + half).millionths) == 1
    assert rounded(half.millionths) * 2 == 2


@given(rates, st.integers(0, 10**7), st.integers(0, 10**6))
def test_a_hold_is_the_price_of_plain_tokens(of: Rates, into: int, out: int) -> None:
    price = Price(of)
    plain = cost_of(Usage(input_total=into, output_total=out), price, no_other)
    assert hold_of(into, out, price) == plain.millionths
