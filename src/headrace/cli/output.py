"""What commands print: facts and tables, drawn by rich on a terminal and as plain, stable lines elsewhere."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, NoReturn

import msgspec
import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

INDENT = "  "
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@dataclass(frozen=True, slots=True)
class Section:
    """A title over rows of equal width; with `columns` a table, without them facts: a name and what is true of it."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    """Which columns end at the right."""


def fail(message: str, code: int = 1) -> NoReturn:
    """End the command: the message on stderr, and the exit code."""
    typer.echo(message, err=True)
    raise typer.Exit(code)


def echo_json(value: object) -> None:
    """Print what msgspec can encode, as indented JSON."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value)))


def printable(text: str) -> str:
    """The text with its control characters as escapes: what clients and upstreams say must not steer a terminal."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def is_terminal() -> bool:
    """Whether a person looks at stdout."""
    return Console().is_terminal


def show(sections: Iterable[Section], console: Console | None = None) -> None:
    """Print sections to stdout (or to `console`) in the form that suits it."""
    console = console if console is not None else Console(highlight=False, markup=False, emoji=False)
    for number, section in enumerate(sections):
        if number:
            console.print()
        if console.is_terminal:
            console.print(Text(section.title, style="bold"))
            console.print(_drawn(section))
        else:
            console.file.write("\n".join(plain_lines(section)) + "\n")


def plain_lines(section: Section) -> Iterator[str]:
    """The section as lines: the title, then indented rows in columns of the width that they need."""
    yield section.title
    rows = [section.columns, *section.rows] if section.columns else list(section.rows)
    rows = [tuple(map(printable, row)) for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (_padded(row[place], width, place in section.numbers) for place, width in enumerate(widths))
        yield (INDENT + "  ".join(cells)).rstrip()


def _padded(cell: str, width: int, to_the_right: bool) -> str:
    space = " " * (width - cell_len(cell))
    return space + cell if to_the_right else cell + space


def _drawn(section: Section) -> Table:
    if not section.columns:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="cyan", no_wrap=True)
        for _ in section.rows[0][1:] if section.rows else ():
            table.add_column(overflow="fold")
    else:
        table = Table(box=None, header_style="cyan", padding=(0, 2, 0, 0))
        for place, column in enumerate(section.columns):
            table.add_column(column, overflow="fold", justify="right" if place in section.numbers else "left")
    for row in section.rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
