"""A sealed file of the state directory: it comes back as it was, or says why it cannot."""

import os
from pathlib import Path

import msgspec
import pytest

from headrace.link.sealed_file import SealedFile, SealedFileError
from headrace.sealing import seal

SECRET = bytes(range(32))


class Content(msgspec.Struct, frozen=True):
    """Something with a secret in it."""

    text: str
    format: int = 1


FILE = SealedFile("thing", Content, 1)
KEPT = Content("sk-upstream")


def packed(content: object = KEPT) -> bytes:
    return msgspec.msgpack.encode(content)


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    FILE.write(tmp_path, SECRET, KEPT)
    assert FILE.read(tmp_path, SECRET) == KEPT
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]


def test_it_shows_no_secret_and_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        FILE.write(tmp_path, SECRET, KEPT)
    finally:
        os.umask(before)
    file = tmp_path / "thing"
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"sk-" not in file.read_bytes()


def test_none_is_there(tmp_path: Path) -> None:
    assert FILE.read(tmp_path, SECRET) is None
    assert FILE.stamp(tmp_path) == ()


def test_each_writing_has_a_stamp_of_its_own(tmp_path: Path) -> None:
    stamps = []
    for _ in range(3):
        FILE.write(tmp_path, SECRET, KEPT)
        stamps += [FILE.stamp(tmp_path)] * 2
    assert len(set(stamps)) == 3


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "too short to be whole"),
        (b"nothing sealed, but long enough to be so" * 3, "its form is not known"),
        (seal(bytes(32), "thing", packed()), "another secret"),
        (seal(SECRET, "other", packed()), "another purpose"),
        (seal(SECRET, "thing", packed())[:-1], "is damaged"),
        (seal(SECRET, "thing", b"\x01"), "another version"),
        (seal(SECRET, "thing", packed(Content("x", format=2))), "format 2, not 1"),
    ],
    ids=["short", "foreign", "another secret", "another file's", "cut", "another version", "another format"],
)
def test_what_cannot_be_used_says_why_and_that_a_new_one_comes(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "thing").write_bytes(content)
    with pytest.raises(SealedFileError, match=words) as error:
        FILE.read(tmp_path, SECRET)
    assert "writes a new one" in str(error.value)


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "thing").mkdir()
    with pytest.raises(SealedFileError, match="cannot be read: Is a directory"):
        FILE.read(tmp_path, SECRET)


def test_a_write_that_fails_leaves_the_file_before_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FILE.write(tmp_path, SECRET, KEPT)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("headrace.link.sealed_file.os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            FILE.write(tmp_path, SECRET, Content("other"))
    assert FILE.read(tmp_path, SECRET) == KEPT
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]
