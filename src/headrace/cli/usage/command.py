"""The command `headrace usage`."""

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from headrace.cli.configuration import BAD_FILE, DEFAULT_FILE, ConfigOption
from headrace.cli.entry_lookup import place_of_file
from headrace.cli.moments import iso_of, moment_ago, words_of
from headrace.cli.option_groups import grouped
from headrace.cli.output import JsonOption, echo_json, fail, show
from headrace.cli.state_child import StateFailedError, at_state
from headrace.cli.usage.plot import Bar, lines, without_gaps
from headrace.cli.usage.sums import Row, row_from_line, total
from headrace.cli.usage.table import NOBODY, notes, report, section, write_csv
from headrace.config.errors import ConfigError
from headrace.config.money import show_nano
from headrace.state.errands import GROUPS, LABEL, AskUsage, UsageLine


class Measure(Enum):
    """What a plot shows."""

    COST = "cost"
    CHARGE = "charge"
    TOKENS = "tokens"
    REQUESTS = "requests"


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Which exchanges are meant; None narrows nothing."""

    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="From when on: a date, a time, or 7d ago; this month, else."),
    ] = None
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Up to when, without it; now, else.")] = None
    key: Annotated[str | None, typer.Option("--key", "-k", metavar="NAME", help="Only of this key.")] = None
    owner: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this owner's keys.")] = None
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="Only of this model, as it was asked for.")
    ] = None
    channel: Annotated[str | None, typer.Option(metavar="NAME", help="Only what this channel served.")] = None
    end: Annotated[str | None, typer.Option(metavar="END", help="Only what ended so, such as interrupted.")] = None
    label: Annotated[
        list[str] | None,
        typer.Option("--label", "-l", metavar="NAME=TEXT", help="Only of keys with this label; may be repeated."),
    ] = None


ByOption = Annotated[
    str,
    typer.Option("--by", "-b", metavar="WORDS", help=f"One row for each of these: {', '.join(GROUPS)}, label:NAME."),
]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV, for programs.")]
PlotOption = Annotated[bool, typer.Option("--plot", help="Draw bars in place of the table.")]
MeasureOption = Annotated[
    Measure, typer.Option("--measure", metavar="WORD", help="What bars show: cost, charge, tokens or requests.")
]


@grouped
def usage(
    narrowing: Narrowing,
    by: ByOption = "key",
    plot: PlotOption = False,
    measure: MeasureOption = Measure.COST,
    csv: CsvOption = False,
    config: ConfigOption = DEFAULT_FILE,
    json: JsonOption = False,
) -> None:
    """Show what was used, and what it cost.

    It is added up in the database, exactly. Tokens that no upstream reported and requests without a known cost are
    counted apart.
    """
    if csv + json + plot > 1:
        raise typer.BadParameter("give one of --json, --csv and --plot")
    now = time.time()
    groups = _groups(by)
    order = _order(narrowing, groups, now)
    rows = _rows(config, order)
    since, until = order.since or 0.0, order.until
    if json:
        echo_json(report(iso_of(since), iso_of(until) if until is not None else None, groups, rows))
    elif csv:
        write_csv(sys.stdout, groups, rows)
    elif not rows:
        typer.echo(f"nothing was used since {words_of(since)}", err=True)
    else:
        if plot:
            _plot(groups, rows, measure)
        else:
            show([section(f"usage since {words_of(since)}", groups, rows)])
        for note in notes(total(rows)):
            typer.echo(note, err=True)


def _groups(by: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in by.split(",") if word.strip())
    for word in words:
        if word not in GROUPS and not (word.startswith(LABEL) and word != LABEL):
            raise typer.BadParameter(f"takes {', '.join(GROUPS)} and label:NAME, with commas", param_hint="--by")
    if not words or len(set(words)) < len(words):
        raise typer.BadParameter("needs different words, at least one", param_hint="--by")
    return words


def _order(narrowing: Narrowing, groups: tuple[str, ...], now: float) -> AskUsage:
    """What the database is asked."""
    since, until = narrowing.since, narrowing.until
    return AskUsage(
        by=groups,
        since=moment_ago(since, now, "--since") if since is not None else _this_month(now),
        until=moment_ago(until, now, "--until") if until is not None else None,
        key=narrowing.key,
        owner=narrowing.owner,
        model=narrowing.model,
        channel=narrowing.channel,
        end=narrowing.end,
        labels=tuple(map(_label, narrowing.label or ())),
    )


def _this_month(now: float) -> float:
    moment = datetime.fromtimestamp(now, UTC)
    return datetime(moment.year, moment.month, 1, tzinfo=UTC).timestamp()


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise typer.BadParameter("must be NAME=TEXT", param_hint="--label")
    return name, value


def _rows(config: Path, order: AskUsage) -> list[Row]:
    try:
        with at_state(place_of_file(config)) as child:
            return [row_from_line(line) for line in child.ask(order) if isinstance(line, UsageLine)]
    except ConfigError as error:
        fail(str(error), BAD_FILE)
    except StateFailedError as error:
        fail(str(error))


def _plot(groups: Sequence[str], rows: Sequence[Row], measure: Measure) -> None:
    bars = [_bar(row, measure) for row in rows]
    if tuple(groups) == ("day",):
        bars = without_gaps(bars, _shown(0, measure))
    typer.echo(f"{measure.value} by {', '.join(groups)}")
    for line in lines(bars, Console().width, sys.stdout.encoding):
        typer.echo(line)


def _bar(row: Row, measure: Measure) -> Bar:
    sums = row.sums
    match measure:
        case Measure.COST:
            value = sums.cost
        case Measure.CHARGE:
            value = sums.charge
        case Measure.TOKENS:
            value = sums.input + sums.output
        case Measure.REQUESTS:
            value = sums.entries
    return Bar(", ".join(name or NOBODY for name in row.groups), value, _shown(value, measure))


def _shown(value: int, measure: Measure) -> str:
    return show_nano(value) if measure in {Measure.COST, Measure.CHARGE} else f"{value:,}"
