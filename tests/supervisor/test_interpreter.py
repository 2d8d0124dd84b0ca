"""How this interpreter is started anew."""

import subprocess
import sys
from pathlib import Path

import pytest

import headrace
from headrace.supervisor.interpreter import command

SRC = Path(headrace.__file__).parents[1]


def test_a_folder_cannot_put_its_own_modules_before_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asyncio.py").write_text("raise SystemExit('a stranger')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(SRC))
    ran = subprocess.run(command("headrace.worker", 3)[:-2], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "a worker is started by `headrace serve`\n")


def test_where_ours_are_found_by_the_folder_alone_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(SRC)
    assert "-P" not in command("headrace.worker", 3)
    monkeypatch.setenv("PYTHONPATH", str(SRC))
    assert "-P" in command("headrace.worker", 3)


def test_warnings_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "warnoptions", ["error", "ignore::ResourceWarning"])
    assert command("m", 7)[-6:] == ["-Werror", "-Wignore::ResourceWarning", "-m", "m", "--fd", "7"]


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("headrace.worker", "a worker is started by"),
        ("headrace.control", "the control process is started by"),
        ("headrace.supervisor", "the supervisor is what"),
    ],
)
def test_by_hand_each_says_what_starts_it(module: str, words: str) -> None:
    ran = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.startswith(words)
