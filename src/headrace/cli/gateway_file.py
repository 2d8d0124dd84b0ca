"""What a command beside the gateway reads from its file: where it listens, what it offers, and where its keys are.

The environment of such a command has not the providers' keys, and need not have: every `env:` is taken as set, and only
the key that is asked for is really read.
"""

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.cli.configuration import BAD_FILE
from headrace.cli.output import fail
from headrace.config.draft import Draft, load, read_root
from headrace.config.errors import ConfigError
from headrace.config.source import Block, value_at
from headrace.model.catalogue import CatalogueParts
from headrace.model.key import Key, KeyState
from headrace.model.settings import Address, ServerSettings
from headrace.routing.catalogue import Catalogue

ENV, FILE = "env:", "file:"
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class KeyUnreadableError(Exception):
    """A key cannot be had; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """Where a key's secret is: `env:NAME`, `file:PATH` (an absolute path), or the secret itself."""

    written: str = field(repr=False)

    @property
    def variable(self) -> str:
        """The environment variable that holds it, or nothing."""
        return self.written.removeprefix(ENV) if self.written.startswith(ENV) else ""

    @property
    def file(self) -> str:
        """The file that holds it, or nothing."""
        return self.written.removeprefix(FILE) if self.written.startswith(FILE) else ""

    def read(self, environ: Mapping[str, str] = os.environ) -> str:
        """The secret. Raises KeyUnreadableError."""
        if self.variable:
            if not (secret := environ.get(self.variable, "").strip()):
                raise KeyUnreadableError(
                    f"the key is in the environment variable {self.variable}, which is not set here"
                )
            return secret
        if not self.file:
            return self.written
        try:
            return Path(self.file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise KeyUnreadableError(f"cannot read the key in {self.file}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise KeyUnreadableError(f"there is no key in {self.file}: it is not text") from None


@dataclass(frozen=True, slots=True)
class GatewayFile:
    """A valid file, as far as it can be known without the secrets that it names."""

    path: Path
    draft: Draft
    catalogue: Catalogue
    places: tuple[KeyPlace, ...]
    """Of each key in `draft.keys`, in their order."""
    root: Block = field(repr=False)
    """What the file says, with its lines."""

    def usable_keys(self) -> Iterator[tuple[Key, KeyPlace]]:
        """The keys that work now."""
        now = time.time()
        for key, place in zip(self.draft.keys, self.places, strict=True):
            if key.state is KeyState.ACTIVE and (key.expires is None or key.expires > now):
                yield key, place

    def place(self, asked: str) -> KeyPlace | None:
        """Where the key named `asked` is; None where the file has none of this name."""
        return next((at for key, at in zip(self.draft.keys, self.places, strict=True) if key.name == asked), None)


def read_gateway_file(path: Path) -> GatewayFile:
    """The file, or the end of the command with its errors."""
    try:
        root = read_root(path)
        draft = load(path, _Environment(dict(_stand_ins(root))))
    except ConfigError as error:
        fail(str(error), BAD_FILE)
    catalogue = Catalogue(CatalogueParts(draft.channels, draft.models, draft.keys))
    places = (_place(path, str(value_at(root, ("keys", index, "secret")))) for index in range(len(draft.keys)))
    return GatewayFile(path, draft, catalogue, tuple(places), root)


def base_url(server: ServerSettings) -> str:
    """The root URL for clients on this machine, or `unix:PATH`; the first TCP address counts. Empty where only the
    running gateway knows its port."""
    address = next((one for one in server.listen if not one.path), server.listen[0])
    if address.path:
        return str(address)
    if not address.port:
        return ""
    host = _EVERYWHERE.get(address.host, address.host)
    return f"{'https' if server.tls is not None else 'http'}://{Address(host, address.port)}"


def root_url(url: str) -> str:
    """A base URL as it may be written, with or without the version, as its root."""
    url = url.rstrip("/")
    for version in ("/v1", "/v1beta"):
        url = url.removesuffix(version)
    return url


def _place(path: Path, written: str) -> KeyPlace:
    written = written.strip()
    if written.startswith(FILE):
        written = FILE + str(path.absolute().parent / written.removeprefix(FILE))
    return KeyPlace(written)


class _Environment(Mapping[str, str]):
    """The environment, in which everything is set: what is not has a text that will do where it is asked for."""

    def __init__(self, stand_ins: Mapping[str, str]) -> None:
        self._stand_ins = stand_ins

    def __getitem__(self, name: str) -> str:
        # 32 characters, so that they are a secret of the gateway too; another one for each name, since keys differ.
        return os.environ.get(name) or self._stand_ins.get(name) or hashlib.sha256(name.encode()).hexdigest()[:32]

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def _stand_ins(root: Block) -> Iterator[tuple[str, str]]:
    """For the references that stand for more than a secret: the variable, and an address that will do."""
    channels = root.get("channels")
    addresses: dict[tuple[str, ...], str] = {
        ("state", "database"): "postgresql:///unread",
        ("state", "shared"): "memory",
    }
    addresses |= {
        ("channels", name, "proxy"): "http://unread:1" for name in (channels if isinstance(channels, Block) else ())
    }
    for location, address in addresses.items():
        written = value_at(root, location)
        if isinstance(written, str) and written.startswith(ENV):
            yield written.removeprefix(ENV), address
