"""Options about how much: limits of keys, owners and credentials, their budgets, and the prices of models."""

from typing import Annotated

from pydantic import Field

from headrace.config.forms import DefaultText, DurationOrZero, choice, one_of, whole
from headrace.config.money import Amount, Factor, PriceText, Rate
from headrace.config.options.group import GIVEN, Options
from headrace.config.places import Moment, Name
from headrace.model.limits import Budget, Exceeded, Limits, Window
from headrace.model.price import Call, Dimension, Lifetime, Price, Rates

_LIMITS = Limits()
_BUDGET = Budget(0)
_RATES = Rates()
_PRICE = Price(_RATES)

Requests = Annotated[int | None, whole(1, 1_000_000_000), DefaultText("none")]
TokensAMinute = Annotated[int | None, whole(1, 1_000_000_000_000), DefaultText("none")]
Places = Annotated[int | None, whole(1, 1_000_000), DefaultText("none")]
InputTokens = Annotated[int, whole(1, 1_000_000_000)]
WindowChoice = Annotated[Window, choice(Window, "window")]
ExceededChoice = Annotated[Exceeded, choice(Exceeded, "policy")]
StatusChoice = Annotated[int, one_of(402, 429)]
DimensionChoice = Annotated[Dimension, choice(Dimension, "dimension")]
LifetimeChoice = Annotated[Lifetime, choice(Lifetime, "lifetime")]
CallChoice = Annotated[Call, choice(Call, "call")]
NoPrice = DefaultText("not priced")


class LimitOptions(Options):
    """Rates and places. A minute is any 60 whole seconds."""

    requests_per_minute: Requests = Field(
        default=_LIMITS.requests_per_minute, description="Requests in any 60 seconds at most."
    )
    tokens_per_minute: TokensAMinute = Field(
        default=_LIMITS.tokens_per_minute, description="Tokens in any 60 seconds at most, input and output."
    )
    concurrent: Places = Field(default=_LIMITS.concurrent, description="Exchanges at a time at most.")


class OwnerLimitOptions(LimitOptions):
    """Rates and places over all keys of the owner together. A minute is any 60 whole seconds."""

    wait: Annotated[DurationOrZero, DefaultText("limits.wait")] = Field(
        default=_LIMITS.wait, description="How long a request over one of these limits waits for room; then 429."
    )


class KeyLimitOptions(OwnerLimitOptions):
    """Rates and places of one key. A minute is any 60 whole seconds."""

    upstream_wait: Annotated[DurationOrZero, DefaultText("limits.upstream_wait")] = Field(
        default=_LIMITS.upstream_wait,
        description="How long a request waits while all upstream credentials are full, within stream.open; then 503.",
    )


class WaitOptions(Options):
    """How long requests wait for room, where a key or an owner does not say otherwise."""

    wait: DurationOrZero = Field(
        default=_LIMITS.wait, description="A request over a limit of its key or owner; then 429."
    )
    upstream_wait: DurationOrZero = Field(
        default=_LIMITS.upstream_wait,
        description="A request while all upstream credentials are full, within stream.open; then 503.",
    )


class BudgetOptions(Options):
    """How much may be spent."""

    amount: Amount = Field(description="Currency units in each window; with 0 nothing can be spent.")
    window: WindowChoice = Field(
        default=_BUDGET.window, description="A calendar month, day or hour in UTC, or all time."
    )
    exceeded: ExceededChoice = Field(
        default=_BUDGET.exceeded, description="What happens to running streams once it is spent."
    )
    status: StatusChoice = Field(default=_BUDGET.status, description="The status of a request that it refuses.")


class RateOptions(Options):
    """Currency units per million tokens, in a service tier that was served. Nothing is taken from the prices outside.

    A kind of token that was used and has no price makes the cost unknown, never 0.
    """

    input: Annotated[Rate, NoPrice] = Field(
        default=_RATES.input, description="Input that was neither read from a cache nor written to one."
    )
    cached_input: Annotated[Rate, NoPrice] = Field(
        default=_RATES.cached_input, description="Input that was read from a cache."
    )
    cache_write: dict[LifetimeChoice, PriceText] = Field(
        default={}, description="Input that was written to a cache, by the time that it lives there."
    )
    output: Annotated[Rate, NoPrice] = Field(default=_RATES.output, description="Output.")
    reasoning: Annotated[Rate, DefaultText("as output")] = Field(
        default=_RATES.reasoning, description="Output that is reasoning."
    )
    audio_input: Annotated[Rate, NoPrice] = Field(default=_RATES.audio_input, description="Input that is audio.")
    audio_output: Annotated[Rate, NoPrice] = Field(default=_RATES.audio_output, description="Output that is audio.")
    image: Annotated[Rate, NoPrice] = Field(default=_RATES.image, description="Tokens of images.")
    image_output: Annotated[Rate, DefaultText("as image")] = Field(
        default=_RATES.image_output, description="Output that is images."
    )
    per_call: Annotated[Rate, DefaultText("nothing")] = Field(
        default=_RATES.per_call, description="Currency units for each exchange, not per million."
    )
    calls: dict[CallChoice, PriceText] = Field(
        default={}, description="Currency units for each call of a tool that the provider runs and charges for."
    )


class LongContextOptions(Options):
    """What a long input makes of the price of the whole request."""

    above: InputTokens = Field(description="Input tokens of a request above which it counts as long.")
    factors: dict[DimensionChoice, Factor] = Field(
        min_length=1, description="What each kind of price is multiplied by then; 1 for those that are not named."
    )


class PriceOptions(RateOptions):
    """Currency units per million tokens. A list holds several prices, each `from` another moment on.

    A kind of token that was used and has no price makes the cost unknown, never 0.
    """

    tiers: dict[Name, RateOptions] = Field(
        default={}, description="Prices in a service tier, by the name of the tier that was served, such as flex."
    )
    long_context: Annotated[LongContextOptions | None, GIVEN] = Field(
        default=None, description=str(LongContextOptions.__doc__)
    )
    since: Annotated[Moment, DefaultText("always")] = Field(
        default=_PRICE.since, alias="from", description="The moment from which it counts."
    )
