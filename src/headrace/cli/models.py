"""`headrace models`: what clients can ask for, where it goes, and what it costs."""

import time
from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer

from headrace.cli.configuration import DEFAULT_FILE, ConfigOption
from headrace.cli.output import JsonOption, Section, echo_json, fail, show
from headrace.cli.prices.view import PriceReport, brief, report, sections
from headrace.cli.registry import Registry, registry
from headrace.cli.standing import Standing, standings
from headrace.model.catalogue import ObjectKind
from headrace.model.channel import Model, Route
from headrace.model.price import price_at
from headrace.model.wire import WireProtocol
from headrace.routing.catalogue import Catalogue

COLUMNS = ("name", "state", "routes, first to last", "protocols", "input", "output", "from")

app = typer.Typer(no_args_is_help=True, help="Models: names that clients ask for, their routes and prices.")

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="A name as a client would ask for it.")]


class RouteReport(msgspec.Struct):
    """Where a model's requests may go."""

    channel: str
    upstream_model: str | None
    priority: int
    weight: int


class ModelReport(msgspec.Struct, kw_only=True):
    """One model for programs."""

    name: str
    source: str
    state: str
    """active; shadowed where the file has another of its name, broken where it cannot be served."""
    problem: str
    routes: list[RouteReport]
    protocols: list[str]
    max_output: int | None
    price: PriceReport | None
    """What counts now; null: the cost is not known."""


@app.command("list")
def list_(config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """List all models, with what they cost now.

    Those of the file, and those of the database; prices are per million tokens.
    """
    now = time.time()
    with registry(config) as found:
        rows = list(standings(found, ObjectKind.MODEL, lambda parts: parts.models))
        if json:
            echo_json([_report(found, one, now) for one in rows])
        else:
            show([Section("models", tuple(_row(found, one, now) for one in rows), COLUMNS, (4, 5))])


@app.command("show")
def show_(model: ModelArgument, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """Show the model that a name means.

    That of this name, or the longest pattern that fits.
    """
    now = time.time()
    with registry(config) as found:
        meant = Catalogue(found.parts).find_model(model)
        if meant is None:
            fail(f"there is no model {model}; `headrace models list` shows all")
        rows = standings(found, ObjectKind.MODEL, lambda parts: parts.models)
        one = next(row for row in rows if row.value is meant)
        if json:
            echo_json(_report(found, one, now))
        else:
            show([*_sections(found, one, meant), *sections(meant.prices, now)])


def _sections(found: Registry, one: Standing[Model], model: Model) -> Iterator[Section]:
    facts = [("from", one.source), ("protocols", ", ".join(_protocols(found, model)))]
    if model.max_output is not None:
        facts.append(("output tokens", f"{model.max_output:,} at most"))
    if not model.prices:
        facts.append(("price", "none: what it costs is not known, and keys with a budget cannot use it"))
    yield Section(f"model {model.name}", tuple(facts))
    rows = tuple(
        (route.channel, route.upstream_model or "the asked name", str(route.priority), str(route.weight))
        for route in _ordered(model)
    )
    yield Section("routes", rows, ("channel", "upstream model", "priority", "weight"), (2, 3))


def _row(found: Registry, one: Standing[Model], now: float) -> tuple[str, ...]:
    model = one.value
    if model is None:
        return one.name, one.state, one.problem, "", "", "", one.source
    routes = ", ".join(
        f"{route.channel} ({route.upstream_model})" if route.upstream_model else route.channel
        for route in _ordered(model)
    )
    protocols = ", ".join(_protocols(found, model))
    return one.name, one.state, routes, protocols, *brief(price_at(model.prices, now)), one.source


def _ordered(model: Model) -> list[Route]:
    return sorted(model.routes, key=lambda route: route.priority)


def _protocols(found: Registry, model: Model) -> list[str]:
    """What it can be asked through: what is published and a route speaks."""
    channels = {channel.name: channel for channel in found.parts.channels}
    spoken = {one for route in model.routes if route.channel in channels for one in channels[route.channel].protocols}
    published = spoken if model.protocols is None else spoken & model.protocols
    return [one.value for one in WireProtocol if one in published]


def _report(found: Registry, one: Standing[Model], now: float) -> ModelReport:
    model = one.value
    price = price_at(model.prices, now) if model is not None else None
    return ModelReport(
        name=one.name,
        source=one.source,
        state=one.state,
        problem=one.problem,
        routes=[
            RouteReport(route.channel, route.upstream_model or None, route.priority, route.weight)
            for route in (_ordered(model) if model is not None else ())
        ],
        protocols=_protocols(found, model) if model is not None else [],
        max_output=model.max_output if model is not None else None,
        price=report(price) if price is not None else None,
    )
