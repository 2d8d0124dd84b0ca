"""The composition root of the line: one process, one loop, all stages, and the order in which they start and end."""

import asyncio
import contextlib
import gc
import os
import socket
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvloop

from headrace.front import Front
from headrace.journal.checkpoints import Checkpoints
from headrace.journal.ids import Ids
from headrace.journal.place import Incarnation
from headrace.journal.writer import Writer
from headrace.link.messages import Snapshot
from headrace.listener.server import Server
from headrace.listener.tls import server_context
from headrace.metering.lessons import Lessons
from headrace.model.allowance import Counters, Spent
from headrace.model.catalogue import CatalogueParts
from headrace.model.estimate import Learned
from headrace.model.outcome import End, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.settings import Address, Settings
from headrace.relay.share import Share
from headrace.relay.timers import Wheel
from headrace.routing.catalogue import Catalogue
from headrace.shared.memory import MemoryCounters
from headrace.shared.seeding import Seed
from headrace.shared.succession import Succession
from headrace.shared.valkey import Hooks, ValkeyCounters
from headrace.stages import Stages
from headrace.upstream.attempt import Upstream
from headrace.worker.standing import Standing

FULL_COLLECTION_BELOW = 200
"""Open streams above which no full garbage collection runs: at 9,000 streams one stops everything for 125 ms."""
COLLECT_S = 30.0
YOUNG = 10_000
"""New objects until the youngest are looked through. By the usual 700 each wave of requests would be, several times
over while it is served, which is 3 % of a short request's cost; a look through so many takes 0.3 ms."""
STOP_S = 5.0
"""So long exchanges may take that were told to end."""
CLOSE_S = 2.0
"""So long connections may take to give away what is in them; half of it where all is to end at once."""
_STOPPED = Problem(Kind.STOPPED, "The gateway is shutting down and ended this answer at its deadline.")
_STOPPED_BY_OPERATOR = Problem(Kind.STOPPED, "An operator of the gateway ended this answer.")
_REVOKED = Problem(Kind.STOPPED, "The key was revoked, and this answer was ended with it.")
_JOURNAL_FULL = Problem(Kind.STOPPED, "The gateway has no room left to record this answer and ended it.")


