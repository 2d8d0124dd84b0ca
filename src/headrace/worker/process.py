"""A worker as the supervisor's child: its boot, its snapshot, its orders, and its link.

    BOOTING ──WorkerBoot──▶ WAITING ──snapshot──▶ SERVING ──an order──▶ LEAVING ──▶ exit 0
                            (the disk's, else the link's)  │ Drain, SIGTERM: announced, with notice
                                                           │ Drain(replaced): a successor has the sockets
                                                           └ end of the pipe: the supervisor is gone; so is the notice
    in any: End, or SIGTERM while LEAVING: at once

It reads no file but the sealed snapshot, and waits for nobody once it serves.
"""

import asyncio
import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from headrace.link.channel import adopted
from headrace.link.client import LinkClient
from headrace.link.messages import (
    Catalogue,
    Covered,
    Hello,
    Leaving,
    Lessons,
    Ready,
    Snapshot,
    Stop,
    ToWorker,
    Unable,
    WorkerBoot,
)
from headrace.link.orders import Order, Orders
from headrace.link.sealed_file import SealedFileError
from headrace.link.snapshot import SNAPSHOT_FILE
from headrace.model.key import KeyState
from headrace.model.purses import Budgets
from headrace.model.settings import Settings
from headrace.model.succession import Given, Gone, HandOver, Held, Released
from headrace.shared.succession import Succession
from headrace.worker.rest import Start, read_start
from headrace.worker.standing import Standing
from headrace.worker.worker import Worker

TELL_S: Final = 1.0
INHERIT_S: Final = 2.0
"""So long a successor waits to hear what is held by the worker that it follows, before it accepts anybody."""
DOUBT_S: Final = 30.0
"""So long behind a new link other workers may take to tell again what they hold. A starting control process may take
half of that."""
FAILED: Final = 1


