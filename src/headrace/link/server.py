"""The control process's end of the link: which workers there are, how they are, and the snapshot for each of them."""

import asyncio
import socket
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

from headrace.link.channel import Channel
from headrace.link.frame import frame
from headrace.link.messages import Catalogue, FromWorker, Gauges, Hello, OpenStream, OpenStreams, Snapshot, Stop

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


class LinkServer:
    """Serves workers. `snapshot` is what each of them is to have; `report` says a line to the operator."""

    def __init__(self, snapshot: Snapshot, report: Callable[[str], None]) -> None:
        self._snapshot = snapshot
        self._report = report
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
        data = frame(Catalogue(snapshot=snapshot))
        for peer in self.peers:
            peer.channel.send_frame(data)

    def stop(self, id: str) -> None:
        """End an exchange, wherever it runs."""
        for peer in self.peers:
            peer.channel.send(Stop(id=id))

    def close(self) -> None:
        """Accept nobody any more, and let go of all."""
        if self._server is not None:
            self._server.close()
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
            peer.hello = message
            if message.snapshot != self._snapshot.version:
                peer.channel.send(Catalogue(snapshot=self._snapshot))
        else:
            peer.take(message)

    def _lost(self, peer: Peer, reason: str) -> None:
        self._peers.discard(peer)
        if reason and peer.hello is not None:
            self._report(f"the link to worker {peer.hello.slot} (pid {peer.hello.pid}) broke: {reason}")
