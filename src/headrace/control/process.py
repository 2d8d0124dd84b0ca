"""The composition root of the control process: its boot, its order of work, and its end.

BOOTING ──ControlBoot──▶ READING ──snapshot written──▶ READY ──an order──▶ LEAVING ──▶ exit 0
                         (the file; without a good one the snapshot from before)
READY: the file every 2 s and at Reload; workers at the link; their records into the database
LEAVING: Drain or SIGTERM; the end of the pipe: the supervisor is gone. End: at once
"""

import asyncio
import gc
import signal
import socket
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

from headrace.control.books import Books
from headrace.control.catalogue import CatalogueSource
from headrace.control.telling import Telling
from headrace.link.channel import adopted
from headrace.link.messages import ControlBoot, Ready, Unable
from headrace.link.orders import Order, Orders
from headrace.link.sealed_file import SealedFileError
from headrace.link.server import LinkServer
from headrace.link.snapshot import SNAPSHOT_FILE, Kept
from headrace.model.catalogue import StoredObject
from headrace.model.settings import Settings

POLL_S: Final = 2.0
YOUNG: Final = 50_000
"""New objects until the collector looks at them."""
DATABASE_S: Final = 5.0
"""So long a start waits for the database before it goes on with what that had before."""
LAST_S: Final = 15.0
"""Beyond server.drain: the time that workers take to end what still runs then."""
COVER_S: Final = 2.0
"""So long a catalogue with a new budget waits to hear what was spent of it."""
FAILED: Final = 1


class Publisher:
    """Brings what is served to the disk and to the workers: one change after the other."""

    def __init__(self, boot: ControlBoot, source: CatalogueSource, link: LinkServer, telling: Telling) -> None:
        self.source = source
        self._boot = boot
        self._link = link
        self._telling = telling
        self._turn = asyncio.Lock()

    async def read(self) -> None:
        """The file may be another."""
        async with self._turn:
            if await self.source.read():
                await self._publish()

    async def take(self, objects: tuple[StoredObject, ...]) -> None:
        """The database has other objects."""
        async with self._turn:
            if await self.source.take(objects):
                await self._publish()
            else:
                _keep(self._boot, self.source)  # shadowed ones are kept, too

    async def doubt(self) -> None:
        """The database does not tell its objects."""
        async with self._turn:
            if self.source.doubt():
                await self._publish()

    async def _publish(self) -> None:
        snapshot = self.source.snapshot
        assert snapshot is not None
        await self._telling.cover(snapshot.parts, COVER_S)
        _keep(self._boot, self.source)
        self._link.publish(snapshot)


class Process:
    """The control process. Must be made within a running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._asked = asyncio.Event()
        """A reload is wanted."""
        self._ended = asyncio.Event()
        self._orders = Orders(ControlBoot, self._ended.set, self._asked.set)

    async def run(self, pipe: socket.socket) -> int:
        """Work until an order ends it; the exit code."""
        self._loop.add_signal_handler(signal.SIGHUP, self._asked.set)
        await self._orders.open(pipe)
        try:
            boot = await self._orders.unless_ordered(self._orders.boot)
            if boot is None and self._orders.boot.done() and not self._orders.is_over:
                boot = self._orders.boot.result()  # a drain as it begins: what is in the journals is taken all the same
            return 0 if boot is None else await self._work(boot)
        finally:
            self._orders.close()

    async def _work(self, boot: ControlBoot) -> int:
        books = Books(boot.state, say, may_migrate=boot.migrate)
        books.start()
        try:
            return await self._serve(boot, books)
        finally:
            await books.close()

    async def _serve(self, boot: ControlBoot, books: Books) -> int:
        kept = _read_kept(boot)
        told = await books.first_objects(DATABASE_S)
        found = told if told is not None else kept.objects if kept is not None else ()
        if told is None:
            say(f"the database does not answer; it is served with the {len(found)} objects that it had before")
        before = kept.snapshot if kept is not None else None
        settings = Settings(boot.server, boot.state)
        source = CatalogueSource(Path(boot.config), settings, found, before, say, objects_are_known=told is not None)
        await source.read()
        if source.snapshot is None:
            self._orders.send(Unable(reason="the file is bad, and there is no snapshot from before"))
            return FAILED
        telling = books.telling
        await telling.cover(source.snapshot.parts, DATABASE_S if told is not None else 0.0)
        if kept is None or (kept.snapshot, kept.objects) != (source.snapshot, source.objects):
            _keep(boot, source)
        link = LinkServer(source.snapshot, say, telling.greeting, books.answer)
        telling.start(link.tell)
        await link.start(adopted(boot.link))
        self._orders.send(Ready())
        # What is here stays. Of a batch's many small objects most live until it is taken: with the usual threshold
        # looking through them again and again is half of what decoding costs.
        gc.collect()
        gc.freeze()
        gc.set_threshold(YOUNG)
        publisher = Publisher(boot, source, link, telling)
        books.follow(publisher.take, publisher.doubt)
        watching = self._loop.create_task(self._watch(publisher))
        try:
            order = await self._orders.order
        finally:
            watching.cancel()
            link.close()
        if not self._ended.is_set():
            await self._unless_ended(books.drain(boot.server.drain + LAST_S, orphans=order is Order.ORPHANED))
        return 0

    async def _watch(self, publisher: Publisher) -> None:
        """Publish what the file says whenever it says something else."""
        while True:
            try:
                await asyncio.wait_for(self._asked.wait(), POLL_S)
                self._asked.clear()
            except TimeoutError:
                if not publisher.source.has_changed():
                    continue
            await publisher.read()

    async def _unless_ended(self, draining: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(draining)
        ended = self._loop.create_task(self._ended.wait())
        try:
            await asyncio.wait((task, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in (task, ended):
                one.cancel()
            await asyncio.gather(task, ended, return_exceptions=True)


def say(line: str) -> None:
    """A line for the operator."""
    sys.stderr.write(f"control: {line}\n")


def _read_kept(boot: ControlBoot) -> Kept | None:
    try:
        return SNAPSHOT_FILE.read(Path(boot.state.directory), boot.state.secret)
    except SealedFileError as error:
        say(str(error))
        return None


def _keep(boot: ControlBoot, source: CatalogueSource) -> None:
    """On the disk first, then for workers. Where the disk cannot take it, those that run have it all the same."""
    assert source.snapshot is not None
    try:
        kept = Kept(snapshot=source.snapshot, objects=source.objects)
        SNAPSHOT_FILE.write(Path(boot.state.directory), boot.state.secret, kept)
    except OSError as error:
        say(f"the snapshot cannot be written: {error.strerror}; workers that start now need this process")


async def serve(descriptor: int) -> int:
    """Be the child whose pair is `descriptor`."""
    return await Process().run(adopted(descriptor))
