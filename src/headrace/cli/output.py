"""What commands print: facts and tables, drawn by rich on a terminal and as plain, stable lines elsewhere."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

INDENT = "  "


@dataclass(frozen=True, slots=True)
class Section:
    """A title over rows of equal width; with `columns` a table, without them facts: a name and what is true of it."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    columns: tuple[str, ...] = ()


def fail(message: str, code: int = 1) -> NoReturn:
    """End the command: the message on stderr, and the exit code."""
    typer.echo(message, err=True)
    raise typer.Exit(code)


def show(sections: Iterable[Section]) -> None:
    """Print sections to stdout in the form that suits it."""
    console = Console(highlight=False, markup=False, emoji=False)
    for number, section in enumerate(sections):
        if number:
            console.print()
        if console.is_terminal:
            console.print(Text(section.title, style="bold"))
            console.print(_drawn(section))
        else:
            typer.echo("\n".join(plain_lines(section)))


def plain_lines(section: Section) -> Iterator[str]:
    """The section as lines: the title, then indented rows in columns of the width that they need."""
    yield section.title
    rows = (section.columns, *section.rows) if section.columns else section.rows
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        yield (INDENT + "  ".join(cells)).rstrip()


def _drawn(section: Section) -> Table:
    if not section.columns:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="cyan", no_wrap=True)
        for _ in section.rows[0][1:] if section.rows else ():
            table.add_column(overflow="fold")
    else:
        table = Table(box=None, header_style="cyan", padding=(0, 2, 0, 0))
        for column in section.columns:
            table.add_column(column, overflow="fold")
    for row in section.rows:
        table.add_row(*map(Text, row))
    return table
