"""Secrets by reference, and the gateway's own."""

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from headrace.config.errors import ConfigError
from headrace.config.forms import Reading
from headrace.config.secret import (
    MAX_SECRET_FILE,
    Secret,
    SecretText,
    StateSecret,
    generated_secret,
    state_secret_from_bytes,
)

SECRET: TypeAdapter[Secret] = TypeAdapter(SecretText)
STATE_SECRET: TypeAdapter[bytes] = TypeAdapter(StateSecret)
RAW = bytes(range(200, 232))


def test_a_secret_knows_whether_it_stood_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("  from-file\r\n")
    reading = Reading(tmp_path, {"KEY": " from-env\n"})
    read = [SECRET.validate_python(text, context=reading) for text in ("env:KEY", "file:key", "literal")]
    assert read == [Secret("from-env", False), Secret("from-file", False), Secret("literal", True)]
    assert repr(read[2]) == "Secret(literal=True)"


def test_a_variable_that_does_not_look_like_one_is_not_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationError) as caught:
        SECRET.validate_python("env:skproj9f8a7b", context=Reading(tmp_path, {}))
    assert str(caught.value.errors()[0]["ctx"]["error"]) == "the environment variable named here is not set"


@pytest.mark.parametrize("content", [b"", b"x" * (MAX_SECRET_FILE + 1), b"\xff\xfe", b" \n"])
def test_files_that_hold_no_secret(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(ValidationError, match=r"empty|larger than 64 KiB|visible ASCII"):
        SECRET.validate_python("file:key", context=Reading(tmp_path, {}))


def test_a_file_that_cannot_be_looked_at(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"cannot read file|does not exist"):
        SECRET.validate_python(f"file:{'x' * 300}", context=Reading(tmp_path, {}))


@pytest.mark.parametrize(
    "content", [RAW, RAW.hex().encode(), RAW.hex().upper().encode() + b"\n", base64.b64encode(RAW) + b"\r\n"]
)
def test_the_gateways_secret_has_three_forms(tmp_path: Path, content: bytes) -> None:
    assert state_secret_from_bytes(content) == RAW
    (tmp_path / "s").write_bytes(content)
    assert STATE_SECRET.validate_python("file:s", context=Reading(tmp_path, {})) == RAW


@pytest.mark.parametrize(
    "content", [RAW[:31], RAW + b"\n", b"ab" * 31, b"zz" * 32, base64.b64encode(RAW[:30]), b"\xe9"]
)
def test_other_lengths_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="must be 32 bytes"):
        state_secret_from_bytes(content)


def test_the_generated_secret_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    secret = generated_secret(folder)
    assert len(secret) == 32
    assert (folder / "secret").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in folder.iterdir()] == ["secret"]
    assert generated_secret(folder) == secret


def test_of_many_that_start_at_once_one_makes_it(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: generated_secret(tmp_path), range(32)))
    assert len(secrets) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_a_secret_that_others_may_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(RAW)
    (tmp_path / "secret").chmod(0o640)
    with pytest.raises(ConfigError, match="others may read it"):
        generated_secret(tmp_path)


@pytest.mark.parametrize("content", [b"", RAW[:16]])
def test_a_damaged_secret_is_not_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "secret").write_bytes(content)
    (tmp_path / "secret").chmod(0o600)
    with pytest.raises(ConfigError, match=r"must hold 32 bytes|is empty"):
        generated_secret(tmp_path)
    assert (tmp_path / "secret").read_bytes() == content


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"state\.directory must be writable"):
        generated_secret(tmp_path / "file" / "data")
