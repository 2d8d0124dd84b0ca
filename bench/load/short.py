"""The client's short requests over keep-alive connections: closed loop or fixed rate, every reply checked."""

import asyncio
import re
import time
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import cast

from bench.load import measure, wire
from bench.load.protocols import CHAT, chat_body

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TICK_S = 0.001
_MOST_TOKENS = 512


@dataclass(frozen=True, slots=True)
class ShortPlan:
    """`rate_per_s` 0 is a closed loop: every connection asks again as soon as it has its reply."""

    connections: int
    warm_s: float
    window_s: float
    rate_per_s: float = 0.0


class Ledger:
    """Counters, and the connections that wait for a turn."""

    def __init__(self, port: int, *, closed_loop: bool) -> None:
        self.request = CHAT.post(port, chat_body(_MOST_TOKENS))
        self.closed_loop = closed_loop
        self.running = True
        self.in_window = False
        self.done = 0
        self.received_bytes = 0
        self.faults: Counter[str] = Counter()
        self.times_ns = array("q")
        self.waiting: list[Asker] = []

    def sample(self, pids: list[int]) -> measure.Sample:
        """Counters and CPU clocks of this moment."""
        return measure.take_sample(pids, self.done, self.received_bytes)


class Asker(asyncio.Protocol):
    """One connection with one request at a time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._held = b""
        self._asked_ns = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass

    def connection_lost(self, exc: Exception | None) -> None:
        if self._ledger.running:
            self._ledger.faults["connection lost"] += 1

    def ask(self) -> None:
        """Send the request."""
        self._asked_ns = time.monotonic_ns()
        self.transport.write(self._ledger.request)

    def data_received(self, data: bytes) -> None:
        ledger = self._ledger
        ledger.received_bytes += len(data)
        if self._held:
            data = self._held + data
        head_end = data.find(b"\r\n\r\n")
        found = _LENGTH.search(data, 0, head_end + 2) if head_end >= 0 else None
        if head_end < 0 or (found and len(data) < head_end + 4 + int(found[1])):
            self._held = data
            return
        if not found:
            ledger.faults["no Content-Length"] += 1
            self.transport.close()
            return
        self._held = b""
        if not data.startswith(b"HTTP/1.1 200") or data[head_end + 4 :] != wire.REPLY_BODY:
            ledger.faults["not the reply: " + data[: data.find(b"\r\n")].decode(errors="replace")] += 1
        ledger.done += 1
        if ledger.in_window:
            ledger.times_ns.append(time.monotonic_ns() - self._asked_ns)
        if not ledger.running:
            return
        if ledger.closed_loop:
            self.ask()
        else:
            ledger.waiting.append(self)


async def _pace(ledger: Ledger, rate_per_s: float) -> None:
    """Hand out turns at a fixed rate, in ticks of a millisecond; turns that no connection is free for are counted."""
    loop = asyncio.get_running_loop()
    started_s, given = loop.time(), 0
    while ledger.running:
        await asyncio.sleep(_TICK_S)
        due = int((loop.time() - started_s) * rate_per_s) - given
        given += due
        for _ in range(due):
            if ledger.waiting:
                ledger.waiting.pop().ask()
            elif ledger.in_window:
                ledger.faults["no free connection at this rate"] += 1


async def run_short(port: int, plan: ShortPlan, pids: list[int]) -> measure.Result:
    """Run `plan` against 127.0.0.1:`port`, reading the CPU clocks of `pids` around the window."""
    loop = asyncio.get_running_loop()
    ledger = Ledger(port, closed_loop=not plan.rate_per_s)
    askers = []
    for _ in range(plan.connections):
        _, asker = await loop.create_connection(lambda: Asker(ledger), "127.0.0.1", port)
        askers.append(asker)
    if plan.rate_per_s:
        ledger.waiting += askers
        pacer = loop.create_task(_pace(ledger, plan.rate_per_s))
    else:
        pacer = None
        for asker in askers:
            asker.ask()
    await asyncio.sleep(plan.warm_s)
    ledger.in_window = True
    before = ledger.sample(pids)
    await asyncio.sleep(plan.window_s)
    after = ledger.sample(pids)
    ledger.in_window = ledger.running = False
    if pacer:
        await pacer
    await asyncio.sleep(0.2)  # the last replies
    for asker in askers:
        asker.transport.close()
    return measure.Result(
        window=measure.window_between(before, after),
        complete=ledger.done,
        faults=dict(ledger.faults),
        first=measure.spread_from_ns(ledger.times_ns),
    )
