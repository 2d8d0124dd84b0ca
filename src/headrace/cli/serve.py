"""`headrace serve`: the gateway in this process, until SIGTERM or SIGINT, and then until its streams have ended.

file → secret → sockets → worker → "listens on" ── signal ──▶ drain → 0
 2        2        1         1                     └─ second ─▶ ended at once: 1
"""

import errno
import socket
from contextlib import ExitStack

import typer

import headrace
from headrace.cli.configuration import DEFAULT_FILE, ConfigOption, read_draft, resolve
from headrace.cli.output import fail
from headrace.cli.signals import stop_signals
from headrace.config.draft import Loaded
from headrace.listener.server import bind
from headrace.model.settings import Address, ServerSettings
from headrace.worker import Worker, run


def serve(config: ConfigOption = DEFAULT_FILE) -> None:
    """Run the gateway.

    SIGTERM and SIGINT drain it: it takes no new requests and lets streams end for server.drain. A second signal ends it
    at once.
    """
    loaded = resolve(read_draft(config))
    with ExitStack() as opened:
        sockets = [opened.enter_context(_bound(address)) for address in loaded.settings.server.listen]
        run(_serve(loaded, sockets))


async def _serve(loaded: Loaded, sockets: list[socket.socket]) -> None:
    with stop_signals() as stop:
        worker = await _started(loaded, sockets)
        for address in worker.addresses:
            typer.echo(f"headrace {headrace.__version__} listens on {shown_address(address)}")
        await stop.wait()
        typer.echo(_draining(loaded.settings.server), err=True)
        await worker.drain()


async def _started(loaded: Loaded, sockets: list[socket.socket]) -> Worker:
    try:
        worker = Worker(loaded.settings, loaded.catalogue, _report)
    except OSError as error:
        fail(f"cannot write the journal in {loaded.settings.state.directory}: {error.strerror}")
    try:
        await worker.start(sockets)
    except OSError as error:
        listen = ", ".join(map(str, loaded.settings.server.listen))
        fail(f"cannot listen on {listen}: {error.strerror}")
    return worker


def _bound(address: Address) -> socket.socket:
    try:
        return bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            fail(f"cannot listen on {address}: address in use; stop what listens there, or change server.listen")
        fail(f"cannot listen on {address}: {error.strerror}")


def shown_address(address: Address) -> str:
    """What a client's base URL begins with; a Unix socket as `unix:PATH`."""
    return str(address) if address.path else f"http://{address}"


def _draining(server: ServerSettings) -> str:
    return f"draining: streams may run for {server.drain:g} s more; a second signal ends them at once"


def _report(line: str) -> None:
    typer.echo(line, err=True)
