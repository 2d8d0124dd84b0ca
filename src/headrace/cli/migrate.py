"""`headrace migrate`: brings the database to this version, before a gateway starts or while old ones still run."""

import subprocess
import sys
from pathlib import Path

import msgspec
import typer

from headrace.cli.configuration import DEFAULT_FILE, ConfigOption, read_draft
from headrace.cli.output import fail

COMMAND = [sys.executable, "-m", "headrace.state"]
"""A process of its own: Alembic would cost every other command 0.1 s at its start."""


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
    order = msgspec.msgpack.encode({"database": state.database, "directory": str(directory)})
    # The address may hold a password, and arguments are for all to see.
    done = subprocess.run(COMMAND, input=order, capture_output=True, check=False)
    if done.returncode:
        fail(done.stderr.decode(errors="replace").strip() or "the migration was ended from outside")
    typer.echo(done.stdout.decode(errors="replace").strip())
