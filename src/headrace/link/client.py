"""A worker's end of the link: connects for ever, says who it is, takes what the control process has for it.

    AWAY ──connected──▶ OPEN ──closed──▶ AWAY (tries again after 0.1 s, doubling to 2 s)

Nothing on the line waits for it. While no control process accepts, a connection waits in the socket's queue with the
worker's first word in it. A question is asked again on each connection until it is answered, or given up.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from headrace.link.address import connect
from headrace.link.channel import Channel
from headrace.link.messages import AskSpent, Hello, SpentAnswer, ToWorker
from headrace.model.allowance import Spent

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0
MOST_UNSENT: Final = 1024 * 1024
"""Bytes that wait for a control process that does not read; gauges beyond are left out, for newer ones will come."""
ASK_S: Final = 4.0
"""So long an answer is waited for: the control process may be starting."""

_DECODER: Final = msgspec.msgpack.Decoder(ToWorker)


class LinkClient:
    """`hello` makes the first word of each connection; `on_message` has what comes."""

    def __init__(self, directory: Path, hello: Callable[[], Hello], on_message: Callable[[ToWorker], None]) -> None:
        self._directory = directory
        self._hello = hello
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        self._channel: Channel[ToWorker] | None = None
        self._pause_s = FIRST_PAUSE_S
        self._timer: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[None] | None = None
        self._closed = False
        self._asked: dict[int, tuple[AskSpent, asyncio.Future[tuple[Spent, ...] | None]]] = {}
        """What waits for an answer, by its number."""
        self._questions = 0

    @property
    def is_open(self) -> bool:
        """Whether there is a connection; somebody may read it later only."""
        return self._channel is not None and self._channel.is_open

    def start(self) -> None:
        """Begin to connect."""
        self._opening = self._loop.create_task(self._open())

    def send(self, message: object) -> None:
        """Send what may be lost: it is dropped while there is no connection, or nobody reads it."""
        channel = self._channel
        if channel is not None and channel.unsent < MOST_UNSENT:
            channel.send(message)

    def post(self, message: object) -> None:
        """Send what may not be left out while there is a connection. Its end is known, and all is said again then."""
        if self._channel is not None:
            self._channel.send(message)

    async def ask_spent(self, purses: Sequence[str], most_s: float = ASK_S) -> tuple[Spent, ...] | None:
        """What was spent of these, with all that this node's journals hold when the question arrives. None where nobody
        tells it within so many seconds."""
        self._questions += 1
        question = AskSpent(number=self._questions, purses=tuple(purses))
        answer: asyncio.Future[tuple[Spent, ...] | None] = self._loop.create_future()
        self._asked[question.number] = (question, answer)
        self.send(question)
        try:
            async with asyncio.timeout(most_s):
                return await answer
        except TimeoutError:
            return None
        finally:
            del self._asked[question.number]

    def close(self) -> None:
        """End the connection, and the attempts."""
        self._closed = True
        for pending in (self._timer, self._opening):
            if pending is not None:
                pending.cancel()
        if self._channel is not None:
            self._channel.close()

    async def _open(self) -> None:
        self._timer = None
        channel: Channel[ToWorker] = Channel(_DECODER, self._take, self._lost)
        try:
            sock = connect(self._directory)
        except OSError:
            self._retry()
            return
        self._channel = channel
        try:
            await self._loop.create_unix_connection(lambda: channel, sock=sock)
        except asyncio.CancelledError:
            sock.close()
            raise
        channel.send(self._hello())
        for question, _ in self._asked.values():
            channel.send(question)

    def _take(self, message: ToWorker) -> None:
        self._pause_s = FIRST_PAUSE_S  # somebody answers
        if not isinstance(message, SpentAnswer):
            self._on_message(message)
        elif (asked := self._asked.get(message.number)) is not None and not asked[1].done():
            asked[1].set_result(message.spent)

    def _lost(self, reason: str) -> None:
        self._channel = None
        self._retry()

    def _retry(self) -> None:
        if self._closed:
            return
        self._timer = self._loop.call_later(self._pause_s, self.start)
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
