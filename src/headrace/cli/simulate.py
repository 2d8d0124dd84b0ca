"""`headrace simulate`: the scripted upstream, to test gateways and clients against."""

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.listening import cannot_listen
from headrace.cli.output import fail
from headrace.simulator import ScriptError, Simulator
from headrace.simulator import serve as serve_simulator
from headrace.simulator.serving import address_from
from headrace.worker import run

DEFAULT_LISTEN = "127.0.0.1:9090"
BAD_SCRIPT = 2


def _checked(listen: str) -> str:
    try:
        host, port = address_from(listen)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


ListenOption = Annotated[
    str,
    typer.Option(
        "--listen", "-l", metavar="HOST:PORT", callback=_checked, help="Where to listen; port 0 takes a free one."
    ),
]
ScriptOption = Annotated[
    Path | None,
    typer.Option("--script", "-s", metavar="FILE", help="Scenarios of your own (YAML), beside the built-in ones."),
]


def simulate(listen: ListenOption = DEFAULT_LISTEN, script: ScriptOption = None) -> None:
    """Run the scripted upstream.

    It answers with real wire bytes, paced and with faults as a script says, and needs no account. A request chooses its
    scenario by its model or by the header x-simulate. SIGTERM and SIGINT end it.
    """
    try:
        run(serve_simulator(listen, script, on_ready=_announce))
    except ScriptError as error:
        message = str(error)
        fail(message if message.startswith(f"{script}:") else f"{script}: {message}", BAD_SCRIPT)
    except OSError as error:
        fail(cannot_listen(listen, error, "choose another --listen"))


def _announce(simulator: Simulator) -> None:
    typer.echo(f"simulator listens on {simulator.url}")
