"""Options that several commands share."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner, Result

from headrace.cli.option_groups import grouped


@dataclass(frozen=True)
class First:
    name: Annotated[str | None, typer.Option("--name", "-n", metavar="NAME", help="A name.")] = None


@dataclass(frozen=True)
class Both(First):
    word: Annotated[list[str] | None, typer.Option(help="A word.")] = None


app = typer.Typer(rich_markup_mode=None)


@app.command()
@grouped
def command(place: Annotated[str, typer.Argument()], fields: Both, loud: bool = False) -> None:
    """Do something."""
    typer.echo((place, fields, loud))


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_the_fields_are_options_and_come_as_one_value() -> None:
    given = ran("here", "-n", "x", "--word", "a", "--word", "b", "--loud")
    assert given.stdout == f"{('here', Both('x', ['a', 'b']), True)}\n"


def test_what_is_not_given_has_the_fields_default() -> None:
    assert ran("here").stdout == f"{('here', Both(), False)}\n"


def test_what_is_required_stays_so() -> None:
    assert ran("-n", "x").exit_code == 2


def test_help_is_that_of_the_command_and_of_the_fields() -> None:
    text = ran("--help").stdout
    assert all(words in text for words in ("Do something.", "-n, --name NAME", "A name.", "--word"))
