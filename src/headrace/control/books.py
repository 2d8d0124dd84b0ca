"""The database as the control process uses it: made ready once, journals taken into it, its objects followed.

prepare (migrate, or check) ──▶ journals into the ledger, for ever; what was spent, as that goes on
          │ again until it works        objects: read at first, then whenever they have changed
          └── meanwhile nothing is known of the database, and nothing waits for it
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from headrace.control.ingest import Ingest
from headrace.control.learn import Lessons
from headrace.control.spending import Spending
from headrace.control.telling import Telling
from headrace.journal.place import incarnations
from headrace.link.messages import AskSpent, SpentAnswer
from headrace.model.allowance import Spent
from headrace.model.catalogue import StoredObject
from headrace.model.purses import purse_parts
from headrace.model.settings import StateSettings
from headrace.sealing import seal, unseal
from headrace.state.database import Database
from headrace.state.errors import StateError
from headrace.state.ledger import Ledger
from headrace.state.migration import check, migrate
from headrace.state.objects import Objects
from headrace.state.spending import Purse, spent

LOOK_S: Final = 0.4
"""Between two looks at whether the objects have changed: what is put has its effect within a second."""
ANSWER_S: Final = 3.0
"""So long a question of a worker waits for the journals to be taken."""
WARM: Final = 5000
"""Entries of the ledger that are learned from at a start."""
TEACH: Final = 500
"""At once; the loop waits so long, some 5 ms."""
AWAY_S: Final = 3.0
"""So long an end waits for a database that is away; the next start takes what is left."""

Objecting = Callable[[tuple[StoredObject, ...]], Awaitable[None]]


class Books:
    """One database for the journals under a state directory. `say` has lines for the operator.

    Must be made within a running loop; `start`, then `drain` or not, then `close`.
    """

    def __init__(self, state: StateSettings, say: Callable[[str], None], *, may_migrate: bool) -> None:
        self._directory = directory = Path(state.directory)
        self._say = say
        self._may_migrate = may_migrate
        self._database = Database.open(state.database, directory)
        self._objects = Objects(self._database, partial(seal, state.secret), partial(unseal, state.secret))
        self._ledger = Ledger(self._database)
        self._ingest = Ingest(directory, self._ledger, say, write_log, self._prepare)
        spending = Spending(self._spent, self._ledger.open_exchanges, time.time)
        self.telling = self._ingest.follower = Telling(state, self._ingest, spending, Lessons(), say)
        self._prepared = asyncio.Event()
        self._stamp: object = None
        self._faults: tuple[str, ...] = ()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to take journals, and to learn from what was taken before."""
        loop = asyncio.get_running_loop()
        self._tasks += (loop.create_task(self._ingest.run()), loop.create_task(self._warm()))

    async def first_objects(self, most_s: float) -> tuple[StoredObject, ...] | None:
        """The objects; None where the database does not tell them in time."""
        try:
            async with asyncio.timeout(most_s):
                await self._prepared.wait()
                return await self._changed_objects()
        except (StateError, TimeoutError):
            return None

    def follow(self, on_objects: Objecting, on_doubt: Callable[[], Awaitable[None]]) -> None:
        """Call `on_objects` with the objects whenever they are others than the last that were read, or are told again
        after they were not; `on_doubt` when the database does not tell them."""
        self._tasks.append(asyncio.get_running_loop().create_task(self._follow(on_objects, on_doubt)))

    async def answer(self, question: AskSpent) -> SpentAnswer:
        """What was spent, with all that this node's journals hold now; None where that cannot be told in time."""
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._ingest.caught_up()
                return SpentAnswer(number=question.number, spent=await self._spent(question.purses))
        except (StateError, TimeoutError, ValueError):  # ValueError: a purse that this version does not know
            return SpentAnswer(number=question.number, spent=None)

    async def drain(self, most_s: float, *, orphans: bool) -> None:
        """Wait until what is in the journals is in the database, at most so long.

        With `orphans` the journals that are there now are waited for to their ends, too: their workers write on for as
        long as they have streams. Those of a gateway that is started meanwhile are its own control process's. Without,
        it is enough that nothing is behind. A database that is away is not waited for.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        whole = loop.create_task(self._outlive() if orphans else self._ingest.settled())
        away_since: float | None = None
        try:
            while not whole.done() and loop.time() - began < most_s:
                await asyncio.wait((whole,), timeout=0.1)
                now = loop.time()
                away_since = (away_since or now) if self._ingest.is_away else None
                if away_since is not None and now - away_since >= AWAY_S:
                    break
        finally:
            whole.cancel()
        if self._ingest.lag_bytes:
            self._say(f"{self._ingest.lag_bytes} bytes of journal are not in the database; the next start takes them")

    async def _outlive(self) -> None:
        """Wait until the journals that are there now are taken whole and gone."""
        left = await asyncio.to_thread(incarnations, self._directory)
        while left:
            await asyncio.sleep(0.1)
            left = [one for one in left if one.path.exists()]

    async def close(self) -> None:
        """Stop, at a point where all is whole."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.telling.close()
        with suppress(StateError):
            await self._database.close()

    async def _prepare(self) -> None:
        if self._may_migrate:
            done = await migrate(self._database)
            if done.before != done.after:
                self._say(f"{self._database.name} migrated: {done.before} → {done.after}")
        else:
            await check(self._database)
        self._prepared.set()

    async def _spent(self, purses: Sequence[str]) -> tuple[Spent, ...]:
        """What the ledger has of each."""
        return await spent(self._database, [Purse(*purse_parts(one)) for one in purses])

    async def _warm(self) -> None:
        """Learn from the newest entries. One that comes meanwhile may count twice, which changes no ratio."""
        await self._prepared.wait()
        with suppress(StateError):
            newest = [entry async for entry in self._ledger.entries(limit=WARM, newest_first=True)]
            newest.reverse()
            for first in range(0, len(newest), TEACH):
                self.telling.teach(newest[first : first + TEACH])
                await asyncio.sleep(0)

    async def _follow(self, on_objects: Objecting, on_doubt: Callable[[], Awaitable[None]]) -> None:
        await self._prepared.wait()
        while True:
            try:
                found = await self._changed_objects()
            except StateError:  # the ingestion says it
                self._stamp = None
                await on_doubt()
            else:
                if found is not None:
                    await on_objects(found)
            await asyncio.sleep(LOOK_S)

    async def _changed_objects(self) -> tuple[StoredObject, ...] | None:
        """The objects; None where they are as they were when last read."""
        stamp = await self._objects.stamp()
        if stamp == self._stamp:
            return None
        found = await self._objects.all()
        self._stamp = stamp
        for fault in found.faults:
            if fault not in self._faults:
                self._say(fault)
        self._faults = found.faults
        return found.objects


def write_log(lines: bytes) -> None:
    """Whole log lines to stdout. Raises OSError; may block."""
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()
