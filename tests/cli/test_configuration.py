"""How a command gets its configuration."""

from pathlib import Path

import pytest
import typer

from headrace.cli.configuration import read_draft, resolve
from tests.cli import process


def test_a_good_file_is_a_draft_and_then_what_a_worker_takes(tmp_path: Path) -> None:
    draft = read_draft(process.configuration(tmp_path, "http://127.0.0.1:1/v1"))
    loaded = resolve(draft)
    assert loaded.settings.state.secret == (tmp_path / "headrace-data" / "secret").read_bytes()
    assert [key.name for key in loaded.catalogue.keys] == ["dev"]


def test_a_state_directory_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draft = read_draft(process.configuration(tmp_path, "http://127.0.0.1:1/v1"))
    (tmp_path / "headrace-data").touch()
    with pytest.raises(typer.Exit) as ended:
        resolve(draft)
    assert ended.value.exit_code == 2
    assert "state.secret" in capsys.readouterr().err


def test_warnings_can_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = process.configuration(tmp_path, "http://127.0.0.1:1/v1")
    file.chmod(0o644)
    read_draft(file, warn=False)
    assert capsys.readouterr().err == ""
    read_draft(file)
    assert capsys.readouterr().err.startswith("warning: ")
