"""The commands of `headrace prices`."""

import time
from typing import Annotated

import msgspec
import typer

from headrace.cli.configuration import DEFAULT_FILE, ConfigOption
from headrace.cli.object_document import ObjectDocument
from headrace.cli.option_groups import grouped
from headrace.cli.output import JsonOption, Section, echo_json, fail, show
from headrace.cli.prices.fields import RateFields, price_of_moment, prices_in, without_moment
from headrace.cli.prices.import_ import has_own_price, import_
from headrace.cli.prices.rerate import rerate
from headrace.cli.prices.view import PriceReport, brief, report, sections
from headrace.cli.registry import Deleted, Registry, registry
from headrace.cli.standing import DATABASE, FILE
from headrace.model.catalogue import ObjectKind
from headrace.model.channel import Model
from headrace.model.price import price_at
from headrace.routing.catalogue import Catalogue

PRICE = ObjectKind.PRICE
COLUMNS = ("model", "input", "output", "prices", "from")

app = typer.Typer(no_args_is_help=True, help="What models cost: shown, set, imported, rated again.")

ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="The model's public name, or a pattern of the file.")
]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="WHEN", help="The moment from which it counts; always, else.")
]


class ModelPrices(msgspec.Struct, kw_only=True):
    """The prices of one model for programs."""

    model: str
    source: str | None
    """`file` or `database`; null where it has no price."""
    prices: list[PriceReport]


@app.command("list")
def list_(config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """List what each model costs now.

    Prices are in currency units per million tokens.
    """
    now = time.time()
    with registry(config) as found:
        models = found.parts.models
        if json:
            echo_json([_report(found, model) for model in models])
            return
        rows = tuple((model.name, *brief(price_at(model.prices, now)), *_origin(found, model)) for model in models)
        show([Section("prices now, per million tokens", rows, COLUMNS, (1, 2, 3))])
        _say_unused(found)


@app.command("show")
def show_(model: ModelArgument, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """Show all prices of a model: what it cost, costs and will cost.

    A name that is not declared is looked for among the patterns, as a request's is.
    """
    now = time.time()
    with registry(config) as found:
        asked = _model(found, model)
        if json:
            echo_json(_report(found, asked))
        elif not asked.prices:
            fail(f"{asked.name} has no price: what it costs is not known; `headrace prices set` gives it one")
        else:
            show(sections(asked.prices, now))
            typer.echo(f"\nfrom the {_source(found, asked)}")


@app.command("set")
@grouped
def set_(
    model: ModelArgument,
    rates: RateFields,
    since: FromOption = None,
    config: ConfigOption = DEFAULT_FILE,
    json: JsonOption = False,
) -> None:
    """Give a model a price in the database, or change it.

    Rates that are not given stay as they are; `none` takes one away. What has ended keeps the price that it was rated
    with: `headrace prices rerate` rates it again.
    """
    now = time.time()
    with registry(config, writes=True) as found:
        before = found.find(PRICE, model)
        _refuse_own_price(found, model)
        document = ObjectDocument(before)
        prices = prices_in(document.member("price"))
        rates.put_into(price_of_moment(prices, since, now))
        document.put("price", prices)
        one = document.stored(PRICE, model)
        if before is None:
            found.create(one)
        else:
            found.replace(one, before)
        priced = next((other for other in found.parts.models if other.name == model), None)
        if json:
            prices_now = priced.prices if priced is not None else ()
            echo_json(ModelPrices(model=model, source=DATABASE, prices=list(map(report, prices_now))))
        elif priced is not None:
            show(sections(priced.prices, now))
        else:
            typer.echo(f"there is no model {model} yet: its price waits for it")


@app.command("delete")
def delete(
    model: ModelArgument, since: FromOption = None, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False
) -> None:
    """Remove a model's prices from the database, or the one of a moment.

    A model without a price has an unknown cost, and is refused to keys with a budget.
    """
    with registry(config, writes=True) as found:
        before = found.own(PRICE, model)
        document = ObjectDocument(before)
        prices = prices_in(document.member("price"))
        left = without_moment(prices, since, time.time()) if since is not None else []
        if len(left) == len(prices):
            fail(f"{model} has no price from that moment on; `headrace prices show {model}` shows all")
        if left:
            document.put("price", left)
            found.replace(document.stored(PRICE, model), before)
        else:
            found.remove(before)
    if json:
        echo_json(Deleted(model))
        return
    typer.echo(f"{len(prices) - len(left)} of {len(prices)} prices of {model} deleted")


app.command("import")(import_)
app.command("rerate")(rerate)


# ---- parts


def _model(found: Registry, name: str) -> Model:
    """The model that a request for `name` would mean."""
    model = Catalogue(found.parts).find_model(name)
    if model is None:
        fail(f"there is no model {name}; `headrace models list` shows all")
    return model


def _refuse_own_price(found: Registry, name: str) -> None:
    """The price that a model brings along wins, so another in the database would be without effect."""
    if has_own_price(found, name):
        where = found.declared_at(ObjectKind.MODEL, name)
        fail(f"the price of {name} is declared in {where}: change it there; a changed file is taken by itself")


def _source(found: Registry, model: Model) -> str:
    """Where the prices of a model are declared."""
    return FILE if has_own_price(found, model.name) else DATABASE


def _origin(found: Registry, model: Model) -> tuple[str, str]:
    return str(len(model.prices)), _source(found, model) if model.prices else ""


def _report(found: Registry, model: Model) -> ModelPrices:
    source = _source(found, model) if model.prices else None
    return ModelPrices(model=model.name, source=source, prices=list(map(report, model.prices)))


def _say_unused(found: Registry) -> None:
    names = {model.name for model in found.parts.models}
    unused = [one.name for one in found.stored if one.kind is PRICE and one.name not in names]
    if unused:
        typer.echo(f"prices of the database for no model of this name: {', '.join(unused)}", err=True)
