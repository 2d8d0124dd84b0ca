"""`headrace check`: says whether the configuration can be served, or what every option means."""

from typing import Annotated

import typer

from headrace.cli.configuration import DEFAULT_FILE, ConfigOption, read_draft
from headrace.config.explain import explain

ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Print every option with its type, default and meaning; read no file.")
]


def check(config: ConfigOption = DEFAULT_FILE, explain_options: ExplainOption = False) -> None:
    """Validate the configuration file. Starts and writes nothing."""
    if explain_options:
        typer.echo(explain())
        return
    draft = read_draft(config)
    counts = f"channels: {len(draft.channels)}, models: {len(draft.models)}, keys: {len(draft.keys)}"
    typer.echo(f"{config}: valid ({counts})")
