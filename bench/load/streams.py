"""The client's streams: N slots, each running one stream after another, every byte accounted for.

```
 ramp          warm-up      window                 churn                                end
 open slots    discarded    CPU, delays and gaps   slots restart: time to first event   last streams run out
```
The first stream of a slot lasts until the churn, so that the window holds nothing but events in the steady state. In
the churn each slot restarts once, evenly spread, while the others go on: a time to first event is one among N open
streams that live as long as the churn, so N starts in that time.
"""

import asyncio
import time
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import cast

from bench.load import measure
from bench.load.protocol import STAMP_DIGITS, Protocol

_GRACE_S = 20.0  # for the last streams to run out
_KEPT_UP = 0.97  # share of the due events that a window must have delivered


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """How many streams, how far apart their events are, and how long each phase takes."""

    streams: int
    pace_ms: float
    ramp_s: float
    warm_s: float
    window_s: float
    churn_s: float
    protocol: Protocol

    def first_events(self, slot: int) -> int:
        """Content events of a slot's first stream: the slots end evenly over the churn, in a scattered order."""
        opened_s = self.ramp_s * slot / self.streams
        ends_s = self.ramp_s + self.warm_s + self.window_s + self.churn_s * (slot * 7919 % self.streams) / self.streams
        return round((ends_s - opened_s) * 1000 / self.pace_ms)


class Book:
    """Counters and durations that all slots of a run write into."""

    def __init__(self, port: int, protocol: Protocol) -> None:
        self.port = port
        self.protocol = protocol
        self.events = 0
        self.received_bytes = 0
        self.complete = 0
        self.in_window = False
        self.in_churn = False
        self.churn_events = 0
        self.faults: Counter[str] = Counter()
        self.delays_ns = array("q")
        self.gaps_ns = array("q")
        self.firsts_ns = array("q")
        self.keepalives_ns = array("q")

    def sample(self, pids: list[int]) -> measure.Sample:
        """Counters and CPU clocks of this moment."""
        return measure.take_sample(pids, self.events, self.received_bytes)