class Process:
    """One worker process. Must be made within a running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._orders = Orders(WorkerBoot, self._end)
        self._first: asyncio.Future[Snapshot] = self._loop.create_future()
        self._snapshot: Snapshot | None = None
        self._early: list[Covered | Lessons] = []
        """What the link has said while there was no worker."""
        self._worker: Worker | None = None
        self._succession: Succession | None = None
        self._has_inherited: asyncio.Future[None] = self._loop.create_future()
        """Done when all is heard that the worker before holds, or that it is gone."""
        self._title = "worker"

    async def run(self, pipe: socket.socket) -> int:
        """Serve until an order ends it; the exit code."""
        await self._orders.open(pipe)
        try:
            return await self._run()
        finally:
            self._orders.close()

    async def _run(self) -> int:
        boot = await self._orders.unless_ordered(self._orders.boot)
        if boot is None:
            return 0
        self._title = f"worker {boot.slot}"
        link = LinkClient(Path(boot.state.directory), lambda: self._first_word(boot), self._hear)
        self._read_disk(boot)
        link.start()
        try:
            found = await self._orders.unless_ordered(self._first)
            return 0 if found is None else await self._serve(boot, await self._start(boot, found), link)
        finally:
            link.close()

    async def _serve(self, boot: WorkerBoot, start: Start, link: LinkClient) -> int:
        sockets = [adopted(descriptor) for descriptor in boot.listeners]
        try:
            worker = self._made(boot, start, link)
        except OSError as error:
            for sock in sockets:
                sock.close()
            return self._unable(f"cannot write the journal in {boot.state.directory}: {error.strerror}")
        link.send(self._hello(boot))  # again, with the name of its journal
        if boot.succeeds and self._succession is not None:
            await self._inherit()
        try:
            await worker.start(sockets)
        except OSError as error:
            return self._unable(f"cannot listen: {error.strerror or error}")
        self._orders.send(Ready())
        self._tell(link, worker.standing)
        order = await self._orders.order
        if self._orders.is_over:
            worker.end()
        if order is Order.DRAIN:
            await worker.drain()
        else:
            await worker.hand_over(lambda: self._orders.send(Leaving()), orphaned=order is Order.ORPHANED)
        return 0

    async def _inherit(self) -> None:
        """Wait for what the worker before holds, but not for long: requests are waiting."""
        with suppress(TimeoutError):
            async with asyncio.timeout(INHERIT_S):
                await self._orders.unless_ordered(self._has_inherited)

    # ---- what it knows before it serves

    def _read_disk(self, boot: WorkerBoot) -> None:
        try:
            kept = SNAPSHOT_FILE.read(Path(boot.state.directory), boot.state.secret)
        except SealedFileError as error:
            self._report(f"{error}; waiting for the control process")
            return
        if kept is None:
            self._report("there is no snapshot yet; waiting for the control process")
        else:
            self._have(kept.snapshot)

    async def _start(self, boot: WorkerBoot, found: Snapshot) -> Start:
        """What was spent, as the disk tells it."""
        budgets = Budgets.of(found.parts)
        directory, secret = Path(boot.state.directory), boot.state.secret
        return await asyncio.to_thread(read_start, directory, secret, budgets, time.time(), self._report)

    def _made(self, boot: WorkerBoot, start: Start, link: LinkClient) -> Worker:
        """The worker, which knows what the disk and the link have told. Raises OSError."""
        snapshot = self._snapshot
        assert snapshot is not None
        settings = Settings(boot.server, boot.state, snapshot.stream)
        worker = Worker(settings, snapshot.parts, self._report, boot.node, boot.slot, link.ask_spent)
        self._worker = worker
        self._succession = worker.succession(link.post)
        worker.cover(start.spent)
        worker.learn(start.learned)
        for message in self._early:
            self._hear(message)
        return worker

    # ---- the link

    def _first_word(self, boot: WorkerBoot) -> Hello:
        """On a new link."""
        if self._succession is not None:
            self._loop.call_later(DOUBT_S, self._succession.link_is_new())
        return self._hello(boot)

    def _hello(self, boot: WorkerBoot) -> Hello:
        version = self._snapshot.version if self._snapshot is not None else ""
        incarnation = self._worker.incarnation if self._worker is not None else ""
        hands_over = not boot.state.shared
        return Hello(slot=boot.slot, incarnation=incarnation, pid=os.getpid(), snapshot=version, hands_over=hands_over)

    def _hear(self, message: ToWorker) -> None:
        worker = self._worker
        match message:
            case Catalogue(snapshot=snapshot):
                self._have(snapshot)
            case Covered() | Lessons() if worker is None:
                self._early.append(message)
            case Covered(spent=spent) if worker is not None:
                worker.cover(spent)
            case Lessons(learned=learned) if worker is not None:
                worker.learn(learned)
            case Stop(id=id) if worker is not None:
                worker.stop_one(id)
            case HandOver() | Held() | Given() | Released() | Gone() if self._succession is not None:
                self._succession.hear(message)
                is_whole = message.last if isinstance(message, Held) else isinstance(message, Gone)
                if is_whole and not self._has_inherited.done():
                    self._has_inherited.set_result(None)

    def _have(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        if self._worker is not None:
            self._worker.apply(snapshot)
            for key in snapshot.parts.keys:
                if key.stop and key.state is KeyState.DISABLED:
                    self._worker.stop_key(key.name)
        elif not self._first.done():
            self._first.set_result(snapshot)

    def _tell(self, link: LinkClient, standing: Standing) -> None:
        """How it is, once a second."""
        if link.is_open:
            link.send(standing.gauges(draining=self._orders.order.done()))
            link.send(standing.slice())
        self._loop.call_later(TELL_S, self._tell, link, standing)

    # ---- the end

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()

    def _unable(self, reason: str) -> int:
        self._orders.send(Unable(reason=reason))
        return FAILED

    def _report(self, line: str) -> None:
        sys.stderr.write(f"{self._title}: {line}\n")


async def serve(descriptor: int) -> int:
    """Be the child whose pair is `descriptor`."""
    return await Process().run(adopted(descriptor))
