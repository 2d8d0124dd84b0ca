"""`headrace prices rerate`: rates ended exchanges again, at the prices as they are declared now."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from headrace.cli.configuration import DEFAULT_FILE, ConfigOption
from headrace.cli.moments import moment_ago
from headrace.cli.option_groups import grouped
from headrace.cli.output import JsonOption, Section, echo_json, fail, show
from headrace.cli.prices.import_ import DryRunOption
from headrace.cli.registry import registry
from headrace.cli.state_child import StateFailedError
from headrace.config.money import show_nano
from headrace.state.errands import Amounts, RateAgain, RatedAgain

REASON = "prices were changed"


@dataclass(frozen=True, slots=True)
class Which:
    """Which exchanges; None narrows nothing."""

    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="From when on: a date, a time, or 7d ago; all, else.")
    ] = None
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Up to when, without it; now, else.")] = None
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="Only of this model, as it was asked for.")
    ] = None
    key: Annotated[str | None, typer.Option("--key", "-k", metavar="NAME", help="Only of this key.")] = None
    unknown: Annotated[bool, typer.Option("--unknown", help="Only those whose cost is not known.")] = False


ReasonOption = Annotated[str, typer.Option(metavar="TEXT", help="Why; it stands in the ledger.")]


class AmountsReport(msgspec.Struct, kw_only=True):
    """Amounts are exact decimals of currency units, as text."""

    cost: str
    charge: str
    unknown_cost: int


class Report(msgspec.Struct, kw_only=True):
    """What `--json` prints."""

    dry_run: bool
    entries: int
    amended: int
    before: AmountsReport
    after: AmountsReport


@grouped
def rerate(
    which: Which,
    reason: ReasonOption = REASON,
    dry_run: DryRunOption = False,
    config: ConfigOption = DEFAULT_FILE,
    json: JsonOption = False,
) -> None:
    """Rate ended exchanges again.

    At the prices as they are declared now: each gets the one that counts for the moment when it began. Entries stay;
    lines that supersede their amounts are added, budgets follow, and what is rated so already gets none. Without a
    price an amount stays as it is.
    """
    now = time.time()
    since, until = which.since, which.until
    with registry(config) as found:
        order = RateAgain(
            models=found.parts.models,
            reason=reason,
            dry_run=dry_run,
            since=moment_ago(since, now, "--since") if since is not None else None,
            until=moment_ago(until, now, "--until") if until is not None else None,
            model=which.model,
            key=which.key,
            has_unknown_cost=which.unknown,
        )
        try:
            done = next((one for one in found.child.ask(order) if isinstance(one, RatedAgain)), None)
        except StateFailedError as error:
            fail(str(error))
    if done is None:
        fail("there is no ledger yet: nothing has been served")
    if json:
        before, after = _report(done.before), _report(done.after)
        echo_json(Report(dry_run=dry_run, entries=done.entries, amended=done.amended, before=before, after=after))
    else:
        show([Section("would be rated again" if dry_run else "rated again", tuple(_rows(done)))])


def _rows(done: RatedAgain) -> Iterator[tuple[str, str]]:
    before, after = done.before, done.after
    yield "looked at", f"{done.entries:,} exchanges"
    yield "of other amounts", f"{done.amended:,}"
    yield "cost", f"{_units(before.cost)} → {_units(after.cost)}"
    yield "charge", f"{_units(before.charge)} → {_units(after.charge)}"
    yield "cost not known", f"{before.unknown_cost:,} → {after.unknown_cost:,}"


def _report(amounts: Amounts) -> AmountsReport:
    return AmountsReport(cost=_units(amounts.cost), charge=_units(amounts.charge), unknown_cost=amounts.unknown_cost)


def _units(nano: str) -> str:
    return show_nano(int(nano))
