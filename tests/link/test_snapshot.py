"""The snapshot on the disk: it comes back as it was, or says why it cannot."""

import os
from pathlib import Path

import msgspec
import pytest

from headrace.link.snapshot import PURPOSE, Kept, SnapshotError, read, snapshot_of, write
from headrace.model.catalogue import CatalogueParts, ObjectKind, StoredObject
from headrace.model.channel import BaseUrl, Channel, Credential, Model, Route
from headrace.model.key import Key
from headrace.model.settings import StreamSettings
from headrace.model.wire import WireProtocol
from headrace.sealing import seal

SECRET = bytes(range(32))
CHANNEL = Channel(
    "up",
    BaseUrl("https", "example.org", 443, "/v1"),
    frozenset({WireProtocol.CHAT, WireProtocol.RESPONSES}),
    (Credential("main", "sk-upstream"),),
)
PARTS = CatalogueParts((CHANNEL,), (Model("m", (Route("up"),)),), (Key("dev", bytes(32)),))
SNAPSHOT = snapshot_of(StreamSettings(), PARTS)
OBJECTS = (StoredObject(ObjectKind.KEY, "other", '{"secret": "sk-hr-other"}'),)
KEPT = Kept(snapshot=SNAPSHOT, objects=OBJECTS)


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, SECRET, KEPT)
    assert read(tmp_path, SECRET) == KEPT
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot"]


def test_it_shows_no_secret_and_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write(tmp_path, SECRET, KEPT)
    finally:
        os.umask(before)
    file = tmp_path / "snapshot"
    assert file.stat().st_mode & 0o777 == 0o600
    assert b"sk-" not in file.read_bytes()


def test_none_is_there() -> None:
    assert read(Path("/nonexistent"), SECRET) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "too short to be whole"),
        (b"no snapshot, but long enough to be one" * 3, "its form is not known"),
        (seal(bytes(32), PURPOSE, msgspec.msgpack.encode(KEPT)), "another secret"),
        (seal(SECRET, PURPOSE, msgspec.msgpack.encode(KEPT))[:-1], "is damaged"),
        (seal(SECRET, PURPOSE, b"\x01"), "another version"),
        (seal(SECRET, PURPOSE, msgspec.msgpack.encode(Kept(format=2, snapshot=SNAPSHOT))), "format 2, not 1"),
    ],
    ids=["short", "foreign", "another secret", "cut", "another version", "another format"],
)
def test_what_cannot_be_used_says_why_and_that_a_new_one_comes(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "snapshot").write_bytes(content)
    with pytest.raises(SnapshotError, match=words) as error:
        read(tmp_path, SECRET)
    assert "writes a new one" in str(error.value)


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    with pytest.raises(SnapshotError, match="cannot be read: Is a directory"):
        read(tmp_path, SECRET)


def test_a_write_that_fails_leaves_the_file_before_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, SECRET, KEPT)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("headrace.link.snapshot.os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            write(tmp_path, SECRET, Kept(snapshot=snapshot_of(StreamSettings(), CatalogueParts())))
    assert read(tmp_path, SECRET) == KEPT
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot"]


def test_the_same_content_keeps_its_version_and_another_has_another(tmp_path: Path) -> None:
    write(tmp_path, SECRET, KEPT)
    kept = read(tmp_path, SECRET)
    assert kept is not None
    assert snapshot_of(StreamSettings(), PARTS, kept.snapshot) is kept.snapshot
    assert snapshot_of(StreamSettings(total=1.0), PARTS, kept.snapshot).version != kept.snapshot.version
    assert snapshot_of(StreamSettings(), CatalogueParts(), kept.snapshot).version != kept.snapshot.version
