"""The ledger, read from outside once its gateway has ended."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from headrace.model.entry import Entry
from headrace.state.database import Database
from headrace.state.ledger import Ledger, OpenExchange

T = TypeVar("T")


def entries_in(database: str, directory: Path) -> list[Entry]:
    """All entries, in the order in which their exchanges began. An empty `database` is SQLite in `directory`."""

    async def all_of(ledger: Ledger) -> list[Entry]:
        return [entry async for entry in ledger.entries()]

    return _ask(database, directory, all_of)


def open_in(database: str, directory: Path) -> tuple[OpenExchange, ...]:
    """What the ledger takes for still running."""

    async def all_of(ledger: Ledger) -> tuple[OpenExchange, ...]:
        return await ledger.open_exchanges()

    return _ask(database, directory, all_of)


def _ask(database: str, directory: Path, question: Callable[[Ledger], Awaitable[T]]) -> T:
    async def ask() -> T:
        store = Database.open(database, directory)
        try:
            return await question(Ledger(store))
        finally:
            await store.close()

    return asyncio.run(ask())
