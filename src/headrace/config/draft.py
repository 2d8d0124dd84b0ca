"""The file as a whole: `load` validates it, `Draft.resolve` makes of it what a worker needs.

load(path) ──▶ Draft ──resolve(secret)──▶ Loaded ──merge(loaded, objects)──▶ Merged (objects.py)
  reads, checks everything, writes nothing    the secret turns keys into digests; `obtain_secret` has it

`load_state` reads the section `state` only, for commands that need no more.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from headrace.config.advice import advise
from headrace.config.checks import check
from headrace.config.convert import (
    channel_from_options,
    key_from_options,
    limits_from_options,
    model_from_options,
    owner_from_options,
    settings_from_options,
    state_from_options,
)
from headrace.config.errors import ConfigError, Fault, sentence
from headrace.config.forms import Reading
from headrace.config.options.settings import StateOptions
from headrace.config.secret import STATE_SECRET_BYTES, generated_secret
from headrace.config.sections import SectionReader, Sections, read_sections
from headrace.config.source import MAX_BYTES, Block, read
from headrace.model.catalogue import CatalogueParts
from headrace.model.channel import Channel, Model
from headrace.model.key import Key, digest_key, key_digest
from headrace.model.limits import NO_LIMITS, Limits
from headrace.model.owner import Owner
from headrace.model.settings import Settings, StateSettings


@dataclass(frozen=True, slots=True)
class Ground:
    """What objects of the database are read against, besides the file's own: where relative paths begin, and how long
    requests wait (of the section `limits`)."""

    folder: Path = Path()
    waits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration that can be served. Warnings are whole sentences with file and line."""

    settings: Settings
    catalogue: CatalogueParts
    warnings: tuple[str, ...]
    ground: Ground = Ground()


@dataclass(frozen=True, slots=True)
class Draft:
    """A valid file. Its keys have no digests yet, for those need the gateway's own secret."""

    settings: Settings
    channels: tuple[Channel, ...]
    models: tuple[Model, ...]
    keys: tuple[Key, ...]
    owners: tuple[Owner, ...]
    ground: Ground
    warnings: tuple[str, ...]
    key_secrets: tuple[str, ...] = field(repr=False)

    def resolve(self, secret: bytes) -> Loaded:
        """The configuration under the gateway's secret of 32 bytes."""
        if len(secret) != STATE_SECRET_BYTES:
            raise ValueError(f"the gateway's secret has {STATE_SECRET_BYTES} bytes")
        under = digest_key(secret)
        keys = tuple(
            replace(key, digest=key_digest(under, text.encode()))
            for key, text in zip(self.keys, self.key_secrets, strict=True)
        )
        settings = replace(self.settings, state=replace(self.settings.state, secret=secret))
        parts = CatalogueParts(self.channels, self.models, keys, self.owners)
        return Loaded(settings, parts, self.warnings, self.ground)


def load(path: Path, environ: Mapping[str, str] = os.environ) -> Draft:
    """Read and validate the file. Writes nothing. Raises ConfigError with all that is wrong."""
    reading = Reading(path.absolute().parent, environ)
    root, faults = read(read_text(path))
    sections, inner = read_sections(root, reading)
    if found := (*faults, *inner, *check(sections)):
        raise ConfigError(str(path), found)
    return _draft(path, sections, reading)


def load_state(path: Path, environ: Mapping[str, str] = os.environ, *, secrets: bool = False) -> StateSettings:
    """The section `state` alone: no other section is looked at. Without `secrets` the gateway's own need not be there,
    and is empty in the result. Raises ConfigError."""
    reading = Reading(path.absolute().parent, environ, secrets=secrets)
    root, faults = read(read_text(path))
    reader = SectionReader(root, reading)
    options = reader.section(StateOptions, ("state",))
    if found := (*faults, *reader.faults):
        raise ConfigError(str(path), found)
    assert options
    return state_from_options(options, reading)


def obtain_secret(draft: Draft) -> bytes:
    """The gateway's secret: the one that the file names, else that in `state.directory`, which is made if it is not
    there. For `serve`; raises ConfigError."""
    return draft.settings.state.secret or generated_secret(Path(draft.settings.state.directory))


def read_root(path: Path) -> Block:
    """What the file says, as text and without a check of any option. Raises ConfigError where it is no YAML."""
    root, faults = read(read_text(path))
    if faults:
        raise ConfigError(str(path), faults)
    return root


def read_text(path: Path) -> str:
    """A file for people, up to `MAX_BYTES` of UTF-8. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(str(path), (Fault(None, "", f"cannot be read: {error.strerror}"),)) from None
    if len(content) > MAX_BYTES:
        raise ConfigError(str(path), (Fault(None, "", f"is larger than {MAX_BYTES >> 20} MiB"),))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(str(path), (Fault(line, "", "is not UTF-8 text"),)) from None


def _draft(path: Path, sections: Sections, reading: Reading) -> Draft:
    """The values of sections without faults."""
    assert sections.server and sections.state and sections.stream and sections.limits
    waits = limits_from_options(sections.limits, NO_LIMITS)
    settings = settings_from_options(sections.server, sections.state, sections.stream, reading)
    keys = [key for key in sections.keys if key]
    exposed = bool(path.stat().st_mode & 0o077)
    return Draft(
        settings,
        tuple(channel_from_options(name, one) for name, one in sections.channels.items() if one),
        tuple(model_from_options(name, one, settings.stream) for name, one in sections.models.items() if one),
        tuple(key_from_options(key, waits) for key in keys),
        tuple(owner_from_options(owner, waits) for owner in sections.owners if owner),
        Ground(reading.folder, waits),
        tuple(sentence(str(path), advice) for advice in advise(sections, exposed)),
        tuple(key.secret.text for key in keys),
    )
