"""Journals on a disk, and an ingestion of them with all that it says."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import msgspec

from headrace.control.ingest import Ingest, Pace
from headrace.journal.place import Incarnation
from headrace.journal.record import frame, head, seed_of
from headrace.model.entry import Entry, Record
from headrace.state.ledger import Ledger

PACE = Pace(look_s=0.005, idle_s=0.02, retry_s=0.01, most_retry_s=0.05)
WAIT_S = 20.0


class Disk:
    """The journals of a state directory, as workers leave them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def place(self, name: str, slot: int = 0) -> Incarnation:
        """One incarnation of the node."""
        return Incarnation.of(self.directory, "node", slot, name)

    def write(self, name: str, *records: Record, number: int = 1, raw: bytes = b"") -> Incarnation:
        """Append to a segment, which is begun where it is not there."""
        where = self.place(name)
        where.path.mkdir(parents=True, exist_ok=True)
        seed = seed_of(name)
        path = where.segment(number)
        begin = b"" if path.exists() else head(seed)
        with path.open("ab") as file:
            file.write(begin + b"".join(frame(one, seed) for one in records) + raw)
        return where

    @contextmanager
    def alive(self, where: Incarnation, number: int = 1) -> Iterator[None]:
        """A worker lives that writes to this segment."""
        file = os.open(where.segment(number), os.O_RDONLY)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


class Ingestion:
    """One ingestion, what it reports, and its log."""

    def __init__(self, disk: Disk, ledger: Ledger, pace: Pace = PACE, batch_bytes: int = 1 << 20) -> None:
        self.said: list[str] = []
        self.logged: list[bytes] = []
        self.log_error: Exception | None = None
        self.directory = disk.directory
        self.ingest = Ingest(disk.directory, ledger, self.said.append, self._log, pace=pace, batch_bytes=batch_bytes)

    def _log(self, lines: bytes) -> None:
        if self.log_error is not None:
            raise self.log_error
        self.logged += lines.splitlines()

    def ids_logged(self) -> list[str]:
        """Whose lines there are."""
        return [msgspec.json.decode(one)["id"] for one in self.logged]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """It runs meanwhile; where it ends by itself the test fails."""
        task = asyncio.get_running_loop().create_task(self.ingest.run())
        try:
            yield
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def drain(self) -> None:
        """Run until nothing is left."""
        async with self.running(), asyncio.timeout(WAIT_S):
            await self.ingest.settled()

    async def took(self, entries: int) -> None:
        """Wait until so many have come from journals."""
        await until(lambda: self.ingest.counts.entries >= entries)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for it, within a bound."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - what it waits for is in databases and files
            await asyncio.sleep(0.002)


async def entries_of(ledger: Ledger) -> list[Entry]:
    """All that it holds."""
    return [one async for one in ledger.entries()]
