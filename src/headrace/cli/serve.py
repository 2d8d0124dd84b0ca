"""`headrace serve`: the gateway in this process, until SIGTERM or SIGINT, and then until its streams have ended.

file → secret → sockets → worker → "listens on" ── signal ──▶ drain → 0
 2        2        1         1                     └─ second ─▶ ended at once: 1
"""

import socket
from contextlib import ExitStack

import typer

import headrace
from headrace.cli.configuration import DEFAULT_FILE, ConfigOption, read_draft, resolve
from headrace.cli.listening import cannot_listen, shown_address
from headrace.cli.output import fail
from headrace.cli.signals import stop_signals
from headrace.config.draft import Loaded
from headrace.listener.server import bind
from headrace.model.settings import Address, ServerSettings
from headrace.worker import Worker, run

REMEDY = "change server.listen"


def serve(config: ConfigOption = DEFAULT_FILE) -> None:
    """Run the gateway.

    The first SIGTERM or SIGINT drains it: no new requests, and running streams may end for server.drain. The second
    ends it at once.
    """
    loaded = resolve(read_draft(config))
    with ExitStack() as opened:
        sockets = [opened.enter_context(_bound(address)) for address in loaded.settings.server.listen]
        run(_serve(loaded, sockets))


async def _serve(loaded: Loaded, sockets: list[socket.socket]) -> None:
    with stop_signals() as stop:
        worker = await _started(loaded, sockets)
        tls = loaded.settings.server.tls is not None
        for address in worker.addresses:
            typer.echo(f"headrace {headrace.__version__} listens on {shown_address(address, tls)}")
        await stop.wait()
        typer.echo(_draining(loaded.settings.server), err=True)
        await worker.drain()
        typer.echo("drained", err=True)


async def _started(loaded: Loaded, sockets: list[socket.socket]) -> Worker:
    try:
        worker = Worker(loaded.settings, loaded.catalogue, _report)
    except OSError as error:
        fail(f"cannot write the journal in {loaded.settings.state.directory}: {error.strerror}")
    try:
        await worker.start(sockets)
    except OSError as error:
        fail(cannot_listen(", ".join(map(str, loaded.settings.server.listen)), error, REMEDY))
    return worker


def _bound(address: Address) -> socket.socket:
    try:
        return bind(address)
    except OSError as error:
        fail(cannot_listen(str(address), error, REMEDY))


def _draining(server: ServerSettings) -> str:
    return f"draining: streams may run for {server.drain:g} s more; a second signal ends them at once"


def _report(line: str) -> None:
    typer.echo(line, err=True)
