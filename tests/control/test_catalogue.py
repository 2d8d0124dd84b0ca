"""What is served, of the file and the database: what a reload changes, what it says, and what changes nothing."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.config.draft import load
from headrace.control.catalogue import CatalogueSource
from headrace.link.messages import Snapshot
from headrace.model.catalogue import ObjectKind, StoredObject
from headrace.model.settings import Settings

SECRET = b"a secret of the stand, 32 bytes."
FILE = """
server: {drain: 5s}
channels:
  up: {base_url: "https://example.org/v1", protocols: [chat], credentials: [{name: m, secret: s}]}
models: {m: {routes: [{channel: up}]}}
keys: [{name: dev, secret: sk-hr-dev-0123456789abcdef}]
"""
OTHER = StoredObject(ObjectKind.KEY, "other", '{"secret": "sk-hr-other-0123456789abcdef"}')
SHADOWED = StoredObject(ObjectKind.KEY, "dev", '{"secret": "sk-hr-more-0123456789abcdef"}')


class Desk:
    """A source on a file of its own, and what it says."""

    def __init__(self, folder: Path, objects: tuple[StoredObject, ...] = (), before: Snapshot | None = None) -> None:
        self.path = folder / "headrace.yaml"
        if not self.path.exists():
            self.write(FILE)
        self.said: list[str] = []
        made = load(self.path).resolve(SECRET).settings
        running = Settings(made.server, replace(made.state, secret=SECRET))
        self.source = CatalogueSource(self.path, running, objects, before, self.said.append)

    def write(self, text: str) -> None:
        """Another file in its place."""
        draft = self.path.with_suffix(".new")
        draft.write_text(text)
        draft.chmod(0o600)
        draft.replace(self.path)

    def read(self) -> bool:
        return asyncio.run(self.source.read())

    def take(self, *objects: StoredObject) -> bool:
        return asyncio.run(self.source.take(objects))

    def knows_all_keys(self) -> bool:
        assert self.source.snapshot is not None
        return self.source.snapshot.parts.keys_are_known

    @property
    def keys(self) -> list[str]:
        assert self.source.snapshot is not None
        return [key.name for key in self.source.snapshot.parts.keys]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """One that has read its file."""
    made = Desk(tmp_path)
    assert made.read()
    assert not made.said
    return made


def test_the_same_file_is_the_same_snapshot(desk: Desk) -> None:
    before = desk.source.snapshot
    assert not desk.read()
    assert desk.source.snapshot is before
    assert desk.said == ["reloaded: nothing has changed"]


def test_a_start_with_the_same_content_keeps_the_version(desk: Desk, tmp_path: Path) -> None:
    second = Desk(tmp_path, before=desk.source.snapshot)
    assert not second.read()
    assert second.source.snapshot is desk.source.snapshot


def test_a_change_is_noticed_once_and_said(desk: Desk) -> None:
    assert not desk.source.has_changed()
    desk.write(FILE.replace("name: dev", "name: fresh"))
    assert desk.source.has_changed()
    assert desk.read()
    assert not desk.source.has_changed()
    assert desk.keys == ["fresh"]
    assert desk.said == ["reloaded: key fresh: added", "reloaded: key dev: removed"]


def test_a_change_within_one_tick_of_the_clock_and_of_one_size_is_noticed(desk: Desk) -> None:
    """As editors do it: another file under the name."""
    times = desk.path.stat()
    desk.write(FILE.replace("name: dev", "name: abc"))
    os.utime(desk.path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert desk.source.has_changed()


@pytest.mark.parametrize("bad", ["keys: [", "keys: [{name: x}]\n", None])
def test_a_bad_file_changes_nothing_and_is_said_once(desk: Desk, bad: str | None) -> None:
    before = desk.source.snapshot
    if bad is None:
        desk.path.unlink()
    else:
        desk.write(bad)
    assert desk.source.has_changed()
    assert not desk.read()
    assert not desk.source.has_changed()
    assert desk.source.snapshot is before
    assert desk.said[-1] == f"{desk.path}: nothing was changed"
    desk.write(FILE)
    assert not desk.read()
    assert f"{desk.path}: good again" in desk.said


def test_a_start_with_a_bad_file_serves_what_was_served_before(desk: Desk, tmp_path: Path) -> None:
    second = Desk(tmp_path, before=desk.source.snapshot)
    second.write("keys: [")
    assert not second.read()
    assert second.keys == ["dev"]


def test_what_needs_a_restart_is_said_until_there_was_one(desk: Desk) -> None:
    desk.write(FILE.replace("drain: 5s", "drain: 6s"))
    line = "reloaded: server.drain: 5s → 6s; takes effect at the next start"
    for times in (1, 2):
        desk.read()
        assert desk.said.count(line) == times


def test_objects_of_the_database_are_served_beside_the_file(desk: Desk) -> None:
    assert desk.take(OTHER)
    assert desk.keys == ["dev", "other"]
    assert not desk.take(OTHER), "they are as they were"
    desk.write(FILE.replace("name: dev", "name: fresh"))
    assert desk.read()
    assert desk.keys == ["fresh", "other"]
    assert desk.take()
    assert desk.keys == ["fresh"]


def test_one_that_the_file_has_too_is_shadowed_and_comes_to_light_with_its_going(desk: Desk) -> None:
    assert not desk.take(SHADOWED)
    assert desk.source.objects == (SHADOWED,), "it is kept"
    assert desk.said == [
        "reloaded: nothing has changed",
        "not served: key dev: the file has one of this name, and that is served",
    ]
    desk.write(FILE[: FILE.index("keys:")])
    before = desk.source.snapshot
    assert before is not None
    assert desk.read()
    assert desk.keys == ["dev"]
    assert desk.source.snapshot is not None
    assert desk.source.snapshot.parts.keys != before.parts.keys


def test_a_broken_one_hurts_no_other(desk: Desk) -> None:
    broken = StoredObject(ObjectKind.CHANNEL, "bad", "{}")
    assert desk.take(broken, OTHER)
    assert desk.keys == ["dev", "other"]
    assert [line for line in desk.said if line.startswith("not served: channel bad: ")]
    desk.said.clear()
    desk.take(broken)
    assert not [line for line in desk.said if line.startswith("not served")], "said once"


def test_objects_without_a_good_file_wait_for_it(tmp_path: Path) -> None:
    made = Desk(tmp_path)
    made.write("keys: [")
    assert not made.read()
    assert not made.take(OTHER)
    made.write(FILE)
    assert made.read()
    assert made.keys == ["dev", "other"]


def test_a_warning_is_said_when_it_is_new(desk: Desk) -> None:
    desk.write(FILE.replace("drain: 5s", "drain: 5s, admin: '127.0.0.1:1'"))
    desk.read()
    new = [line for line in desk.said if line.startswith("warning: ")]
    assert new
    desk.read()
    assert [line for line in desk.said if line.startswith("warning: ")] == new


def test_keys_are_doubted_while_the_database_is_away(desk: Desk) -> None:
    """The file's keys are as they were; whether there are others is not known."""
    desk.read()
    said = len(desk.said)
    assert [desk.source.doubt(), desk.source.doubt()] == [True, False]
    assert not desk.knows_all_keys()
    keys = desk.keys
    assert desk.take()
    assert desk.knows_all_keys()
    assert (desk.keys, len(desk.said)) == (keys, said)
