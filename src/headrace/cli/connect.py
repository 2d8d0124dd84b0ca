"""`headrace connect CLIENT`: prints the exact setting, or a program, with which a client speaks to the gateway."""

from collections.abc import Callable
from enum import Enum
from typing import Annotated

import msgspec
import typer

from headrace.admission.admit import admit
from headrace.cli import snippets
from headrace.cli.configuration import ConfigChoice
from headrace.cli.gateway_file import ENV, GatewayFile, KeyPlace
from headrace.cli.output import JsonOption, echo_json, fail
from headrace.cli.reading import READINGS
from headrace.cli.snippets import OWN_VARIABLE, Client
from headrace.cli.target import UNIX, KeyOption, Target, UrlOption, aim
from headrace.model.key import Key
from headrace.model.problem import Problem
from headrace.model.wire import WireProtocol


class ClientName(Enum):
    """The clients whose settings are known."""

    CODEX = "codex"
    CLAUDE = "claude"
    GEMINI = "gemini"
    PYTHON = "python"
    NODE = "node"
    CURL = "curl"


TEXTS: dict[ClientName, Callable[[Client], str]] = {
    ClientName.CODEX: snippets.codex,
    ClientName.CLAUDE: snippets.claude,
    ClientName.GEMINI: snippets.gemini,
    ClientName.PYTHON: snippets.python,
    ClientName.NODE: snippets.node,
    ClientName.CURL: snippets.curl,
}
SPOKEN = {
    ClientName.CODEX: WireProtocol.RESPONSES,
    ClientName.CLAUDE: WireProtocol.MESSAGES,
    ClientName.GEMINI: WireProtocol.GEMINI,
}
"""Clients that speak one protocol only."""
AGENT_MODEL = "claude-haiku-5-5"
"""Stands for the models that Claude Code asks for by itself."""

ClientArgument = Annotated[
    ClientName, typer.Argument(metavar="CLIENT", help=f"One of {', '.join(one.value for one in ClientName)}.")
]
ModelOption = Annotated[
    str | None, typer.Option("--model", "-m", metavar="NAME", help="The model to ask; the first that fits, else.")
]
ProtocolOption = Annotated[
    str | None,
    typer.Option(
        "--protocol", "-p", metavar="NAME",
        help=f"For python, node and curl: {', '.join(one.value for one in READINGS)}; the first that fits, else.",
    ),
]  # fmt: skip


class Connection(msgspec.Struct):
    """What `--json` prints."""

    client: str
    base_url: str
    protocol: str
    model: str
    key: str
    text: str


def connect(
    client: ClientArgument,
    model: ModelOption = None,
    key: KeyOption = None,
    protocol: ProtocolOption = None,
    url: UrlOption = None,
    config: ConfigChoice = None,
    json: JsonOption = False,
) -> None:
    """Print what a client needs.

    Settings for Codex, Claude Code and Gemini CLI; for python, node and curl a program that streams an answer and runs
    as it is. The key is never printed, only where it is.
    """
    allowed = _allowed(client, protocol)
    target = aim(config, url, key)
    if target.root.startswith(UNIX):
        fail("the gateway listens on a Unix socket only, which these clients cannot reach; name a URL with --url")
    place, name, spoken = _choose(target, model, allowed)
    place = _named(place)
    others = target.file is None or target.file.catalogue.find_model(AGENT_MODEL) is not None
    about = Client(target.root, place, name, spoken, others)
    text = TEXTS[client](about)
    if json:
        where = place.written
        echo_json(Connection(client.value, target.root, spoken.value, name, where, text))
    else:
        typer.echo(text, nl=False)


def _allowed(client: ClientName, protocol: str | None) -> tuple[WireProtocol, ...]:
    """The protocols that may be spoken, the preferred one first."""
    known = {one.value: one for one in READINGS}
    if client in SPOKEN:
        if protocol is not None and protocol != SPOKEN[client].value:
            raise typer.BadParameter(f"{client.value} speaks {SPOKEN[client].value} only", param_hint="--protocol")
        return (SPOKEN[client],)
    if protocol is None:
        return tuple(READINGS)
    if protocol not in known:
        raise typer.BadParameter(f"it is one of {', '.join(known)}", param_hint="--protocol")
    return (known[protocol],)


def _choose(target: Target, model: str | None, allowed: tuple[WireProtocol, ...]) -> tuple[KeyPlace, str, WireProtocol]:
    """The key, the model and the protocol to use. Ends the command where nothing fits."""
    if target.file is None:
        if model is None:
            fail("without a configuration file, say which model to ask: --model NAME")
        return target.key, model, allowed[0]
    if model is not None:
        return _asked(target, target.file, model, allowed)
    for key, place in target.keys:
        for protocol in allowed:
            for one in target.file.catalogue.models_for(key, (protocol,)):
                return place, one.name, protocol
    fail(_nothing(target.file, target.keys[0][0], allowed))


def _asked(
    target: Target, file: GatewayFile, model: str, allowed: tuple[WireProtocol, ...]
) -> tuple[KeyPlace, str, WireProtocol]:
    problem: Problem | None = None
    for key, place in target.keys:
        for protocol in allowed:
            found = admit(model, protocol, key, file.catalogue)
            if not isinstance(found, Problem):
                return place, model, protocol
            problem = problem or found
    assert problem is not None  # there is a key and a protocol
    hint = f" Did you mean {problem.did_you_mean}?" if problem.did_you_mean else ""
    fail(f"{file.path}: {problem.message}{hint}")


def _nothing(file: GatewayFile, key: Key, allowed: tuple[WireProtocol, ...]) -> str:
    catalogue = file.catalogue
    words = " or ".join(one.value for one in allowed)
    patterns = [
        model.name
        for model in catalogue.models
        if model.is_pattern and any(catalogue.offers(model, protocol) for protocol in allowed)
    ]
    if patterns:
        return (
            f"{file.path} has only patterns for models that speak {words} ({', '.join(patterns)});"
            " say which model: --model NAME"
        )
    return (
        f"{file.path} has no model for the key {key.name!r} that speaks {words};"
        " a model speaks what the channels of its routes do (channels.*.protocols)"
    )


def _named(place: KeyPlace) -> KeyPlace:
    """A place that can be told: a key that stands in the file itself must be put into a variable first."""
    if place.variable or place.file:
        return place
    typer.echo(f"the key stands in the configuration file itself; put it into {OWN_VARIABLE} for the client", err=True)
    return KeyPlace(ENV + OWN_VARIABLE)
