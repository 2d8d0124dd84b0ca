"""The options that make up one price, and how they go into the list of prices that a model has."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from headrace.cli.allowance import NONE
from headrace.cli.moments import iso_of, moment_ahead
from headrace.config.places import read_moment

PLAIN = (
    "input",
    "cached_input",
    "output",
    "reasoning",
    "audio_input",
    "audio_output",
    "image",
    "image_output",
    "per_call",
)
PriceDocument = dict[str, Any]
"""One price in the file's shape, as JSON has it; what no option here names is kept in it."""


@dataclass(frozen=True, slots=True)
class RateFields:
    """Currency units per million tokens; None leaves a rate as it is, `none` takes it away."""

    input: Annotated[
        str | None, typer.Option(metavar="RATE", help="Input that was neither read from a cache nor written to one.")
    ] = None
    cached_input: Annotated[str | None, typer.Option(metavar="RATE", help="Input that was read from a cache.")] = None
    cache_write: Annotated[
        list[str] | None,
        typer.Option(metavar="LIFETIME=RATE", help="Input that was written to one, such as 5m=1.5; may be repeated."),
    ] = None
    output: Annotated[str | None, typer.Option(metavar="RATE", help="Output.")] = None
    reasoning: Annotated[
        str | None, typer.Option(metavar="RATE", help="Output that is reasoning; as output, else.")
    ] = None
    audio_input: Annotated[str | None, typer.Option(metavar="RATE", help="Input that is audio.")] = None
    audio_output: Annotated[str | None, typer.Option(metavar="RATE", help="Output that is audio.")] = None
    image: Annotated[str | None, typer.Option(metavar="RATE", help="Tokens of images.")] = None
    image_output: Annotated[
        str | None, typer.Option(metavar="RATE", help="Tokens of images that were made; as image, else.")
    ] = None
    per_call: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="Currency units for each exchange, not per million.")
    ] = None
    call: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=AMOUNT",
            help="Currency units for each call of such a tool, as web_search=0.01; may be repeated.",
        ),
    ] = None

    def put_into(self, price: PriceDocument) -> None:
        """Set what is given."""
        for name in (
            "input",
            "cached_input",
            "output",
            "reasoning",
            "audio_input",
            "audio_output",
            "image",
            "per_call",
        ):
            _put(price, name, getattr(self, name))
        _put_pairs(price, "cache_write", self.cache_write, "--cache-write")
        _put_pairs(price, "calls", self.call, "--call")


def price_of_moment(prices: list[PriceDocument], since: str | None, now: float) -> PriceDocument:
    """The one of a list that counts from `since` on (None: always), a new one in it where there is none."""
    moment = moment_ahead(since, now, "--from") if since is not None else None
    for price in prices:
        if _moment(price) == moment:
            return price
    prices.append({"from": iso_of(moment)} if moment is not None else {})
    return prices[-1]


def without_moment(prices: list[PriceDocument], since: str, now: float) -> list[PriceDocument]:
    """The list without the price that counts from `since` on."""
    moment = moment_ahead(since, now, "--from")
    return [price for price in prices if _moment(price) != moment]


def prices_in(member: object) -> list[PriceDocument]:
    """A document's prices, of which one may stand there without a list."""
    return [dict(one) for one in _many(member) if isinstance(one, dict)]


def _many(member: object) -> Iterator[object]:
    if isinstance(member, list):
        yield from member
    elif member is not None:
        yield member


def _moment(price: PriceDocument) -> float | None:
    since = price.get("from", "never")
    return None if since == "never" else read_moment(str(since))


def _put_pairs(price: PriceDocument, name: str, texts: list[str] | None, option: str) -> None:
    """Set some of what a price says by name, and leave the others."""
    pairs: dict[str, Any] = dict(price.pop(name, {}))
    for text in texts or ():
        which, equals, rate = text.partition("=")
        if not equals or not which:
            raise typer.BadParameter("must be a name, = and the price", param_hint=option)
        _put(pairs, which, rate)
    if pairs:
        price[name] = pairs


def _put(place: dict[str, Any], name: str, value: str | None) -> None:
    if value == NONE:
        place.pop(name, None)
    elif value is not None:
        place[name] = value
