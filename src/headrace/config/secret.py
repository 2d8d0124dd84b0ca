"""Secrets: by reference or literal in the file, and the gateway's own secret in its directory.

No error text holds a secret. The name of an environment variable is told only where it looks like one.
"""

import base64
import binascii
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes, token_hex
from typing import Annotated

from headrace.config.errors import ConfigError, Fault
from headrace.config.forms import Form, Reading

MAX_SECRET_FILE = 64 << 10
STATE_SECRET_BYTES = 32

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_DIGEST = re.compile(r"[0-9A-Fa-f]{64}")
_VISIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret's text, and whether it stands in the file itself."""

    text: str = field(repr=False)
    literal: bool


def is_reference(text: str) -> bool:
    """Whether a text names a place where the secret is, not the secret."""
    return text.startswith(("env:", "file:"))


def content_of_reference(text: str, reading: Reading) -> bytes | None:
    """What `env:NAME` or `file:PATH` refers to; None where the text is no reference. Raises ValueError."""
    if not reading.references and is_reference(text):
        raise ValueError("must not be a reference (env:, file:) outside the configuration file")
    if text.startswith("env:"):
        return _variable(text.removeprefix("env:"), reading)
    if text.startswith("file:"):
        return _file(reading.path(text.removeprefix("file:")))
    return None


def _variable(name: str, reading: Reading) -> bytes:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("env: takes the name of an environment variable, such as env:OPENAI_API_KEY")
    shown = f"environment variable {name}" if _PLAIN_VARIABLE.fullmatch(name) else "environment variable named here"
    if name not in reading.environ:
        raise ValueError(f"the {shown} is not set")
    if not (value := reading.environ[name].strip()):
        raise ValueError(f"the {shown} is empty")
    return os.fsencode(value)


def _file(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise ValueError(f"file {path} does not exist, or is no regular file")
        with path.open("rb") as file:
            content = file.read(MAX_SECRET_FILE + 1)
    except OSError as error:
        raise ValueError(f"cannot read file {path}: {error.strerror}") from None
    if not content:
        raise ValueError(f"file {path} is empty")
    if len(content) > MAX_SECRET_FILE:
        raise ValueError(f"file {path} is larger than {MAX_SECRET_FILE >> 10} KiB")
    return content


def _read_secret(text: str, reading: Reading) -> Secret:
    content = content_of_reference(text, reading)
    literal = content is None
    if content is None:
        if text.startswith("$"):
            raise ValueError("write env:NAME for an environment variable; $ is not expanded")
        content = text.encode()
    value = content.strip().decode("latin-1")
    if not value:
        raise ValueError("must not be empty; it takes env:NAME, file:PATH or the secret itself")
    if not _VISIBLE.fullmatch(value):
        raise ValueError("must be visible ASCII characters without spaces: it travels in a header")
    return Secret(value, literal)


def _read_state_secret(text: str, reading: Reading) -> bytes:
    if not reading.secrets:
        return b""
    content = content_of_reference(text, reading)
    if content is None:
        raise ValueError("must not stand in the file; it takes env:NAME or file:PATH")
    return state_secret_from_bytes(content)


def state_secret_from_bytes(content: bytes) -> bytes:
    """32 bytes as they are, as 64 hexadecimal digits, or as base64. Raises ValueError."""
    if len(content) == STATE_SECRET_BYTES:
        return content
    text = content.strip()
    for decode in (bytes.fromhex, _bytes_from_base64):
        with suppress(ValueError, binascii.Error):
            if len(found := decode(text.decode("ascii"))) == STATE_SECRET_BYTES:
                return found
    raise ValueError("must be 32 bytes, as they are, in hexadecimal or in base64; `openssl rand -hex 32` makes some")


def _bytes_from_base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _read_digest(text: str, reading: Reading) -> bytes:
    if not _DIGEST.fullmatch(text):
        raise ValueError("must be 64 hexadecimal digits")
    return bytes.fromhex(text)


SECRET = Form("env:NAME, file:PATH or the secret itself", _read_secret)
DIGEST = Form("64 hexadecimal digits", _read_digest, bytes.hex)

SecretText = Annotated[Secret, SECRET]
StateSecret = Annotated[bytes, Form("env:NAME or file:PATH", _read_state_secret)]


def generated_secret(directory: Path) -> bytes:
    """The secret in `directory`, which is made, with the secret, where it is not there. Raises ConfigError.

    The file appears whole or not at all, and of several processes that start at once one makes it.
    """
    path = directory / "secret"
    try:
        if not path.exists():
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _create(path)
        return _kept(path)
    except OSError as error:
        message = f"cannot read or make it: {error.strerror}; state.directory must be writable for the gateway"
        raise ConfigError(str(path), (Fault(None, "state.secret", message),)) from None
    except ValueError as error:
        raise ConfigError(str(path), (Fault(None, "state.secret", str(error)),)) from None


def _create(path: Path) -> None:
    draft = path.with_name(f".secret-{token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(token_bytes(STATE_SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()


def _kept(path: Path) -> bytes:
    content = _file(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ValueError("others may read it; run chmod 600 on it, or replace it if they have")
    if len(content) != STATE_SECRET_BYTES:
        raise ValueError(f"must hold {STATE_SECRET_BYTES} bytes, not {len(content)}; restore it, or all digests change")
    return content
