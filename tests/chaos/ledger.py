"""The ledger, read from outside once its gateway has ended."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from headrace.model.allowance import Spent
from headrace.model.entry import Entry
from headrace.state.database import Database
from headrace.state.ledger import Ledger, OpenExchange
from headrace.state.spending import Purse, spent

T = TypeVar("T")


def entries_in(database: str, directory: Path) -> list[Entry]:
    """All entries, in the order in which their exchanges began. An empty `database` is SQLite in `directory`."""

    async def all_of(store: Database) -> list[Entry]:
        return [entry async for entry in Ledger(store).entries()]

    return _ask(database, directory, all_of)


def open_in(database: str, directory: Path) -> tuple[OpenExchange, ...]:
    """What the ledger takes for still running."""

    async def all_of(store: Database) -> tuple[OpenExchange, ...]:
        return await Ledger(store).open_exchanges()

    return _ask(database, directory, all_of)


def spent_in(database: str, directory: Path, purses: Sequence[Purse]) -> tuple[Spent, ...]:
    """What the ledger has of budgets, in the order of `purses`."""

    async def of_each(store: Database) -> tuple[Spent, ...]:
        return await spent(store, purses)

    return _ask(database, directory, of_each)


def _ask(database: str, directory: Path, question: Callable[[Database], Awaitable[T]]) -> T:
    async def ask() -> T:
        store = Database.open(database, directory)
        try:
            return await question(store)
        finally:
            await store.close()

    return asyncio.run(ask())
