"""The control process's end of the link: which workers there are, how they are, and what each of them is told.

A worker's first word is answered with what the ledger tells, then with the snapshot: so whatever a catalogue has a
budget for, its worker knows what was spent of it.

Of two workers in a slot the older one is asked to hand over what it holds, and what it says goes on to the younger.
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
from headrace.model.succession import Given, Gone, HandOver, Held, Released, Succeeding

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

    def is_older(self, other: "Peer") -> bool:
        """Whether the other one takes its place: it is younger, in the same slot, and both count limits themselves."""
        one, two = self.hello, other.hello
        if one is None or two is None or not (one.hands_over and two.hands_over):
            return False
        return one.slot == two.slot and "" < one.incarnation < two.incarnation

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
        elif isinstance(message, Held | Given | Released):
            self._pass_on(peer, message)
        elif isinstance(message, AskSpent):
            task = asyncio.get_running_loop().create_task(self._reply(peer, message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        else:
            peer.take(message)

    def _greet(self, peer: Peer, hello: Hello) -> None:
        """A worker says who it is; once more when its journal has a name."""
        before, peer.hello = peer.hello, hello
        if before is None:
            for word in self._greeting():
                peer.channel.send(word)
        if hello.snapshot != self._snapshot.version:
            peer.channel.send(Catalogue(snapshot=self._snapshot))
        if before is None or before.incarnation != hello.incarnation:
            for elder in self._peers:
                if elder.is_older(peer):
                    elder.channel.send(HandOver())
            if any(peer.is_older(other) for other in self._peers):
                peer.channel.send(HandOver())

    def _pass_on(self, peer: Peer, message: Succeeding | Gone) -> None:
        """To those who take the worker's place."""
        data = frame(message)
        for other in self._peers:
            if peer.is_older(other):
                other.channel.send_frame(data)

    async def _reply(self, peer: Peer, question: AskSpent) -> None:
        peer.channel.send(await self._answer(question))

    def _lost(self, peer: Peer, reason: str) -> None:
        self._peers.discard(peer)
        if peer.hello is not None:
            self._pass_on(peer, Gone(incarnation=peer.hello.incarnation))
            for elder in self._peers:
                if elder.is_older(peer) and not any(elder.is_older(other) for other in self._peers):
                    elder.channel.send(HandOver(wanted=False))
        if reason and peer.hello is not None:
            self._report(f"the link to worker {peer.hello.slot} (pid {peer.hello.pid}) broke: {reason}")
