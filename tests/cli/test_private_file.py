"""Files for their owner only."""

import stat
from pathlib import Path

import pytest

from headrace.cli.private_file import write_private


def test_it_is_whole_and_private(tmp_path: Path) -> None:
    write_private(tmp_path / "k", "水\n")
    assert (tmp_path / "k").read_text(encoding="utf-8") == "水\n"
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["k"]


def test_it_takes_no_others_place(tmp_path: Path) -> None:
    (tmp_path / "k").write_text("old")
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "k", "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
    write_private(tmp_path / "k", "new", replace=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


def test_it_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "k").symlink_to(tmp_path / "target")
    with pytest.raises(FileExistsError):
        write_private(tmp_path / "k", "new")
    write_private(tmp_path / "k", "new", replace=True)
    assert (tmp_path / "target").read_text() == "old"
