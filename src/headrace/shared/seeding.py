"""How purses come to stand in Valkey: told by the ledger, adopted if another worker has made them, or seeded.

A copy of a purse has a name. A claim names the copy that it counts on, so a purse that was lost and made anew is
noticed at the next claim: this worker's hold and part are written there first.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from headrace.model.allowance import Spent
from headrace.shared.pipeline import spent_from_reply, text_from_reply
from headrace.shared.purse import Purse, Purses
from headrace.shared.records import PURSE, Records
from headrace.shared.session import Session, unheard

Seed = Callable[[Sequence[str]], Awaitable[Sequence[Spent] | None]]
"""The spending of purses, out of the database; None: it cannot be told now."""

LOCK_S = 2.0
"""How long others wait for one that asks the database. A second one that asks all the same does no harm."""
_LOOK_S = 0.02
_BATCH = 100


class Seeding:
    """Purses of one worker in Valkey."""

    def __init__(self, session: Session, purses: Purses, records: Records, seed: Seed | None) -> None:
        self._session = session
        self._purses = purses
        self._records = records
        self._seed = seed
        self._sought: dict[str, asyncio.Task[bool]] = {}
        self._told: dict[str, Purse] = {}
        """Purses of which the ledger has told and Valkey has not heard."""
        self._telling: asyncio.Task[None] | None = None

    def adopt(self, purse: Purse, copy: str) -> bool:
        """Count on a copy that there is; False: there is none."""
        if copy and copy != purse.copy:
            purse.copy = copy
            if purse.held or purse.own:
                self._session.call(self._records.purse(purse, self._session.name), unheard)
        return bool(copy)

    async def seed(self, purse: Purse) -> bool:
        """Have an absent purse made; whether it is there now. All who ask meanwhile get the same answer."""
        task = self._sought.get(purse.name)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._look_for(purse), name="seed a purse")
            self._sought[purse.name] = task
            task.add_done_callback(lambda _: self._sought.pop(purse.name))
        return await asyncio.shield(task)

    def cover(self, purse: Purse) -> None:
        """Tell Valkey soon what the ledger has told of a purse."""
        self._told[purse.name] = purse
        if self._telling is None and self._session.here:
            self._telling = asyncio.get_running_loop().create_task(self._tell_all(), name="tell of purses")

    def came(self) -> None:
        """The session has written all that there was to tell."""
        self._told.clear()

    def close(self) -> None:
        """Stop what runs."""
        for task in (*self._sought.values(), self._telling):
            if task is not None:
                task.cancel()

    async def _look_for(self, purse: Purse) -> bool:
        lock = f"headrace:seeding:{purse.name}"
        loop = asyncio.get_running_loop()
        limit = loop.time() + LOCK_S
        take = ("SET", lock, self._session.name, "NX", "PX", int(LOCK_S * 1000))
        while (taken := await self._session.ask_plainly(*take)) is None and loop.time() < limit:
            await asyncio.sleep(_LOOK_S)
            copy = await self._session.ask_plainly("HGET", PURSE + purse.name, "k")
            if isinstance(copy, bytes) and self.adopt(purse, text_from_reply(copy)):
                return True
        spent = await self._spent(purse)
        told = spent is not None and await self._tell(purse, spent)
        if taken is not None:
            self._session.send(("DEL", lock), unheard)
        return told

    async def _spent(self, purse: Purse) -> Spent | None:
        """What the database has of it; without an answer what the ledger told last, or nothing for a new window."""
        answer = await self._seed((purse.name,)) if self._seed is not None else None
        for spent in answer or ():
            if spent.purse == purse.name:
                self._purses.cover(spent)
                return spent
        if purse.ledger is None and self._purses.begins_at_nothing(purse.name):
            return Spent(purse=purse.name)
        return purse.ledger

    async def _tell_all(self) -> None:
        while self._told and self._session.here:
            batch = [self._told.pop(name) for name in list(self._told)[:_BATCH]]
            await asyncio.gather(*(self._tell(one, one.ledger) for one in batch if one.ledger is not None))
        self._telling = None

    async def _tell(self, purse: Purse, spent: Spent) -> bool:
        """Whether Valkey has the purse now, with what the ledger has."""
        command = self._records.cover(spent, purse)
        reply = await self._session.ask(command)
        if not isinstance(reply, list):
            return False
        self.adopt(purse, text_from_reply(reply[0]))
        self._purses.hear(purse, spent_from_reply(reply, 1))
        return True
