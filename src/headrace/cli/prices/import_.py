"""`headrace prices import FILE`: the prices of a table, into the database."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from headrace.cli.configuration import BAD_FILE, DEFAULT_FILE, ConfigOption
from headrace.cli.output import JsonOption, echo_json, fail
from headrace.cli.registry import Registry, registry
from headrace.config.errors import ConfigError
from headrace.config.price_table import read_price_table

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The file with the prices.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]


class Imported(msgspec.Struct, kw_only=True):
    """What `--json` prints of an import: names of models."""

    added: list[str]
    changed: list[str]
    unchanged: list[str]
    shadowed: list[str]
    """For which the file has a price of its own, which counts."""


def import_(
    file: FileArgument,
    dry_run: DryRunOption = False,
    config: ConfigOption = DEFAULT_FILE,
    json: JsonOption = False,
) -> None:
    """Take the prices of a file into the database: CSV, YAML or JSON.

    Each model in it gets exactly those prices that the file has for it; others keep theirs. Prices of models that are
    not declared wait for them.
    """
    try:
        prices = read_price_table(file)
    except ConfigError as error:
        fail(str(error), BAD_FILE)
    for warning in prices.warnings:
        typer.echo(f"warning: {warning}", err=True)
    with registry(config, writes=not dry_run) as found:
        done = found.put_all(prices.objects, dry_run=dry_run)
        shadowed = [one.name for one in prices.objects if has_own_price(found, one.name)]
    if json:
        echo_json(Imported(added=done.added, changed=done.changed, unchanged=done.unchanged, shadowed=shadowed))
        return
    would = "would be " if dry_run else ""
    added, changed, unchanged = (len(names) for names in (done.added, done.changed, done.unchanged))
    typer.echo(f"{added} {would}added, {changed} {would}changed, {unchanged} as they were")
    if shadowed:
        typer.echo(f"without effect, for the file has a price of its own for them: {', '.join(shadowed)}", err=True)


def has_own_price(found: Registry, name: str) -> bool:
    """Whether the file gives the model a price."""
    return any(one.name == name and one.prices for one in found.file_parts.models)
