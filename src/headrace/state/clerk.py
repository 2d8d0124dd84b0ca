"""Does what is ordered of one database: each kind of order with its answers, as `errands` describes them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import assert_never

from headrace.state.database import Database
from headrace.state.errands import (
    Answer,
    FindExchange,
    Migrate,
    Opening,
    Order,
    Words,
)
from headrace.state.errors import DatabaseAwayError, StateError
from headrace.state.lookup import find
from headrace.state.migration import migrate


class RefusedError(StateError):
    """The order cannot be done as things are; the text says why."""


class Clerk:
    """One opened database. `close` when there is no more to do."""

    def __init__(self, opening: Opening) -> None:
        """ValueError for an address of another kind."""
        self._directory = Path(opening.directory)
        self._database = Database.open(opening.database, self._directory)

    async def answers(self, order: Order) -> AsyncIterator[Answer]:
        """Do it; its answers without the last, which is the caller's. StateError where it fails."""
        match order:
            case Migrate():
                yield Words(await self._migrate())
            case FindExchange():
                async for answer in self._find(order):
                    yield answer
            case _:
                assert_never(order)

    async def close(self) -> None:
        """Close the connections."""
        await self._database.close()

    async def _migrate(self) -> str:
        name = self._database.name
        try:
            done = await migrate(self._database)
        except DatabaseAwayError as error:
            raise DatabaseAwayError(f"cannot reach the database ({name}): {error}") from error
        if done.before == done.after:
            return f"{name} has version {done.after}: nothing to do"
        return f"{name} migrated: {done.before} → {done.after}"

    async def _find(self, order: FindExchange) -> AsyncIterator[Answer]:
        reports: list[str] = []
        try:
            found = await find(self._database, self._directory, order.id, reports.append, order.wait_s)
        except OSError as error:
            raise RefusedError(f"cannot read the journal in {self._directory}: {error.strerror or error}") from error
        for report in dict.fromkeys(reports):
            yield Words(report)
        if found is not None:
            yield found
