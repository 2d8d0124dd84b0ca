"""`headrace explain ID`: the entry of one exchange, from the journal."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from headrace.cli.configuration import DEFAULT_FILE, read_draft
from headrace.cli.entry_view import sections
from headrace.cli.output import JsonOption, echo_json, fail, show
from headrace.journal.reader import find_entry, read_all
from headrace.model.entry import Entry, Opened

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The id of the response's x-request-id header; `last` for the newest.")
]
ConfigChoice = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help=f"The configuration file. [default: {DEFAULT_FILE}]"),
]
StateChoice = Annotated[
    Path | None, typer.Option("--state", metavar="DIR", help="The state directory, instead of a configuration file.")
]


def explain(id: IdArgument, config: ConfigChoice = None, state: StateChoice = None, json: JsonOption = False) -> None:
    """Show the entry of an exchange.

    It tells what was asked and tried, how it ended and why, the usage, and the course on the wire.
    """
    if config is not None and state is not None:
        raise typer.BadParameter("give either --config or --state")
    directory = (
        state if state is not None else Path(read_draft(config or DEFAULT_FILE, warn=False).settings.state.directory)
    )
    entry = _find(directory, id)
    if json:
        echo_json(entry)
    else:
        show(sections(entry))


def _find(directory: Path, id: str) -> Entry:
    try:
        entry = find_entry(directory, id)
        if entry is None:
            fail(_missing(directory, id))
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        fail(f"cannot read the journal in {directory}: {error}")
    return entry


def _missing(directory: Path, id: str) -> str:
    if not (directory / "journal").is_dir():
        return f"there is no journal in {directory}; name the gateway's state directory with --state"
    if id == "last":
        return f"no exchange has ended yet in {directory}"
    if any(isinstance(record, Opened) and record.id == id for record in read_all(directory)):
        return f"exchange {id} has begun and has no entry: it still runs, or its process died"
    return f"no exchange {id} in {directory}; `headrace explain last` shows the newest"
