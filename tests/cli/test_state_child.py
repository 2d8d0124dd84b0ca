"""The process that asks the database for commands."""

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.cli import state_child
from headrace.cli.state_child import StateFailedError, StatePlace, at_state
from headrace.state.errands import FindExchange, Migrate, Words
from headrace.state.migration import newest


def test_several_orders_are_one_process_s_work(tmp_path: Path) -> None:
    with at_state(StatePlace(tmp_path)) as child:
        first = list(child.ask(Migrate()))
        assert list(child.ask(FindExchange(id="hr_none"))) == []
        second = list(child.ask(Migrate()))
    assert isinstance(first[0], Words) and first[0].text.endswith(f"migrated: empty → {newest()}")
    assert isinstance(second[0], Words) and second[0].text.endswith("nothing to do")


def test_a_failure_is_told_and_the_next_order_is_done(tmp_path: Path) -> None:
    with at_state(StatePlace(tmp_path, f"postgresql://me:pass-word@/x?host={tmp_path}")) as child:
        with pytest.raises(StateFailedError, match=r"^cannot reach the database \(PostgreSQL\): ") as caught:
            child.do(Migrate())
        assert "pass-word" not in str(caught.value)
        (told,) = child.ask(FindExchange(id="hr_none"))
        assert isinstance(told, Words) and told.text.startswith("the database cannot be asked")


def test_answers_that_nobody_takes_hold_nobody_up(tmp_path: Path) -> None:
    with at_state(StatePlace(tmp_path)) as child:
        next(child.ask(Migrate()))


def test_a_process_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_child, "COMMAND", [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    with at_state(StatePlace(tmp_path)) as child, pytest.raises(StateFailedError, match="ended from outside"):
        child.do(Migrate())


@pytest.mark.parametrize("arguments", [["--help"], ["check"], ["explain", "last"], ["keys", "list"], ["usage"]])
def test_a_command_imports_no_database(arguments: list[str], tmp_path: Path) -> None:
    """SQLAlchemy alone takes longer to import than most commands to work."""
    program = f"""
import sys
from headrace.cli import main
sys.argv = ["headrace", *{arguments!r}]
try:
    main()
except SystemExit:
    pass
loaded = {{"alembic", "aiosqlite", "asyncpg", "sqlalchemy", "sqlite3"}} & sys.modules.keys()
assert not loaded, loaded
assert "headrace.cli.explain" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
