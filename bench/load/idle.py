"""The client's idle streams: what one costs a gateway in memory, and how punctual its keepalives are."""

import asyncio

from bench.load import measure, procfs
from bench.load.protocols import CHAT
from bench.load.streams import Book, Slot, until


async def run_idle(port: int, streams: int, ramp_s: float, hold_s: float, pids: list[int]) -> measure.Result:
    """Open streams that fall silent after one event; memory per stream at the end of `hold_s`, and keepalives."""
    loop = asyncio.get_running_loop()
    book = Book(port, CHAT)
    book.in_churn = True  # every start counts
    rss_before = {pid: procfs.rss_bytes(pid) for pid in pids}
    started_s = loop.time()
    slots = []
    for place in range(streams):
        await until(started_s + ramp_s * place / streams)
        _, slot = await loop.create_connection(lambda: Slot(book, loop), "127.0.0.1", port)
        slot.ask(0)
        slots.append(slot)
    held_at_s = loop.time()
    before = book.sample(pids)
    await until(held_at_s + hold_s)
    after = book.sample(pids)
    rss = {pid: (procfs.rss_bytes(pid) - rss_before[pid]) / streams for pid in pids}
    for slot in slots:
        slot.close()
    return measure.Result(
        window=measure.window_between(before, after),
        complete=book.events,
        faults=dict(book.faults),
        first=measure.spread_from_ns(book.firsts_ns),
        keepalive=measure.spread_from_ns(book.keepalives_ns),
        rss_bytes=rss,
    )
