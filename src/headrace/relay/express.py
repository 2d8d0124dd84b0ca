"""The express lane of one stream: an event that is surely nothing but progress leaves as it came, frame and all, and
what it says is read later, some events at a time.

What an event costs is not its instructions but how cold they are: between two events the worker sleeps, and code and
objects leave the caches. So only that is done at once which cannot wait, in one function that touches as little as it
can: a look whether the read is one whole plain event, and the write. Metering, hashes, marks and clocks follow for
`MOST` events in one warm loop; whatever else looks at the stream (any other event, the wheel, an end) makes them follow
first, so nobody sees the difference.
"""

from collections.abc import Callable
from typing import cast

from headrace.http.chunk import CRLF, HEADS, MOST_READ, data_of
from headrace.model.ports import Sink
from headrace.model.wire import Sight
from headrace.relay.clock import NEVER
from headrace.relay.machine import Machine
from headrace.relay.state import State

MOST = 32
"""Events that wait; a read that may pass has less than 1 KiB."""
_FULL = 2 * MOST
_FORMS = {b"\n": (b"\n\n\r\n", 4, 0), b"\r\n": (b"\r\n\r\n\r\n", 5, 2)}
"""By line end: the end of a frame with one event, how far from there the LF of its data line stands, and how many CRs
such an event has."""


class Express:
    """One attempt's. `frame` is a `model.ports.TakeFrame`; `stepped` is called where an event had the machine step.

    `close` it before anything else is done with the machine, `renew` it after each event that went the long way.
    """

    __slots__ = (
        "_begins", "_below", "_crs", "_ending", "_lacks", "_lf_at", "_machine", "_needs", "_sink", "_skip", "_stepped",
        "_tail", "_time", "_waiting", "_write",
    )  # fmt: skip

    def __init__(self, machine: Machine, sink: Sink, time: Callable[[], float], stepped: Callable[[], None]) -> None:
        self._machine = machine
        self._sink = sink
        self._write: Callable[[bytes], None] | None = None
        self._time = time
        self._stepped = stepped
        self._below = 0  # the size that a read has to stay below: 0 while nothing may pass
        self._waiting: list[bytes | float] = []  # each frame and its time: one list is one line of cache less than two
        self._begins = self._needs = self._lacks = self._tail = self._ending = b""
        self._skip = self._lf_at = self._crs = 0

    def frame(self, data: bytes) -> bool:
        """Pass a read on if it is one chunk, framed as we would, with one plain event."""
        size = len(data)
        if (
            size < self._below
            and data.startswith(head := HEADS[size])
            and data.startswith(self._begins, start := len(head))
            and data.find(self._lacks) < 0  # not `in`, which tries a number first: 0.3 µs
            and data.find(b"\n", start + self._skip) == size - self._lf_at
            and (data.endswith(self._ending) or (data.endswith(self._tail) and data.find(self._needs) >= 0))
        ):
            waiting = self._waiting
            waiting.append(data)
            waiting.append(self._time())
            self._write(data)  # type: ignore[misc]  # there is one while something may pass
            if len(waiting) >= _FULL:
                self._settle()
            return True
        return False

    def close(self) -> None:
        """Let what waits follow, and pass nothing until `renew`."""
        self._below = 0
        if self._waiting:
            self._settle()

    def renew(self, event: bytes) -> None:
        """`event` went the long way: may others like it pass?"""
        machine = self._machine
        framer, meter = machine.framer, machine.meter
        if (
            machine.state is not State.COMMITTED
            or machine.plain
            or machine.clock.tail_at != NEVER
            or meter is None
            or not framer.at_boundary
        ):
            return
        plain, line_end = meter.plain_like(event), framer.line_end
        self._write = write = self._sink.frame_writer
        if write is not None and plain is not None and line_end in _FORMS:
            self._begins, self._needs, self._lacks = plain
            self._skip = len(plain.begins)
            self._tail, self._lf_at, self._crs = _FORMS[line_end]
            # How such an event ends is nearly always how the last one did: one look in place of two.
            ending = event[event.rfind(self._needs) :] + CRLF
            self._ending = ending if ending.endswith(self._tail) else self._needs + self._tail
            self._below = MOST_READ

    def _settle(self) -> None:
        """What the long way does with each event, for all that wait."""
        machine = self._machine
        events = [data_of(frame) for frame in cast(list[bytes], self._waiting[::2])]
        times = cast(list[float], self._waiting[1::2])
        self._waiting.clear()
        clock, trace = machine.clock, machine.trace
        data = b"".join(events)
        self._sink.passed(data)
        trace.received += len(data)
        trace.release(data)
        clock.out_at = times[-1]
        alike = clock.tail_at == NEVER and data.count(b"\r") == self._crs * len(events)
        if alike and machine.meter is not None and machine.meter.observe_plain(events):
            clock.progress_at = times[-1]
            trace.run(times, events)
            return
        for read, at in zip(events, times, strict=True):
            for event in machine.framer.feed(read):
                self._observe(event, at)
        if machine.step is not None:
            self._stepped()

    def _observe(self, event: bytes, at: float) -> None:
        """One event that the client has already. It may be another after all, as JSON with a member twice."""
        machine = self._machine
        sight = machine.meter.observe(event) if machine.meter is not None else Sight.PROGRESS
        if sight is Sight.HEARTBEAT or sight is Sight.COMMENT:
            machine.clock.heartbeat_at = at
            machine.trace.heartbeats += 1
            return
        machine.clock.progress_at = at
        machine.trace.event(at, len(event))
        machine.move(sight, at)
