"""The root command: `headrace`, its version, and which commands it has."""

import io
import sys
from collections.abc import Callable
from typing import Annotated

import typer

import headrace
from headrace.cli.check import check
from headrace.cli.connect import connect
from headrace.cli.demo.command import demo
from headrace.cli.explain import explain
from headrace.cli.init import init
from headrace.cli.keys import app as keys
from headrace.cli.migrate import migrate
from headrace.cli.models import app as models
from headrace.cli.owners import app as owners
from headrace.cli.prices import app as prices
from headrace.cli.serve import serve
from headrace.cli.simulate import simulate
from headrace.cli.try_ import try_
from headrace.cli.usage import usage
from headrace.cli.verify import verify

# Tracebacks stay Python's own: a pretty one may print local values, and those may be secrets.
app = typer.Typer(
    name="headrace",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"headrace {headrace.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A streaming gateway for LLM APIs."""


COMMANDS: dict[str, Callable[..., None]] = {
    "init": init,
    "serve": serve,
    "check": check,
    "migrate": migrate,
    "connect": connect,
    "try": try_,
    "explain": explain,
    "verify": verify,
    "usage": usage,
    "simulate": simulate,
    "demo": demo,
}
GROUPS: dict[str, typer.Typer] = {
    "keys": keys,
    "owners": owners,
    "models": models,
    "prices": prices,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
for name, group in GROUPS.items():
    app.add_typer(group, name=name)


def main() -> None:
    """The entry point of the script `headrace`."""
    # Texts of models hold characters that a terminal of another encoding does not have.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="headrace")
