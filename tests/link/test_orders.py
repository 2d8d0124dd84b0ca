"""What a child is told by its supervisor: the boot once, the first order, and the word to end at once."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from headrace.link.channel import Channel
from headrace.link.messages import ControlBoot, Drain, End, Ready, Reload, ToSupervisor, WorkerBoot
from headrace.link.orders import Order, Orders
from headrace.model.settings import ServerSettings, StateSettings

BOOT = WorkerBoot(node="n", slot=1, server=ServerSettings(), state=StateSettings(), listeners=(3,))
OTHER = ControlBoot(node="n", config="/c", server=ServerSettings(), state=StateSettings(), link=3)


class Supervisor:
    """The other end, and the calls that the child has had."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.heard: asyncio.Queue[ToSupervisor] = asyncio.Queue()
        self.over = asyncio.Event()
        self.orders = Orders(WorkerBoot, self._end, lambda: self.calls.append("reload"))
        self.channel: Channel[ToSupervisor] = Channel(
            msgspec.msgpack.Decoder(ToSupervisor), self.heard.put_nowait, lambda reason: None
        )

    def _end(self) -> None:
        self.calls.append("end")
        self.over.set()

    async def order(self) -> Order:
        return await asyncio.wait_for(asyncio.shield(self.orders.order), 10)

    async def heard_all(self) -> None:
        """The child has taken all that was sent: it answers what comes last."""
        self.orders.send(Ready())
        await asyncio.wait_for(self.heard.get(), 10)
        await asyncio.sleep(0.01)


@asynccontextmanager
async def paired() -> AsyncIterator[Supervisor]:
    ours, theirs = socket.socketpair()
    for one in (ours, theirs):
        one.setblocking(False)
    supervisor = Supervisor()
    await asyncio.get_running_loop().create_unix_connection(lambda: supervisor.channel, sock=ours)
    await supervisor.orders.open(theirs)
    try:
        yield supervisor
    finally:
        supervisor.orders.close()
        supervisor.channel.abort()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(number)
        await asyncio.sleep(0.001)


async def test_its_boot_is_the_first_of_its_kind() -> None:
    async with paired() as supervisor:
        for boot in (OTHER, BOOT, WorkerBoot(node="x", slot=2, server=BOOT.server, state=BOOT.state, listeners=())):
            supervisor.channel.send(boot)
        found = await supervisor.orders.unless_ordered(supervisor.orders.boot)
        assert found == BOOT
        await supervisor.heard_all()
        assert not supervisor.orders.order.done()


@pytest.mark.parametrize(
    ("message", "order"), [(Drain(), Order.DRAIN), (Drain(replaced=True), Order.REPLACED), (None, Order.ORPHANED)]
)
async def test_the_first_order_counts(message: object, order: Order) -> None:
    async with paired() as supervisor:
        if message is None:
            supervisor.channel.close()
        else:
            supervisor.channel.send(message)
            supervisor.channel.send(Drain(replaced=True))
        assert await supervisor.order() is order
        assert await supervisor.orders.unless_ordered(supervisor.orders.boot) is None
        assert (supervisor.calls, supervisor.orders.is_over) == ([], False)


async def test_the_end_comes_at_any_time_and_is_an_order_too() -> None:
    async with paired() as supervisor:
        supervisor.channel.send(Drain(replaced=True))
        supervisor.channel.send(End())
        assert await supervisor.order() is Order.REPLACED
        await supervisor.heard_all()
        assert (supervisor.calls, supervisor.orders.is_over) == (["end"], True)
    async with paired() as supervisor:
        supervisor.channel.send(End())
        assert await supervisor.order() is Order.DRAIN
        assert (supervisor.calls, supervisor.orders.is_over) == (["end"], True)


async def test_a_reload_is_passed_on_and_is_no_order() -> None:
    async with paired() as supervisor:
        supervisor.channel.send(Reload())
        supervisor.channel.send(Reload())
        supervisor.channel.send(Drain())
        await supervisor.order()
        assert supervisor.calls == ["reload", "reload"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_and_the_second_ends(number: signal.Signals) -> None:
    async with paired() as supervisor:
        os.kill(os.getpid(), number)
        assert await supervisor.order() is Order.DRAIN
        assert not supervisor.calls
        os.kill(os.getpid(), number)
        await asyncio.wait_for(supervisor.over.wait(), 10)
        assert supervisor.orders.is_over
