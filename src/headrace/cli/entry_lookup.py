"""The exchange that a command is about, by the options that name it; the database and the journals are asked for it."""

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.configuration import BAD_FILE, DEFAULT_FILE
from headrace.cli.output import fail
from headrace.cli.state_child import StateFailedError, StatePlace, at_state
from headrace.config.draft import load_state
from headrace.config.errors import ConfigError
from headrace.model.entry import Entry
from headrace.state.errands import FindExchange, FoundEntry, FoundOpen, Words

LAST = "last"

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The id of the response's x-request-id header; `last` for the newest.")
]
StateChoice = Annotated[
    Path | None, typer.Option("--state", metavar="DIR", help="The state directory, instead of a configuration file.")
]


def state_place(config: Path | None, state: Path | None) -> StatePlace:
    """The state that the options name. Ends the command where both are given, or the file is bad."""
    if config is not None and state is not None:
        raise typer.BadParameter("give either --config or --state")
    if state is not None:
        return StatePlace(state)
    try:
        return place_of_file(config or DEFAULT_FILE)
    except ConfigError as error:
        fail(str(error), BAD_FILE)


def place_of_file(path: Path) -> StatePlace:
    """The state of a configuration file. Raises ConfigError."""
    settings = load_state(path)
    return StatePlace(Path(settings.directory), settings.database)


def look_up(config: Path | None, state: Path | None, id: str) -> FoundEntry | FoundOpen:
    """The exchange `id`, or the newest that has ended for `last`. Ends the command where there is none."""
    place = state_place(config, state)
    found: FoundEntry | FoundOpen | None = None
    try:
        with at_state(place) as child:
            for answer in child.ask(FindExchange(id=id)):
                match answer:
                    case Words():
                        typer.echo(answer.text, err=True)
                    case FoundEntry() | FoundOpen():
                        found = answer
                    case _:
                        pass
    except StateFailedError as error:
        fail(str(error))
    if found is None:
        fail(_missing(place, id))
    return found


def awaited_entry(place: StatePlace, id: str, wait_s: float) -> Entry | None:
    """The entry of an exchange, which is written when it has ended; None where it does not come in time, or there is
    nobody to ask."""
    if not place.directory.is_dir():
        return None
    try:
        with at_state(place) as child:
            answers = list(child.ask(FindExchange(id=id, wait_s=wait_s)))
    except StateFailedError:
        return None
    return next((one.entry for one in answers if isinstance(one, FoundEntry)), None)


def _missing(place: StatePlace, id: str) -> str:
    if not (place.directory / "journal").is_dir() and not place.database:
        return f"there is no journal in {place.directory}; name the gateway's state directory with --state"
    if id == LAST:
        return f"no exchange has ended yet in {place.directory}"
    return f"no exchange {id} in {place.directory}; `headrace explain last` shows the newest"
