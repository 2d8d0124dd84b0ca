"""`headrace init`: writes a configuration file from the provider keys in the environment, and a key of its own.

The file holds no secret: providers' keys stay in the environment, the gateway's key goes into a file of its own beside
it. So the configuration can be shown and kept under version control, and a client can take the key from its file.
"""

import os
import secrets
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import msgspec
import typer

from headrace.cli.configuration import BAD_FILE, DEFAULT_FILE
from headrace.cli.output import JsonOption, Section, echo_json, fail, plain_lines, show
from headrace.cli.private_file import write_private
from headrace.cli.providers import PROVIDERS, SIMULATED, SIMULATOR_URL, Found, found_in
from headrace.cli.starting_file import KEY_NAME, routed, text
from headrace.config.draft import load
from headrace.config.errors import ConfigError

KEY_PREFIX = "sk-hr-"
KEY_BYTES = 32

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The configuration file to write.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Write over a file that is there; its key file is kept as it is.")
]
SimulateOption = Annotated[
    bool, typer.Option("--simulate", help=f"Before the simulator at {SIMULATOR_URL}, not before providers.")
]
ListenOption = Annotated[
    str, typer.Option("--listen", "-l", metavar="ADDRESS", help="Where clients connect: host:port or unix:PATH.")
]


class Made(msgspec.Struct):
    """What `--json` prints."""

    file: str
    key: str
    key_file: str
    channels: tuple[str, ...]
    models: tuple[str, ...]


def init(
    file: FileArgument = DEFAULT_FILE,
    force: ForceOption = False,
    simulate: SimulateOption = False,
    listen: ListenOption = "127.0.0.1:8080",
    json: JsonOption = False,
) -> None:
    """Write a configuration file.

    It is made from the provider keys in the environment and names them without holding them. A random key for clients
    is put beside it, in a file of its own. Both are readable for their owner only.
    """
    found = (SIMULATED,) if simulate else tuple(found_in(os.environ))
    if not found:
        fail(_no_provider())
    if file.exists() and not force:
        fail(f"{file} is there already; name another file, or write over it with --force")
    key_file = file.with_suffix(".key")
    content = text(found, listen, key_file.name)
    _check(content, file, found)
    try:
        kept = _obtain_key(key_file)
        write_private(file, content, replace=force)
    except OSError as error:
        fail(f"cannot write {file} and {key_file}: {error.strerror}")
    made = Made(str(file), KEY_NAME, str(key_file), tuple(one.provider.channel for one in found), tuple(routed(found)))
    if json:
        echo_json(made)
    else:
        show(_told(made, found, kept))
        typer.echo()
        show([_next_steps(made, found)])


def _no_provider() -> str:
    rows = tuple(
        (
            " or ".join(one.variables),
            one.title,
            f"at {one.base_variable}, where that is set" if one.base_variable else "",
        )
        for one in PROVIDERS
    )
    looked = "\n".join(plain_lines(Section("no provider's key is in the environment; init looks for", rows)))
    return (
        f"{looked}\nSet one of them. Or try without an account: run `headrace simulate` in another terminal, and here"
        " `headrace init --simulate`."
    )


def _check(content: str, file: Path, found: Sequence[Found]) -> None:
    """End the command where the file would not be valid, which only an address can be the reason for."""
    with TemporaryDirectory() as folder:
        draft_file = Path(folder) / file.name
        write_private(draft_file, content)
        write_private(draft_file.with_suffix(".key"), new_key())
        try:
            draft = load(draft_file)
        except ConfigError as error:
            variables = [one.provider.base_variable for one in found if one.elsewhere]
            faults = "\n".join(f"{fault.path}: {fault.message}" for fault in error.faults)
            fail(f"{faults}\nnothing was written; look at {', '.join((*variables, '--listen'))}", BAD_FILE)
    for one, channel in zip(found, draft.channels, strict=True):
        place = (_loopback(channel.base_url.host), channel.base_url.port)
        if place in {(_loopback(address.host), address.port) for address in draft.settings.server.listen}:
            cause = one.provider.base_variable if one.elsewhere else "the simulator's address"
            fail(
                f"{one.base_url} is where the gateway itself listens, so requests would go round in a circle;"
                f" nothing was written. Look at {cause}, or choose another --listen",
                BAD_FILE,
            )


def _loopback(host: str) -> str:
    return "127.0.0.1" if host in {"localhost", "::1", "0.0.0.0", "::"} else host


def _obtain_key(path: Path) -> bool:
    """Make the key file; True where one was there, which clients may have by now."""
    try:
        write_private(path, f"{new_key()}\n")
    except FileExistsError:
        return True
    return False


def new_key() -> str:
    """A key for clients: 256 random bits."""
    return KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)


def _told(made: Made, found: Sequence[Found], kept: bool) -> Iterator[Section]:
    channels = (f"{one.provider.channel} ({one.variable or one.base_url})" for one in found)
    yield Section(
        f"{made.file} is written",
        (
            ("channels", ", ".join(channels)),
            ("models", ", ".join(made.models)),
            (
                "key",
                f"{made.key}, {'as it was' if kept else 'new and random'}, in {made.key_file}; only you can read it",
            ),
        ),
    )


def _next_steps(made: Made, found: Sequence[Found]) -> Section:
    option = "" if Path(made.file) == DEFAULT_FILE else f" --config {shlex.quote(made.file)}"
    model = next((name for name in made.models if "*" not in name), "MODEL")
    chosen = " --model MODEL" if model == "MODEL" else ""
    needs = ", ".join(one.variable for one in found if one.variable)
    serve = f"run the gateway; it reads {needs} where it runs" if needs else "run the gateway"
    steps = [
        (f"headrace serve{option}", serve),
        (f"headrace connect python{chosen}{option}", "what a client needs; also node, curl, codex, claude, gemini"),
        (f'headrace try {model} "Hello"{option}', "one answer through the gateway, and what became of it"),
    ]
    if not needs:
        steps.insert(0, ("headrace simulate", "run the simulated provider"))
    return Section("next", tuple(steps))
