"""Keeps the last N records, and fills one in while its exchange runs."""

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Callable

from headrace.simulator.recorded import End, Recorded
from headrace.simulator.request import Request
from headrace.simulator.timeline import Step

BODY_KEPT = 1 << 20
SENT_KEPT = 64 << 10


class Recorder:
    """The bounded list of records, oldest first."""

    def __init__(self, most: int) -> None:
        self._kept: deque[Recorded] = deque(maxlen=most)
        self._number = 0
        self._open = 0
        self._idle: list[asyncio.Future[None]] = []

    @property
    def requests(self) -> list[Recorded]:
        return list(self._kept)

    def clear(self) -> None:
        self._kept.clear()

    def begin(self, connection: int) -> "Recording":
        self._number += 1
        self._open += 1
        record = Recorded(self._number, connection, started_at=time.time())
        self._kept.append(record)
        return Recording(record, self._ended)

    def _ended(self) -> None:
        self._open -= 1
        if not self._open:
            waiting, self._idle = self._idle, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    async def idle(self) -> None:
        """Returns when no exchange is open."""
        if self._open:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(future)
            await future


class Recording:
    """One open record; `clock` is monotonic."""

    def __init__(self, record: Recorded, on_end: Callable[[], None]) -> None:
        self.record = record
        self._on_end = on_end
        self._start = time.monotonic()
        self._body = hashlib.sha256()
        self._sent = hashlib.sha256()
        self._kept = bytearray()

    def _since(self) -> float:
        return time.monotonic() - self._start

    def head(self, request: Request) -> None:
        record = self.record
        record.method, record.target, record.headers = request.method, request.target, request.headers
        record.credential = request.credential

    def body(self, part: bytes) -> None:
        """Called per part, so that a body that never ends is seen as well."""
        record = self.record
        self._body.update(part)
        if record.body_length < BODY_KEPT:
            record.body += part[: BODY_KEPT - record.body_length]
        record.body_length += len(part)

    def received(self) -> None:
        self.record.received_s = self._since()
        self.record.body_sha256 = self._body.hexdigest()

    def head_sent(self, status: int) -> None:
        self.record.status = status
        self.record.head_sent_s = self._since()

    def wrote(self, step: Step) -> None:
        """A step's bytes are in the transport."""
        record = self.record
        now = self._since()
        if step.events and not record.events_written:
            record.first_event_s = now
        record.events_written += step.events
        record.bytes_written += len(step.data)
        record.last_write_s = now
        record.truth.sent = step.tokens or record.truth.sent
        self._sent.update(step.data)
        if len(self._kept) < SENT_KEPT:
            self._kept += step.data[: SENT_KEPT - len(self._kept)]

    def end(self, end: End, *, write_failed: bool = False) -> None:
        """The first end wins."""
        record = self.record
        if record.end is not End.OPEN:
            return
        record.end = end
        record.ended_s = self._since()
        record.sent, record.sent_sha256 = bytes(self._kept), self._sent.hexdigest()
        if end is End.CLIENT_CLOSED:
            record.closed_early_s = record.ended_s
            record.write_failed = write_failed
        self._on_end()