class Worker:
    """One worker. Must be made within a running loop; `start`, then `drain` or `hand_over`, which return when all is
    over."""

    def __init__(
        self,
        settings: Settings,
        parts: CatalogueParts,
        report: Callable[[str], None],
        node: str = "local",
        slot: int = 0,
        seed: Seed | None = None,
    ) -> None:
        """`seed` tells what was spent of budgets that Valkey has lost. Raises OSError where the journal cannot be
        written."""
        loop = asyncio.get_running_loop()
        incarnation = int.from_bytes(os.urandom(2))
        ids = Ids(incarnation)
        self._settings = settings
        self._loop = loop
        self._wheel = Wheel(loop)
        self._upstream = Upstream()
        self._incarnation = ids.new().removeprefix("hr_")
        place = Incarnation.of(Path(settings.state.directory), node, slot, self._incarnation)
        self._journal = Writer(place, loop, settings.state.sync, report=report, on_full=self._journal_full)
        self._checkpoints = Checkpoints(loop, settings.state.checkpoint, self._journal.append)
        self._counters = self._made_counters(report, seed)
        self._lessons = Lessons()
        stages = Stages(
            loop=loop,
            settings=settings,
            share=Share(loop, self._wheel, settings.server.held),
            upstream=self._upstream,
            journal=self._journal,
            checkpoints=self._checkpoints,
            counters=self._counters,
            lessons=self._lessons,
            report=report,
        )
        self._front = Front(stages, Catalogue(parts, settings.stream), ids)
        self._server = Server(settings.server, self._front.handle, self._front.refuse_edge, lambda head, problem: None)
        self._collector: asyncio.TimerHandle | None = None
        self._ended = asyncio.Event()

    def _made_counters(self, report: Callable[[str], None], seed: Seed | None) -> Counters:
        loop, state = self._loop, self._settings.state
        if not state.shared:
            return MemoryCounters(self._incarnation, loop.time, time.time, self._stop_spending)
        hooks = Hooks(loop.time, time.time, report, seed, self._stop_spending)
        return ValkeyCounters(state.shared, self._incarnation, state.shared_outage, hooks)

    def _stop_spending(self, purse: str) -> None:
        """A budget is spent whose streams are to end with it: in a turn of its own, for an exchange is just ending."""
        self._loop.call_soon(self._front.stop_spending, purse)

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where it listens."""
        return self._server.addresses

    @property
    def incarnation(self) -> str:
        """The name of its journal, new at each start."""
        return self._incarnation

    @property
    def standing(self) -> Standing:
        """What it tells of itself."""
        return Standing(self._front.running, self._front.counts, self._loop.time)

    async def start(self, sockets: Sequence[socket.socket] | None = None) -> None:
        """Listen. Raises OSError where an address cannot be bound, or a file for TLS cannot be used."""
        await self._counters.start()
        files = self._settings.server.tls
        await self._server.listen(sockets, server_context(files) if files else None)
        gc.collect()
        gc.freeze()
        # The young generations go on; a full one only when few streams are open, by hand.
        gc.set_threshold(YOUNG, gc.get_threshold()[1], 1_000_000)
        self._collector = self._loop.call_later(COLLECT_S, self._collect)

    def apply(self, snapshot: Snapshot) -> None:
        """Another catalogue and other stream settings, for new exchanges; running ones keep theirs."""
        self._front.catalogue = Catalogue(snapshot.parts, snapshot.stream)

    async def drain(self) -> None:
        """Stop in good order: not ready at once, after the notice refuse new exchanges, let streams end, then end the
        rest with a word to their clients.

        Connections are accepted to the last, so that who comes meanwhile hears 503 and need not wait in a queue that
        nobody serves.
        """
        self._front.ready = False
        await self._pause(min(self._settings.server.drain_notice, self._settings.server.drain))
        self._front.draining = True
        self._server.wind_down()
        await self._finish()

    async def hand_over(self, left: Callable[[], None], *, orphaned: bool = False) -> None:
        """Stop in favour of a successor on the same sockets: accept nobody from now on, and let streams end.

        `left` is called once nobody is accepted any more. Kept-alive connections may ask on until the notice is over,
        and close behind their next response, so that no request is lost between two workers. Orphaned: there may be no
        successor, so it says that it is not ready.
        """
        self._front.ready = not orphaned
        self._server.stop_accepting()
        left()
        await self._pause(min(self._settings.server.drain_notice, self._settings.server.drain), idle=True)
        self._server.wind_down()
        await self._finish()

    def end(self) -> None:
        """Cut short what waits in `drain` or `hand_over`."""
        self._ended.set()

    def stop(self) -> None:
        """End what still runs, now."""
        self._front.stop_all(Outcome(End.STOPPED, "shutdown", _STOPPED))

    def _journal_full(self) -> None:
        """What runs can not be recorded any more, and so it may not go on."""
        self._front.stop_all(Outcome(End.STOPPED, "journal_full", _JOURNAL_FULL))

    def stop_one(self, id: str) -> None:
        """End one exchange, if it runs here: an operator wants it."""
        for exchange in self._front.running:
            if exchange.id == id:
                exchange.stop(Outcome(End.STOPPED, "operator", _STOPPED_BY_OPERATOR))
                return

    def stop_key(self, name: str) -> None:
        """End every exchange of a key: it was revoked with all that runs under it."""
        self._front.stop_key(name, Outcome(End.STOPPED, "revoked", _REVOKED))

    def cover(self, spent: Sequence[Spent]) -> None:
        """What the ledger and other workers' journals say of budgets."""
        self._counters.cover(spent)

    def succession(self, send: Callable[[object], None]) -> Succession | None:
        """Its part in rolls; None where it counts nothing itself. `send` brings messages to the control process."""
        counters = self._counters
        return counters.succession(send, self._loop.call_soon) if isinstance(counters, MemoryCounters) else None

    def learn(self, learned: Mapping[str, Learned]) -> None:
        """What completed entries taught, by model; of others what they taught before holds."""
        self._lessons.take(learned)

    async def _finish(self) -> None:
        await self._settle(self._settings.server.drain)
        self._server.drain()
        self.stop()
        if self._front.running:
            await asyncio.wait(tuple(self._front.running.values()), timeout=STOP_S)
        await self._close()

    async def _settle(self, most_s: float) -> None:
        """Wait until no exchange runs that was taken."""
        deadline = self._loop.time() + most_s
        while (
            (tasks := self._front.taken) and not self._ended.is_set() and (left_s := deadline - self._loop.time()) > 0
        ):
            await self._first(asyncio.ensure_future(asyncio.wait(tasks)), left_s)

    async def _pause(self, seconds: float, *, idle: bool = False) -> None:
        """So long at most; with `idle` only until no connection is open."""
        if seconds > 0:
            await self._first(
                asyncio.ensure_future(self._server.emptied() if idle else asyncio.sleep(seconds)), seconds
            )

    async def _first(self, over: asyncio.Future[Any], most_s: float) -> None:
        """Wait for `over`, for the word to end, or so long."""
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait((over, ended), timeout=most_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
            ended.cancel()
            await asyncio.wait((over, ended))  # or they would outlive the drain by a turn

    async def _close(self) -> None:
        if self._collector is not None:
            self._collector.cancel()
        try:
            await asyncio.wait_for(self._server.closed(), CLOSE_S / 2 if self._ended.is_set() else CLOSE_S)
        except TimeoutError:
            self._server.abort()
        self._wheel.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._upstream.close(), CLOSE_S)
        self._checkpoints.close()
        self._counters.close()
        self._journal.close()

    def _collect(self) -> None:
        if len(self._front.running) < FULL_COLLECTION_BELOW:
            gc.collect()
        self._collector = self._loop.call_later(COLLECT_S, self._collect)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run `main` on the line's loop."""
    uvloop.run(main)
