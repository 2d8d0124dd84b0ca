"""A connection between two processes: messages both ways, and each end hears once of the end."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from headrace.link.channel import Channel, adopted
from headrace.link.messages import Drain, FromSupervisor, Ready, Reload, ToSupervisor


class Heard:
    """What one end hears."""

    def __init__(self) -> None:
        self.messages: list[object] = []
        self.ends: list[str] = []
        self.something = asyncio.Event()

    def take(self, message: object) -> None:
        self.messages.append(message)
        self.something.set()

    def closed(self, reason: str) -> None:
        self.ends.append(reason)
        self.something.set()

    async def next(self) -> None:
        await asyncio.wait_for(self.something.wait(), 10)
        self.something.clear()


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[Channel[FromSupervisor], Heard, Channel[ToSupervisor], Heard]]:
    loop = asyncio.get_running_loop()
    one, other = socket.socketpair()
    heard_child, heard_parent = Heard(), Heard()
    child: Channel[FromSupervisor] = Channel(
        msgspec.msgpack.Decoder(FromSupervisor), heard_child.take, heard_child.closed
    )
    parent: Channel[ToSupervisor] = Channel(
        msgspec.msgpack.Decoder(ToSupervisor), heard_parent.take, heard_parent.closed
    )
    for channel, sock in ((child, one), (parent, other)):
        sock.setblocking(False)
        await loop.create_unix_connection(lambda channel=channel: channel, sock=sock)  # type: ignore[misc]
    try:
        yield child, heard_child, parent, heard_parent
    finally:
        for each in (child, parent):
            each.abort()
        await asyncio.sleep(0)


async def test_messages_go_both_ways() -> None:
    async with pair() as (child, heard_child, parent, heard_parent):
        parent.send(Reload())
        parent.send(Drain())
        child.send(Ready())
        await heard_child.next()
        await heard_parent.next()
        assert (heard_child.messages, heard_parent.messages) == ([Reload(), Drain()], [Ready()])


async def test_the_end_is_heard_once_and_behind_what_was_sent() -> None:
    async with pair() as (child, heard_child, parent, heard_parent):
        parent.send(Drain())
        parent.close()
        while not heard_child.ends:
            await heard_child.next()
        assert (heard_child.messages, heard_child.ends) == ([Drain()], [""])
        assert not child.is_open
        child.send(Ready())  # nobody is there; no error
        assert child.unsent == 0
        assert heard_parent.ends == [""]


async def test_what_is_no_message_closes_it_with_a_reason() -> None:
    async with pair() as (_, heard_child, parent, heard_parent):
        parent.send(Ready())  # which is no message of a supervisor
        await heard_child.next()
        await heard_parent.next()
        assert len(heard_child.ends) == len(heard_parent.ends) == 1
        assert "no message that is known" in heard_child.ends[0]
        assert not heard_child.messages


def test_an_adopted_socket_goes_no_further_and_does_not_block() -> None:
    one, other = socket.socketpair()
    with one, other:
        os.set_inheritable(one.fileno(), True)
        with adopted(os.dup(one.fileno())) as taken:
            assert not os.get_inheritable(taken.fileno())
            assert not taken.getblocking()
            other.send(b"x")
            assert taken.recv(1) == b"x"


def test_a_descriptor_that_is_none_is_an_error() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        adopted(9999)
