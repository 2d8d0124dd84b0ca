"""The supervisor's pair as its child has it: the boot, and the first order to leave.

BOOTING ──boot──▶ WORKING ──an order──▶ LEAVING
Drain, SIGTERM, SIGINT: DRAIN · Drain(replaced): REPLACED · the end of the pair: ORPHANED, the supervisor is gone
in any: End, or a signal while LEAVING: all is to end at once
"""

import asyncio
import signal
import socket
from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Generic, TypeVar

import msgspec

from headrace.link.channel import Channel
from headrace.link.messages import ControlBoot, Drain, End, FromSupervisor, Reload, WorkerBoot

B = TypeVar("B", WorkerBoot, ControlBoot)
T = TypeVar("T")
_DECODER: Final = msgspec.msgpack.Decoder(FromSupervisor)


class Order(Enum):
    """Why a child leaves."""

    DRAIN = auto()
    REPLACED = auto()
    """A successor has the sockets."""
    ORPHANED = auto()


def _nothing() -> None:
    """What a child does that has no use for the word."""


class Orders(Generic[B]):
    """What one child is told. `on_end` is called when all is to end at once, `on_reload` when the file is to be read.

    Must be made within a running loop.
    """

    def __init__(self, boot: type[B], on_end: Callable[[], None], on_reload: Callable[[], None] = _nothing) -> None:
        self._loop = asyncio.get_running_loop()
        self._kind: type[B] = boot
        self._on_end = on_end
        self._on_reload = on_reload
        self.boot: asyncio.Future[B] = self._loop.create_future()
        self.order: asyncio.Future[Order] = self._loop.create_future()
        self.is_over = False
        """Whether all is to end at once."""
        self._channel: Channel[FromSupervisor] = Channel(
            _DECODER, self._take, lambda reason: self._leave(Order.ORPHANED)
        )

    async def open(self, pipe: socket.socket) -> None:
        """Begin to listen to the pair, and to signals."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._terminated)
        await self._loop.create_unix_connection(lambda: self._channel, sock=pipe)

    def send(self, message: object) -> None:
        """Say something to the supervisor."""
        self._channel.send(message)

    def close(self) -> None:
        """Let go of the pair."""
        self._channel.close()

    async def unless_ordered(self, wanted: asyncio.Future[T]) -> T | None:
        """What is wanted; None where an order comes first."""
        await asyncio.wait((wanted, self.order), return_when=asyncio.FIRST_COMPLETED)
        return None if self.order.done() else wanted.result()

    def _take(self, message: FromSupervisor) -> None:
        if isinstance(message, self._kind):
            if not self.boot.done():
                self.boot.set_result(message)
        elif isinstance(message, Drain):
            self._leave(Order.REPLACED if message.replaced else Order.DRAIN)
        elif isinstance(message, End):
            self._end()
        elif isinstance(message, Reload):
            self._on_reload()

    def _terminated(self) -> None:
        if self.order.done():
            self._end()
        else:
            self._leave(Order.DRAIN)

    def _end(self) -> None:
        self.is_over = True
        self._on_end()
        self._leave(Order.DRAIN)

    def _leave(self, order: Order) -> None:
        if not self.order.done():
            self.order.set_result(order)
