"""Which gateway a client command speaks to, with which key: from the file, or as the command line says."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.configuration import BAD_FILE, DEFAULT_FILE
from headrace.cli.gateway_file import ENV, FILE, GatewayFile, KeyPlace, base_url, read_gateway_file, root_url
from headrace.cli.output import fail
from headrace.model.key import Key

UNIX = "unix:"

KeyOption = Annotated[
    str | None,
    typer.Option("--key", "-k", metavar="KEY", help="A key's name in the file, or where it is: env:NAME, file:PATH."),
]
UrlOption = Annotated[
    str | None, typer.Option("--url", "-u", metavar="URL", help="The gateway's base URL, instead of server.listen.")
]


@dataclass(frozen=True, slots=True)
class Target:
    """A gateway and the keys that may be used: a name (empty where it is not from the file) and a place of each."""

    root: str
    """`http://host:port` or `unix:PATH`."""
    keys: tuple[tuple[Key, KeyPlace], ...]
    file: GatewayFile | None = field(repr=False)

    @property
    def key(self) -> KeyPlace:
        """The first key's place."""
        return self.keys[0][1]


def aim(config: Path | None, url: str | None, key: str | None) -> Target:
    """The gateway of the file, at `url` where that is given, with the key of this name or at this place.

    With both given, no file is needed. Ends the command where something is missing.
    """
    needs_file = url is None or key is None or not key.startswith((ENV, FILE))
    if config is None and not needs_file and not DEFAULT_FILE.exists():
        file = None
    else:
        file = _file(config or DEFAULT_FILE, config is None)
    root = root_url(url) if url is not None else _listening(file)
    return Target(root, _keys(file, key), file)


def _file(path: Path, assumed: bool) -> GatewayFile:
    if assumed and not path.exists():
        fail(
            f"there is no {path} here: name it with --config, make one with `headrace init`,"
            " or give --url and --key (env:NAME or file:PATH)",
            BAD_FILE,
        )
    return read_gateway_file(path)


def _listening(file: GatewayFile | None) -> str:
    assert file is not None  # without a URL it was read
    root = base_url(file.draft.settings.server)
    if not root:
        fail("server.listen leaves the port to the system: name the one that `headrace serve` printed, with --url")
    return root


def _keys(file: GatewayFile | None, asked: str | None) -> tuple[tuple[Key, KeyPlace], ...]:
    if asked is not None and asked.startswith((ENV, FILE)):
        written = FILE + str(Path(asked.removeprefix(FILE)).absolute()) if asked.startswith(FILE) else asked
        return ((Key("", b""), KeyPlace(written)),)
    assert file is not None  # only a place can do without
    keys = tuple(file.usable_keys())
    if asked is not None:
        keys = tuple(one for one in keys if one[0].name == asked)
    if not keys:
        known = ", ".join(key.name for key in file.draft.keys) or "none"
        wanted = f"no key {asked!r} that works" if asked is not None else "no key that works"
        fail(f"{file.path} has {wanted}; it has: {known}. --key takes a name, env:NAME or file:PATH")
    return keys
