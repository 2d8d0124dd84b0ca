"""One connection between two processes: messages both ways, and word of its end."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from headrace.link.frame import FrameError, Unframer, frame

M = TypeVar("M")


def adopted(descriptor: int) -> socket.socket:
    """An inherited socket: it does not block, and goes no further. Raises OSError where it is none."""
    os.set_inheritable(descriptor, False)
    sock = socket.socket(fileno=descriptor)
    sock.setblocking(False)
    return sock


class Channel(asyncio.Protocol, Generic[M]):
    """A protocol over a stream socket. `on_message` has each message in order, `on_closed` is called once, with the
    reason where it was not the other end's plain close."""

    def __init__(
        self,
        decoder: "msgspec.msgpack.Decoder[M]",
        on_message: Callable[[M], None],
        on_closed: Callable[[str], None],
    ) -> None:
        self._unframer: Unframer[M] = Unframer(decoder)
        self._on_message = on_message
        self._on_closed = on_closed
        self._transport: asyncio.Transport | None = None
        self._reason = ""

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def unsent(self) -> int:
        """Bytes that the other end has not taken yet."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def send(self, message: object) -> None:
        """Send a message; nothing happens where the connection is closed: `on_closed` tells of that."""
        self.send_frame(frame(message))

    def send_frame(self, data: bytes) -> None:
        """Send a message that is framed already: one for many."""
        if self._transport is not None and self.is_open:
            self._transport.write(data)

    def close(self) -> None:
        """Close it once what was sent has been taken."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        self._transport = transport  # type: ignore[assignment]  # of a stream socket

    def data_received(self, data: bytes) -> None:
        """Some bytes of messages."""
        try:
            messages = self._unframer.feed(data)
        except FrameError as error:
            self._reason = str(error)
            self.abort()
            return
        for message in messages:
            self._on_message(message)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed, by either end."""
        self._transport = None
        self._on_closed(self._reason or (str(exc) if exc is not None else ""))
