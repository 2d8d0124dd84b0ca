"""The composition root of the control process: its boot, its order of work, and its end.

BOOTING ──ControlBoot──▶ READING ──snapshot written──▶ READY ──an order──▶ LEAVING ──▶ exit 0
                         (the file; without a good one the snapshot from before)
READY: the file every 2 s and at Reload; workers at the link; their records into the database
LEAVING: Drain or SIGTERM; the end of the pipe: the supervisor is gone. End: at once
"""

import asyncio
import signal
import socket
import sys
from enum import Enum, auto
from pathlib import Path
from typing import Final

import msgspec

from headrace.control.catalogue import CatalogueSource
from headrace.link.channel import Channel, adopted
from headrace.link.messages import ControlBoot, Drain, End, FromSupervisor, Ready, Reload, Unable
from headrace.link.server import LinkServer
from headrace.link.snapshot import Kept, SnapshotError, read, write
from headrace.model.settings import Settings

POLL_S: Final = 2.0
FAILED: Final = 1
_DECODER: Final = msgspec.msgpack.Decoder(FromSupervisor)


class Order(Enum):
    """Why it leaves."""

    DRAIN = auto()
    ORPHANED = auto()
    END = auto()


class Process:
    """The control process. Must be made within a running loop."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._loop = loop
        self._boot: asyncio.Future[ControlBoot] = loop.create_future()
        self._order: asyncio.Future[Order] = loop.create_future()
        self._asked = asyncio.Event()
        """A reload is wanted."""
        self._channel: Channel[FromSupervisor] = Channel(
            _DECODER, self._take, lambda reason: self._leave(Order.ORPHANED)
        )

    async def run(self, pipe: socket.socket) -> int:
        """Work until an order ends it; the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._leave, Order.DRAIN)
        self._loop.add_signal_handler(signal.SIGHUP, self._asked.set)
        await self._loop.create_unix_connection(lambda: self._channel, sock=pipe)
        try:
            await asyncio.wait((self._boot, self._order), return_when=asyncio.FIRST_COMPLETED)
            return 0 if self._order.done() else await self._work(self._boot.result())
        finally:
            self._channel.close()

    async def _work(self, boot: ControlBoot) -> int:
        kept = _read_kept(boot)
        source = CatalogueSource(
            Path(boot.config),
            Settings(boot.server, boot.state),
            kept.objects if kept is not None else (),
            kept.snapshot if kept is not None else None,
            say,
        )
        await source.read()
        if source.snapshot is None:
            self._channel.send(Unable(reason="the file is bad, and there is no snapshot from before"))
            return FAILED
        if kept is None or kept.snapshot is not source.snapshot:
            _keep(boot, source)
        link = LinkServer(source.snapshot, say)
        await link.start(adopted(boot.link))
        self._channel.send(Ready())
        watching = self._loop.create_task(self._watch(boot, source, link))
        try:
            await self._order
        finally:
            watching.cancel()
            link.close()
        return 0

    async def _watch(self, boot: ControlBoot, source: CatalogueSource, link: LinkServer) -> None:
        """Publish what the file says whenever it says something else."""
        while True:
            try:
                await asyncio.wait_for(self._asked.wait(), POLL_S)
            except TimeoutError:
                if not source.has_changed():
                    continue
            self._asked.clear()
            if await source.read() and source.snapshot is not None:
                _keep(boot, source)
                link.publish(source.snapshot)

    # ---- orders

    def _take(self, message: FromSupervisor) -> None:
        match message:
            case ControlBoot():
                if not self._boot.done():
                    self._boot.set_result(message)
            case Reload():
                self._asked.set()
            case Drain():
                self._leave(Order.DRAIN)
            case End():
                self._leave(Order.END)
            case _:
                pass  # a worker's

    def _leave(self, order: Order) -> None:
        if not self._order.done():
            self._order.set_result(order)


def say(line: str) -> None:
    """A line for the operator."""
    sys.stderr.write(f"control: {line}\n")


def _read_kept(boot: ControlBoot) -> Kept | None:
    try:
        return read(Path(boot.state.directory), boot.state.secret)
    except SnapshotError as error:
        say(str(error))
        return None


def _keep(boot: ControlBoot, source: CatalogueSource) -> None:
    """On the disk first, then for workers. Where the disk cannot take it, those that run have it all the same."""
    assert source.snapshot is not None
    try:
        write(Path(boot.state.directory), boot.state.secret, Kept(snapshot=source.snapshot, objects=source.objects))
    except OSError as error:
        say(f"the snapshot cannot be written: {error.strerror}; workers that start now need this process")


async def serve(descriptor: int) -> int:
    """Be the child whose pair is `descriptor`."""
    return await Process().run(adopted(descriptor))
