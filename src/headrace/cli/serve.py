"""`headrace serve`: the gateway, until SIGTERM or SIGINT, and then until its streams have ended.

file → secret → lock → sockets ─exec─▶ supervisor → "listens on" ── signal ──▶ drain → 0
 2        2      1        1               1                        └─ second ─▶ ended at once: 1
"""

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated

import typer

import headrace
from headrace.cli.configuration import DEFAULT_FILE, ConfigOption, read_draft, resolve
from headrace.cli.listening import cannot_listen, shown_address
from headrace.cli.output import fail
from headrace.link import address as link
from headrace.model.settings import ServerSettings
from headrace.supervisor.directory import InUseError, Lock, node_of
from headrace.supervisor.handover import hand_over
from headrace.supervisor.sockets import AddressError, Sockets
from headrace.supervisor.supervisor import Plan

REMEDY = "change server.listen"

NoMigrateOption = Annotated[
    bool, typer.Option("--no-migrate", help="Leave the database's tables as they are; `headrace migrate` changes them.")
]


def serve(config: ConfigOption = DEFAULT_FILE, no_migrate: NoMigrateOption = False) -> None:
    """Run the gateway.

    The first SIGTERM or SIGINT drains it: no new requests, and running streams may end for server.drain. The second
    ends it at once. SIGHUP reads the file again, SIGUSR2 replaces the workers one by one; neither touches a stream.
    """
    loaded = resolve(read_draft(config))
    server, state = loaded.settings.server, loaded.settings.state
    directory = Path(state.directory)
    with ExitStack() as opened:
        try:
            lock = opened.enter_context(closing(Lock(directory)))
            node = node_of(directory)
            listener = opened.enter_context(link.listen(directory))
        except InUseError as error:
            fail(str(error))
        except OSError as error:
            fail(f"cannot use {directory}: {error.strerror}; state.directory must be writable for the gateway")
        sockets = opened.enter_context(closing(_bound(server)))
        plan = Plan(str(config.absolute()), node, server, state, not no_migrate)
        lines = (
            f"headrace {headrace.__version__} listens on {shown_address(address, server.tls is not None)}"
            for address in sockets.addresses
        )
        hand_over(plan, lock, listener.fileno(), sockets, tuple(lines))


def _bound(server: ServerSettings) -> Sockets:
    try:
        return Sockets(server.listen, server.workers)
    except AddressError as error:
        fail(cannot_listen(str(error.address), error.error, REMEDY))
