"""`headrace check`: says whether the configuration can be served, and what it comes to, or what every option means."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from headrace.cli.configuration import BAD_FILE, DEFAULT_FILE, ConfigOption, read_draft
from headrace.cli.output import JsonOption, Section, echo_json, is_terminal, show
from headrace.config.draft import Draft, load
from headrace.config.errors import ConfigError, Fault
from headrace.config.explain import GROUPS, explain, lines, meaning
from headrace.config.places import show_base_url
from headrace.config.stores import show_database
from headrace.model.channel import Channel, Model, Route
from headrace.model.key import Key, KeyState

SHOWN = 20
"""Rows of a table; a file may have ten thousand keys."""

ExplainOption = Annotated[
    bool, typer.Option("--explain", help="Print every option with its type, default and meaning; read no file.")
]


class Counts(msgspec.Struct):
    """How much the file declares."""

    channels: int
    models: int
    keys: int
    owners: int


class Report(msgspec.Struct):
    """What `--json` prints about a file."""

    file: str
    valid: bool
    errors: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()
    declared: Counts | None = None


def check(
    config: ConfigOption = DEFAULT_FILE, explain_options: ExplainOption = False, json: JsonOption = False
) -> None:
    """Validate the configuration file, and show what it comes to.

    It starts and writes nothing. Errors name the file, the line, the option, and what is allowed there.
    """
    if explain_options:
        _explain(json)
    elif json:
        _report(config)
    else:
        draft = read_draft(config)
        counts = ", ".join(f"{name}: {count}" for name, count in msgspec.structs.asdict(_counts(draft)).items())
        typer.echo(f"{config}: valid ({counts})\n")
        show(_summary(draft))


def _report(config: Path) -> None:
    try:
        draft = load(config)
    except ConfigError as error:
        echo_json(Report(error.file, False, error.faults))
        raise typer.Exit(BAD_FILE) from None
    echo_json(Report(str(config), True, (), draft.warnings, _counts(draft)))


def _counts(draft: Draft) -> Counts:
    return Counts(len(draft.channels), len(draft.models), len(draft.keys), len(draft.owners))


def _summary(draft: Draft) -> Iterator[Section]:
    """What the file comes to, without a secret."""
    server, state = draft.settings.server, draft.settings.state
    yield Section(
        "gateway",
        (
            ("listens on", ", ".join(map(str, server.listen)) + (" (TLS)" if server.tls else "")),
            ("workers", str(server.workers)),
            ("state in", state.directory),
            ("database", show_database(state.database)),
        ),
    )
    yield from _table("channels", ("name", "address", "protocols", "credentials"), list(map(_channel, draft.channels)))
    yield from _table("models", ("name", "routes, first to last", "price"), list(map(_model, draft.models)))
    yield from _table("keys", ("name", "owner", "models", "state"), list(map(_key, draft.keys)))


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[Section]:
    if rows:
        more = [(f"and {len(rows) - SHOWN} more", *[""] * (len(columns) - 1))] if len(rows) > SHOWN else []
        yield Section(title, tuple(rows[:SHOWN] + more), columns)


def _channel(channel: Channel) -> tuple[str, ...]:
    protocols = ", ".join(sorted(protocol.value for protocol in channel.protocols))
    credentials = ", ".join(credential.name for credential in channel.credentials)
    return channel.name, show_base_url(channel.base_url), protocols, credentials


def _model(model: Model) -> tuple[str, ...]:
    routes = sorted(model.routes, key=lambda route: route.priority)
    return model.name, _some([_route(route) for route in routes]), "yes" if model.prices else "unknown"


def _route(route: Route) -> str:
    return f"{route.channel} ({route.upstream_model})" if route.upstream_model else route.channel


def _key(key: Key) -> tuple[str, ...]:
    state = key.state.value if key.state is KeyState.DISABLED or key.expires is None else "expires"
    return key.name, key.owner or "itself", _some(key.models), state


def _some(words: Sequence[str], most: int = 5) -> str:
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def _explain(json: bool) -> None:
    if json:
        echo_json([line for group in GROUPS for line in lines(group)])
    elif is_terminal():
        show(_sections())
    else:
        typer.echo(explain())


def _sections() -> Iterator[Section]:
    for group in GROUPS:
        rows = tuple((line.path, line.form, line.default, meaning(line)) for line in lines(group))
        title = f"{group.title}: {group.doc} {group.effect}".rstrip()
        yield Section(title, rows, ("option", "type", "default", "meaning"))
