"""The composition root of the control process: its boot, its order of work, and its end.

BOOTING ──ControlBoot──▶ READING ──snapshot written──▶ READY ──an order──▶ LEAVING ──▶ exit 0
                         (the file; without a good one the snapshot from before)
READY: the file every 2 s and at Reload; workers at the link; their records into the database
LEAVING: Drain or SIGTERM; the end of the pipe: the supervisor is gone. End: at once
"""

import asyncio
import os
import signal
import socket
import sys
from enum import Enum, auto
from pathlib import Path
from typing import Final

import msgspec

from headrace.control.catalogue import CatalogueSource
from headrace.link import snapshot as disk
from headrace.link.channel import Channel
from headrace.link.messages import ControlBoot, Drain, End, FromSupervisor, Ready, Reload, Snapshot, Unable
from headrace.link.server import LinkServer

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
        self._kept: disk.Kept | None = None
        self._snapshot: Snapshot | None = None
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
        source = CatalogueSource(Path(boot.config), boot.server, boot.state, say)
        self._read_kept(boot)
        if await source.read():
            self._keep(boot, disk.snapshot_of(source.stream, source.parts, self._snapshot))
        if self._snapshot is None:
            self._channel.send(Unable(reason="there is no good file, and no snapshot from before"))
            return FAILED
        link = LinkServer(self._snapshot, say)
        await link.start(_adopted(boot.link))
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
            before = self._snapshot
            if await source.read():
                self._keep(boot, snapshot := disk.snapshot_of(source.stream, source.parts, before))
                if snapshot is not before:
                    link.publish(snapshot)

    # ---- the snapshot

    def _read_kept(self, boot: ControlBoot) -> None:
        try:
            self._kept = disk.read(Path(boot.state.directory), boot.state.secret)
        except disk.SnapshotError as error:
            say(str(error))
        if self._kept is not None:
            self._snapshot = self._kept.snapshot

    def _keep(self, boot: ControlBoot, snapshot: Snapshot) -> None:
        """On the disk first, then for workers. Where the disk cannot take it, those that run have it all the same."""
        self._snapshot = snapshot
        if self._kept is not None and self._kept.snapshot is snapshot:
            return
        kept = disk.Kept(snapshot=snapshot)
        try:
            disk.write(Path(boot.state.directory), boot.state.secret, kept)
        except OSError as error:
            say(f"the snapshot cannot be written: {error.strerror}; workers that start now need this process")
            return
        self._kept = kept

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


def _adopted(descriptor: int) -> socket.socket:
    """An inherited socket, which goes no further."""
    os.set_inheritable(descriptor, False)
    return socket.socket(fileno=descriptor)


async def serve(descriptor: int) -> int:
    """Be the child whose pair is `descriptor`."""
    pipe = _adopted(descriptor)
    pipe.setblocking(False)
    return await Process().run(pipe)
