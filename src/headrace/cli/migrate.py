"""`headrace migrate`: brings the database to this version, before a gateway starts or while old ones still run."""

from pathlib import Path

import typer

from headrace.cli.configuration import DEFAULT_FILE, ConfigOption, read_draft
from headrace.cli.output import fail
from headrace.cli.state_child import StateFailedError, StatePlace, at_state
from headrace.state.errands import Migrate, Words


def migrate(config: ConfigOption = DEFAULT_FILE) -> None:
    """Bring the database to this version.

    It waits while another process does it. A database that is newer than this program is not touched.
    """
    state = read_draft(config).settings.state
    directory = Path(state.directory)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        fail(f"cannot use {directory}: {error.strerror}; state.directory must be writable for the gateway")
    try:
        with at_state(StatePlace(directory, state.database)) as child:
            for answer in child.ask(Migrate()):
                if isinstance(answer, Words):
                    typer.echo(answer.text)
    except StateFailedError as error:
        fail(str(error))
