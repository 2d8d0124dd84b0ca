"""`headrace check`: says whether the configuration can be served, or what every option means."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from headrace.cli.configuration import BAD_FILE, DEFAULT_FILE, ConfigOption, read_draft
from headrace.cli.output import JsonOption, Section, echo_json, is_terminal, show
from headrace.config.draft import load
from headrace.config.errors import ConfigError, Fault
from headrace.config.explain import GROUPS, explain, lines, meaning

ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Print every option with its type, default and meaning; read no file.")
]


class Report(msgspec.Struct):
    """What `--json` prints about a file."""

    file: str
    valid: bool
    errors: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()


def check(
    config: ConfigOption = DEFAULT_FILE, explain_options: ExplainOption = False, json: JsonOption = False
) -> None:
    """Validate the configuration file.

    It starts and writes nothing. Errors name the file, the line, the option, and what is allowed there.
    """
    if explain_options:
        _explain(json)
    elif json:
        _report(config)
    else:
        draft = read_draft(config)
        counts = f"channels: {len(draft.channels)}, models: {len(draft.models)}, keys: {len(draft.keys)}"
        typer.echo(f"{config}: valid ({counts})")


def _report(config: Path) -> None:
    try:
        draft = load(config)
    except ConfigError as error:
        echo_json(Report(error.file, False, error.faults))
        raise typer.Exit(BAD_FILE) from None
    echo_json(Report(str(config), True, (), draft.warnings))


def _explain(json: bool) -> None:
    if json:
        echo_json([line for group in GROUPS for line in lines(group)])
    elif is_terminal():
        show(_sections())
    else:
        typer.echo(explain())


def _sections() -> Iterator[Section]:
    for group in GROUPS:
        rows = tuple((line.path, line.form, line.default, meaning(line)) for line in lines(group))
        yield Section(f"{group.title}: {group.doc}", rows, ("option", "type", "default", "meaning"))
