"""Stops a transaction at any of its steps, as a process that dies there would."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event

from headrace.state.database import Database


class CrashError(Exception):
    """The process is dead."""


@dataclass
class Steps:
    """Counts the steps of what runs, and raises at one of them."""

    at: int | None
    taken: int = 0
    has_committed: bool = False

    @property
    def is_over(self) -> bool:
        """Whether it has crashed."""
        return self.at is not None and self.taken > self.at

    def step(self) -> None:
        """One more."""
        self.taken += 1
        if self.at is not None and self.taken == self.at + 1:
            raise CrashError


@contextmanager
def crashing(database: Database, at: int | None) -> Iterator[Steps]:
    """Raise `CrashError` at the step of that number: before and after each statement, before and after the commit."""
    steps = Steps(at)
    engine = database.engine.sync_engine
    dialect = engine.dialect
    commit = dialect.do_commit

    def on_statement(*_: Any) -> None:
        steps.step()

    def do_commit(connection: Any) -> None:
        steps.step()
        commit(connection)
        steps.has_committed = True
        steps.step()

    event.listen(engine, "before_cursor_execute", on_statement)
    event.listen(engine, "after_cursor_execute", on_statement)
    dialect.do_commit = do_commit  # type: ignore[assignment, method-assign]
    try:
        yield steps
    finally:
        dialect.do_commit = commit  # type: ignore[method-assign]
        event.remove(engine, "before_cursor_execute", on_statement)
        event.remove(engine, "after_cursor_execute", on_statement)
