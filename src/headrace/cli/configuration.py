"""Reads the configuration for a command; a bad file ends the command with its errors and exit code 2."""

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.output import fail
from headrace.config.draft import Draft, Loaded, load, obtain_secret
from headrace.config.errors import ConfigError

DEFAULT_FILE = Path("headrace.yaml")
BAD_FILE = 2

ConfigOption = Annotated[Path, typer.Option("--config", "-c", metavar="FILE", help="The configuration file.")]
ConfigChoice = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help=f"The configuration file. [default: {DEFAULT_FILE}]"),
]
"""For commands that can do without a file."""


def read_draft(path: Path, *, warn: bool = True) -> Draft:
    """The valid file. Prints its warnings to stderr unless told not to; writes nothing."""
    try:
        draft = load(path)
    except ConfigError as error:
        fail(str(error), BAD_FILE)
    for warning in draft.warnings if warn else ():
        typer.echo(f"warning: {warning}", err=True)
    return draft


def resolve(draft: Draft) -> Loaded:
    """The configuration under the gateway's secret, which is made where it is not there yet."""
    try:
        return draft.resolve(obtain_secret(draft))
    except ConfigError as error:
        fail(str(error), BAD_FILE)
