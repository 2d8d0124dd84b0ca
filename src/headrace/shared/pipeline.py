"""One connection to Valkey: what is asked within a turn of the loop leaves in one write, and replies come in order.

hiredis packs and parses, in C. A whole client's cost per command is several times that of the rest (see
docs/decisions/0001-dependencies.md); what remains of one here is this file.

A command that is not answered within `timeout_s` makes the connection a slow one: whoever waits is told now, and hears
once more should a reply still come. When all have come it is as before. One that stays slow for `patience_s` is ended:
a frozen server is no better than a dead one, and what it may still do with the commands of an ended session counts no
more (`lua/enter.lua`).
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

import hiredis

from headrace.shared.address import ValkeyAddress

Reply = int | bytes | list["Reply"] | None
Answer = Callable[[Reply | Exception], None]
"""Takes the reply, a `hiredis.ReplyError`, or a `ConnectionError`; or first a `TimeoutError` and later one of these. It
does not raise."""

_LATE = 0.25
"""A timer that is late by this part of the time limit tells of a busy loop: replies may lie there unread."""


class Watcher(Protocol):
    """Who keeps a connection."""

    def lost(self, reason: str) -> None:
        """It has ended by itself; called once."""

    def slow(self) -> None:
        """It has become slow."""

    def caught_up(self) -> None:
        """It is not slow any more."""


class Pipeline(asyncio.Protocol):
    """See above."""

    def __init__(self, patience_s: float, watcher: Watcher) -> None:
        self.timeout_s = patience_s
        """For a command to be answered; it counts from the next command on."""
        self._loop = asyncio.get_running_loop()
        self._patience_s = patience_s
        self._watcher = watcher
        self._reader = hiredis.Reader()
        self._transport: asyncio.Transport | None = None
        self._waiting: list[bytes] = []
        self._asked: deque[tuple[float, Answer]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._is_slow = False

    def send(self, command: tuple[str | int, ...], answer: Answer) -> None:
        """Ask; `answer` is called with the reply, or at once if the connection has ended."""
        if self._transport is None:
            answer(ConnectionResetError("the connection has ended"))
            return
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(hiredis.pack_command(command))  # type: ignore[arg-type]  # its stub takes one word
        now = self._loop.time()
        self._asked.append((now, answer))
        if self._timer is None or self._due > now + self.timeout_s:
            self._set_timer(now + self.timeout_s)

    def ask(self, *command: str | int) -> "asyncio.Future[Reply]":
        """The reply; its exception may be a `ConnectionError` or a `hiredis.ReplyError`."""
        future: asyncio.Future[Reply] = self._loop.create_future()

        def answer(reply: Reply | Exception) -> None:
            if future.done():
                return
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)

        self.send(command, answer)
        return future

    def abort(self, reason: str) -> None:
        """End it at once, as if it had ended by itself."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
            self._watcher.lost(reason)  # first, so that nobody who is told of it asks here again
            self._give_up(reason)

    def close(self) -> None:
        """End it, behind what has been asked; nobody is told, and no reply is waited for."""
        self._flush()
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
            self._give_up("the connection has been closed")

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        try:
            self._reader.feed(data)
            while self._asked and (reply := self._reader.gets()) is not False:
                self._asked.popleft()[1](reply)
            if self._is_slow and not self._asked and self._transport is not None:
                self._is_slow = False
                self._watcher.caught_up()
        except hiredis.ProtocolError:
            self.abort("it does not speak Valkey's protocol")

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self.abort("it closed the connection")

    # ---- parts

    def _flush(self) -> None:
        if self._waiting and self._transport is not None:
            self._transport.write(b"".join(self._waiting))
        self._waiting.clear()

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due = due
        self._timer = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        """Whether the oldest command has waited for too long."""
        self._timer = None
        if not self._asked:
            return
        now, limit_s = self._loop.time(), self._patience_s if self._is_slow else self.timeout_s
        if now < self._asked[0][0] + limit_s:
            self._set_timer(self._asked[0][0] + limit_s)
        elif now - self._due > self.timeout_s * _LATE:
            self._set_timer(now + self.timeout_s * _LATE)
        elif self._is_slow or self.timeout_s >= self._patience_s:
            self.abort("it does not answer")
        else:
            self._is_slow = True
            self._set_timer(self._asked[0][0] + self._patience_s)
            self._watcher.slow()
            for _, answer in tuple(self._asked):
                answer(TimeoutError("no answer yet"))

    def _give_up(self, reason: str) -> None:
        """Nothing that was asked will be answered."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._waiting.clear()
        asked, self._asked = self._asked, deque()
        for _, answer in asked:
            answer(ConnectionResetError(reason))


async def connect(address: ValkeyAddress, patience_s: float, watcher: Watcher) -> Pipeline:
    """A connection that has just been made, with `patience_s` as its `timeout_s`; the user is still to be told.
    Raises OSError."""
    context = ssl.create_default_context() if address.tls else None
    _, pipeline = await asyncio.get_running_loop().create_connection(
        lambda: Pipeline(patience_s, watcher), address.host, address.port, ssl=context
    )
    return pipeline


def text_from_reply(reply: Reply) -> str:
    """Text, or the digits of a number that Lua could not hold; empty for nothing."""
    return reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""


def number_from_reply(reply: Reply) -> int:
    """A number, however it came; 0 for nothing."""
    return reply if isinstance(reply, int) else int(text_from_reply(reply) or 0)


def spent_from_reply(reply: list[Reply], at: int) -> int:
    """What of a purse is not held, from what is used in all, at `at`, and what is held, behind it."""
    return number_from_reply(reply[at]) - number_from_reply(reply[at + 1])
