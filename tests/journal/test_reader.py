"""All that is in a directory of journals is found, in order."""

from pathlib import Path

import pytest

from headrace.journal.reader import find_entry, read_all
from headrace.journal.record import MAGIC, frame
from headrace.model.entry import Record
from tests.journal.entries import entry, opened


def write(directory: Path, incarnation: str, number: int, *records: Record, torn: bytes = b"") -> None:
    folder = directory / "journal" / incarnation
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}.segment").write_bytes(MAGIC + b"".join(map(frame, records)) + torn)


def test_nothing_there(tmp_path: Path) -> None:
    assert list(read_all(tmp_path)) == [] and list(read_all(tmp_path / "absent")) == []
    assert find_entry(tmp_path, "last") is None


def test_in_order(tmp_path: Path) -> None:
    write(tmp_path, "b", 1, entry(5))
    write(tmp_path, "a", 10, entry(3))
    write(tmp_path, "a", 9, entry(2), torn=b"\0\0\0\x10half")
    write(tmp_path, "a", 1, opened(1), entry(1))
    (tmp_path / "journal" / "a" / "note.txt").write_text("no segment")
    assert list(read_all(tmp_path)) == [opened(1), entry(1), entry(2), entry(3), entry(5)]


@pytest.mark.parametrize("content", [b"", MAGIC[:7]])
def test_a_segment_that_was_just_begun(tmp_path: Path, content: bytes) -> None:
    """A crash between its making and its first bytes must not hide the others."""
    write(tmp_path, "a", 1, entry(1))
    (tmp_path / "journal" / "a" / "2.segment").write_bytes(content)
    write(tmp_path, "b", 1, entry(2))
    assert list(read_all(tmp_path)) == [entry(1), entry(2)]


def test_one_entry(tmp_path: Path) -> None:
    write(tmp_path, "a", 1, opened(1), entry(1), entry(2), opened(7))
    write(tmp_path, "b", 1, entry(3, at=1.5))
    assert find_entry(tmp_path, entry(1).id) == entry(1)
    assert find_entry(tmp_path, "last") == entry(2), "by time, not by place"
    assert find_entry(tmp_path, opened(7).id) is None, "it has no entry yet"
    assert find_entry(tmp_path, "hr_unknown") is None
