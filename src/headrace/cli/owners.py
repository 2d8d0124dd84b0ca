"""`headrace owners`: limits and budgets over all keys of an owner."""

from typing import Annotated

import msgspec
import typer

from headrace.cli.allowance import (
    AllowanceFields,
    BudgetReport,
    LimitsReport,
    budget_report,
    budget_words,
    limit_words,
    limits_report,
)
from headrace.cli.configuration import DEFAULT_FILE, ConfigOption
from headrace.cli.object_document import ObjectDocument
from headrace.cli.option_groups import grouped
from headrace.cli.output import JsonOption, Section, echo_json, show
from headrace.cli.registry import Deleted, Registry, registry
from headrace.cli.standing import Standing, standings
from headrace.config.money import show_nano
from headrace.model.catalogue import ObjectKind
from headrace.model.owner import Owner

OWNER = ObjectKind.OWNER
COLUMNS = ("name", "state", "keys", "limits", "budget", "multiplier", "from")

app = typer.Typer(no_args_is_help=True, help="Owners of keys: limits and budgets over all of theirs.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The owner's name.")]


class OwnerReport(msgspec.Struct, kw_only=True):
    """One owner for programs. Money and factors are exact decimals as text."""

    name: str
    source: str
    """`file` or `database`."""
    state: str
    """active; shadowed where the file has another of its name, broken where it cannot be served."""
    problem: str
    keys: tuple[str, ...]
    limits: LimitsReport | None
    budget: BudgetReport | None
    multiplier: str | None


@app.command("create")
@grouped
def create(
    name: NameArgument, fields: AllowanceFields, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False
) -> None:
    """Make an owner, with limits or a budget.

    Keys name their owner; one that is named and not made has neither.
    """
    document = ObjectDocument()
    fields.put_into(document)
    with registry(config, writes=True) as found:
        found.create(document.stored(OWNER, name))
        _show(found, name, json=json)


@app.command("list")
def list_(config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """List all owners, those of the file and those of the database."""
    with registry(config) as found:
        rows = _listed(found)
    if json:
        echo_json([_report(one, _keys(found, one.name)) for one in rows])
    elif rows:
        show([_table(found, rows)])
    else:
        typer.echo("there are no owners; `headrace owners create NAME` makes one", err=True)


@app.command("set")
@grouped
def set_(
    name: NameArgument, fields: AllowanceFields, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False
) -> None:
    """Change an owner of the database.

    What is not given stays as it is; `none` takes an option away.
    """
    with registry(config, writes=True) as found:
        before = found.own(OWNER, name)
        document = ObjectDocument(before)
        fields.put_into(document)
        found.replace(document.stored(OWNER, name), before)
        _show(found, name, json=json)


@app.command("delete")
def delete(name: NameArgument, config: ConfigOption = DEFAULT_FILE, json: JsonOption = False) -> None:
    """Remove an owner of the database.

    Its keys stay, under their own limits.
    """
    with registry(config, writes=True) as found:
        found.remove(found.own(OWNER, name))
        left = _keys(found, name)
    if json:
        echo_json(Deleted(name))
        return
    typer.echo(f"owner {name} is deleted" + (f"; its keys stay: {', '.join(left)}" if left else ""))


def _listed(found: Registry) -> list[Standing[Owner]]:
    return list(standings(found, OWNER, lambda parts: parts.owners))


def _show(found: Registry, name: str, *, json: bool) -> None:
    one = next(one for one in _listed(found) if one.name == name)
    if json:
        echo_json(_report(one, _keys(found, name)))
    else:
        show([_table(found, [one])])


def _table(found: Registry, rows: list[Standing[Owner]]) -> Section:
    return Section("owners", tuple(_row(one, _keys(found, one.name)) for one in rows), COLUMNS)


def _row(one: Standing[Owner], keys: tuple[str, ...]) -> tuple[str, ...]:
    owner = one.value
    if owner is None:
        return one.name, one.state, str(len(keys)), "", "", "", one.source
    limits, budget = limit_words(owner.limits), budget_words(owner.budget)
    return one.name, one.state, str(len(keys)), limits, budget, show_nano(owner.multiplier), one.source


def _report(one: Standing[Owner], keys: tuple[str, ...]) -> OwnerReport:
    owner = one.value
    return OwnerReport(
        name=one.name,
        source=one.source,
        state=one.state,
        problem=one.problem,
        keys=keys,
        limits=limits_report(owner.limits) if owner is not None else None,
        budget=budget_report(owner.budget) if owner is not None else None,
        multiplier=show_nano(owner.multiplier) if owner is not None else None,
    )


def _keys(found: Registry, owner: str) -> tuple[str, ...]:
    return tuple(key.name for key in found.parts.keys if key.owner == owner)