class Slot(asyncio.Protocol):
    """One connection that carries one stream at a time; `over` resolves after its last."""

    def __init__(self, book: Book, loop: asyncio.AbstractEventLoop) -> None:
        self.over: asyncio.Future[None] = loop.create_future()
        self._book = book
        self._wanted = self._content = self._body_bytes = self._asked_ns = self._last_ns = 0
        self._in_body = False
        self._rest = self._tail = self._latest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("connection lost")

    def ask(self, events: int) -> None:
        """Start a stream of `events` content events; 0 is one event, then silence."""
        self._wanted = events
        self._content = self._body_bytes = self._last_ns = 0
        self._in_body = False
        self._rest = self._tail = self._latest = b""
        self._asked_ns = time.monotonic_ns()
        self._transport.write(self._book.protocol.request(self._book.port, events))

    def close(self) -> None:
        """Leave, whatever is open."""
        self._end(None)

    def data_received(self, data: bytes) -> None:
        now_ns = time.monotonic_ns()
        self._book.received_bytes += len(data)
        if self._rest:
            data = self._rest + data
        at, length = 0, len(data)
        if not self._in_body:
            at = data.find(b"\r\n\r\n") + 4
            if at < 4:
                self._rest = data
                return
            if not data.startswith(b"HTTP/1.1 200") or b"chunked" not in data[:at].lower():
                self._end("reply: " + data[: data.find(b"\r\n")].decode(errors="replace"))
                return
            self._in_body = True
        while at < length:
            line = data.find(b"\r\n", at)
            if line < 0:
                break
            end = line + 2 + int(data[at:line], 16)
            if end + 2 > length:
                break
            at = end + 2
            if end == line + 2:
                self._finish()
                return
            self._take(data[line + 2 : end], now_ns)
        self._rest = data[at:]

    def _take(self, payload: bytes, now_ns: int) -> None:
        """Count the events of one chunk; what it holds of an unfinished event waits for the next chunk."""
        book, mark, blank = self._book, self._book.protocol.mark, self._book.protocol.blank
        self._body_bytes += len(payload)
        if self._tail:
            payload = self._tail + payload
            self._tail = b""
        if not payload.endswith(blank):
            boundary = payload.rfind(blank) + len(blank)
            if boundary < len(blank):
                self._tail = payload
                return
            self._tail = payload[boundary:]
            payload = payload[:boundary]
        found = payload.count(b"data: ")
        if not found:
            book.keepalives_ns.append(now_ns - self._last_ns)
            self._body_bytes -= len(payload)
            self._last_ns = now_ns
            return
        book.events += found
        if not self._last_ns and book.in_churn:
            book.firsts_ns.append(now_ns - self._asked_ns)
        at = payload.find(mark)
        while at >= 0:
            at += len(mark)
            self._content += 1
            if book.in_window:
                book.delays_ns.append(now_ns - int(payload[at : at + STAMP_DIGITS]))
                book.gaps_ns.append(now_ns - self._last_ns)
            self._last_ns = now_ns
            at = payload.find(mark, at)
        self._last_ns = now_ns
        self._latest = payload

    def _finish(self) -> None:
        """Judge the stream that has just ended, and start the next one in the churn."""
        book, protocol = self._book, self._book.protocol
        if self._tail or not self._latest.endswith(protocol.last(self._wanted)[-1]):
            book.faults["not the last event"] += 1
        elif self._content != self._wanted:
            book.faults["events missing or extra"] += 1
        elif self._body_bytes != protocol.body_bytes(self._wanted):
            book.faults["body length differs"] += 1
        else:
            book.complete += 1
        if book.in_churn:
            self.ask(book.churn_events)
        else:
            self._end(None)

    def _end(self, fault: str | None) -> None:
        if self.over.done():
            return
        if fault:
            self._book.faults[fault] += 1
        self.over.set_result(None)
        self._transport.close()


async def run_streams(port: int, plan: StreamPlan, pids: list[int]) -> measure.Result:
    """Run the phases of `plan` against 127.0.0.1:`port`, reading the CPU clocks of `pids` around the window."""
    loop = asyncio.get_running_loop()
    book = Book(port, plan.protocol)
    book.churn_events = round(plan.churn_s * 1000 / plan.pace_ms)
    started_s = loop.time()
    slots = []
    for place in range(plan.streams):
        await until(started_s + plan.ramp_s * place / plan.streams)
        _, slot = await loop.create_connection(lambda: Slot(book, loop), "127.0.0.1", port)
        slot.ask(plan.first_events(place))
        slots.append(slot)
    window_at_s = started_s + plan.ramp_s + plan.warm_s
    await until(window_at_s)
    book.in_window = True
    before = book.sample(pids)
    await until(window_at_s + plan.window_s)
    after = book.sample(pids)
    book.in_window = False
    book.in_churn = True
    await until(window_at_s + plan.window_s + plan.churn_s)
    book.in_churn = False
    _, late = await asyncio.wait([slot.over for slot in slots], timeout=_GRACE_S)
    if late:
        book.faults["never ended"] += len(late)
    for slot in slots:
        slot.close()
    window = measure.window_between(before, after)
    if window.done < _KEPT_UP * plan.streams * window.duration_s * 1000 / plan.pace_ms:
        book.faults["fell behind the pace"] += 1
    if not book.firsts_ns:
        book.faults["no stream started in the churn"] += 1
    return measure.Result(
        window=window,
        complete=book.complete,
        faults=dict(book.faults),
        delay=measure.spread_from_ns(book.delays_ns),
        gap=measure.spread_from_ns(book.gaps_ns),
        first=measure.spread_from_ns(book.firsts_ns),
    )


async def until(at_s: float) -> None:
    """Sleep until a time of the running loop's clock, in seconds."""
    await asyncio.sleep(max(0.0, at_s - asyncio.get_running_loop().time()))
