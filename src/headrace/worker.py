"""The composition root of the line: one process, one loop, all stages, and the order in which they start and end."""

import asyncio
import contextlib
import gc
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import uvloop

from headrace.front import Front
from headrace.journal.checkpoints import Checkpoints
from headrace.journal.ids import Ids
from headrace.journal.place import Incarnation
from headrace.journal.writer import Writer
from headrace.listener.server import Server
from headrace.listener.tls import server_context
from headrace.model.catalogue import CatalogueParts
from headrace.model.outcome import End, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.settings import Address, Settings
from headrace.relay.share import Share
from headrace.relay.timers import Wheel
from headrace.routing.catalogue import Catalogue
from headrace.stages import Stages
from headrace.upstream.attempt import Upstream

FULL_COLLECTION_BELOW = 200
"""Open streams above which no full garbage collection runs: at 9,000 streams one stops everything for 125 ms."""
COLLECT_S = 30.0
YOUNG = 10_000
"""New objects until the youngest are looked through. By the usual 700 each wave of requests would be, several times
over
while it is served, which is 3 % of a short request's cost; a look through so many takes 0.3 ms."""
_STOPPED = Problem(Kind.STOPPED, "The gateway is shutting down and ended this answer at its deadline.")

_JOURNAL_FULL = Problem(Kind.STOPPED, "The gateway has no room left to record this answer and ended it.")


class Worker:
    """One worker. Must be made within a running loop; `start`, then `drain`, which returns when all is over."""

    def __init__(
        self,
        settings: Settings,
        parts: CatalogueParts,
        report: Callable[[str], None],
        node: str = "local",
        slot: int = 0,
    ) -> None:
        loop = asyncio.get_running_loop()
        incarnation = int.from_bytes(os.urandom(2))
        ids = Ids(incarnation)
        self._settings = settings
        self._loop = loop
        self._wheel = Wheel(loop)
        self._upstream = Upstream()
        place = Incarnation.of(Path(settings.state.directory), node, slot, ids.new().removeprefix("hr_"))
        self._journal = Writer(place, loop, settings.state.sync, report=report, on_full=self._journal_full)
        self._checkpoints = Checkpoints(loop, settings.state.checkpoint, self._journal.append)
        stages = Stages(
            loop=loop,
            settings=settings,
            share=Share(loop, self._wheel, settings.server.held),
            upstream=self._upstream,
            journal=self._journal,
            checkpoints=self._checkpoints,
            report=report,
        )
        self._front = Front(stages, Catalogue(parts), ids)
        self._server = Server(settings.server, self._front.handle, self._front.refuse_edge, lambda head, problem: None)
        self._collector: asyncio.TimerHandle | None = None

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Where it listens."""
        return self._server.addresses

    async def start(self, sockets: Sequence[socket.socket] | None = None) -> None:
        """Listen. Raises OSError where an address cannot be bound, or a file for TLS cannot be used."""
        files = self._settings.server.tls
        await self._server.listen(sockets, server_context(files) if files else None)
        gc.collect()
        gc.freeze()
        # The young generations go on; a full one only when few streams are open, by hand.
        gc.set_threshold(YOUNG, gc.get_threshold()[1], 1_000_000)
        self._collector = self._loop.call_later(COLLECT_S, self._collect)

    async def drain(self) -> None:
        """Stop in good order: not ready at once, after the notice refuse new exchanges, let streams end, then end the
        rest with a word to their clients."""
        server = self._settings.server
        self._front.ready = False
        await asyncio.sleep(min(server.drain_notice, server.drain))
        self._front.draining = True
        self._server.drain()
        if self._front.running:
            await asyncio.wait(tuple(self._front.running.values()), timeout=server.drain)
        self.stop()
        if self._front.running:
            await asyncio.wait(tuple(self._front.running.values()), timeout=5.0)
        await self._close()

    def stop(self) -> None:
        """End what still runs, now."""
        self._front.stop_all(Outcome(End.STOPPED, "shutdown", _STOPPED))

    def _journal_full(self) -> None:
        """What runs can not be recorded any more, and so it may not go on."""
        self._front.stop_all(Outcome(End.STOPPED, "journal_full", _JOURNAL_FULL))

    async def _close(self) -> None:
        if self._collector is not None:
            self._collector.cancel()
        try:
            await asyncio.wait_for(self._server.closed(), 2.0)
        except TimeoutError:
            self._server.abort()
        self._wheel.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._upstream.close(), 2.0)
        self._checkpoints.close()
        self._journal.close()

    def _collect(self) -> None:
        if len(self._front.running) < FULL_COLLECTION_BELOW:
            gc.collect()
        self._collector = self._loop.call_later(COLLECT_S, self._collect)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run `main` on the line's loop."""
    uvloop.run(main)
