"""The control process's end of the link: which workers there are, how they are, and what each of them is told.

A worker's first word is answered with what the ledger tells, then with the snapshot: so whatever a catalogue has a
budget for, its worker knows what was spent of it.
"""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from headrace.link.channel import Channel
from headrace.link.frame import frame
from headrace.link.messages import (
    AskSpent,
    Catalogue,
    FromWorker,
    Gauges,
    Hello,
    OpenStream,
    OpenStreams,
    Snapshot,
    SpentAnswer,
    Stop,
)

KEEP_FILE: Final[dict[str, Any]] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
"""The socket's file is the supervisor's: the next control process has the same socket."""

_DECODER: Final = msgspec.msgpack.Decoder(FromWorker)


class Peer:
    """A worker, as its own words tell."""

    __slots__ = ("_round", "channel", "gauges", "hello", "streams")

    def __init__(self) -> None:
        self.channel: Channel[FromWorker]
        self.hello: Hello | None = None
        """None until its first word."""
        self.gauges: Gauges | None = None
        self.streams: tuple[OpenStream, ...] = ()
        """Its running exchanges, as of the last whole round."""
        self._round: list[OpenStream] = []

    def take(self, message: Gauges | OpenStreams) -> None:
        """Keep what it says of itself."""
        if isinstance(message, Gauges):
            self.gauges = message
            return
        if message.first:
            self._round = []
        self._round += message.streams
        if message.last:
            self.streams, self._round = tuple(self._round), []


async def _unknown(question: AskSpent) -> SpentAnswer:
    """Where nobody knows."""
    return SpentAnswer(number=question.number, spent=None)


class LinkServer:
    """Serves workers. `snapshot` is what each of them is to have; `report` says a line to the operator.

    `greeting` makes what a worker hears before the snapshot; `answer` answers questions, and raises nothing.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        report: Callable[[str], None],
        greeting: Callable[[], Sequence[object]] = tuple,
        answer: Callable[[AskSpent], Awaitable[SpentAnswer]] = _unknown,
    ) -> None:
        self._snapshot = snapshot
        self._report = report
        self._greeting = greeting
        self._answer = answer
        self._answering: set[asyncio.Task[None]] = set()
        self._peers: set[Peer] = set()
        self._server: asyncio.AbstractServer | None = None

    @property
    def peers(self) -> tuple[Peer, ...]:
        """The workers that have said who they are."""
        return tuple(peer for peer in self._peers if peer.hello is not None)

    async def start(self, listener: socket.socket) -> None:
        """Accept workers on a socket that listens already."""
        self._server = await asyncio.get_running_loop().create_unix_server(self._accept, sock=listener, **KEEP_FILE)

    def publish(self, snapshot: Snapshot) -> None:
        """A new snapshot, for those that are here and those that come."""
        self._snapshot = snapshot
        self.tell(Catalogue(snapshot=snapshot))

    def stop(self, id: str) -> None:
        """End an exchange, wherever it runs."""
        self.tell(Stop(id=id))

    def tell(self, message: object) -> None:
        """Say something to every worker that is here."""
        data = frame(message)
        for peer in self.peers:
            peer.channel.send_frame(data)

    def close(self) -> None:
        """Accept nobody any more, and let go of all."""
        if self._server is not None:
            self._server.close()
        for task in self._answering:
            task.cancel()
        for peer in tuple(self._peers):
            peer.channel.abort()

    def _accept(self) -> Channel[FromWorker]:
        peer = Peer()
        peer.channel = Channel(
            _DECODER, lambda message: self._take(peer, message), lambda reason: self._lost(peer, reason)
        )
        self._peers.add(peer)
        return peer.channel

    def _take(self, peer: Peer, message: FromWorker) -> None:
        if isinstance(message, Hello):
            self._greet(peer, message)
        elif isinstance(message, AskSpent):
            task = asyncio.get_running_loop().create_task(self._reply(peer, message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        else:
            peer.take(message)

    def _greet(self, peer: Peer, hello: Hello) -> None:
        """A worker says who it is; once more when its journal has a name."""
        is_new, peer.hello = peer.hello is None, hello
        if is_new:
            for word in self._greeting():
                peer.channel.send(word)
        if hello.snapshot != self._snapshot.version:
            peer.channel.send(Catalogue(snapshot=self._snapshot))

    async def _reply(self, peer: Peer, question: AskSpent) -> None:
        peer.channel.send(await self._answer(question))

    def _lost(self, peer: Peer, reason: str) -> None:
        self._peers.discard(peer)
        if reason and peer.hello is not None:
            self._report(f"the link to worker {peer.hello.slot} (pid {peer.hello.pid}) broke: {reason}")
