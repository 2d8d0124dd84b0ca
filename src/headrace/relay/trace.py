"""What an entry tells of a stream's course: marks, gaps and insertions, in bounded space."""

from bisect import bisect_left
from hashlib import sha256

from headrace.model.entry import Wire, seconds_since

GAP_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0)
"""Upper bounds of the first 11 of 12 buckets."""
FIRST_MARKS = 64
LAST_MARKS = 16
LONGEST_GAPS = 8
INSERTIONS = 200


class Trace:
    """The course of one exchange's response. Times are monotonic seconds; offsets are bytes of the delivered body."""

    def __init__(self) -> None:
        self.received = self.released = self.removed = self.inserted = self.repaired = 0
        self.events = self.heartbeats = self.keepalives = 0
        self._hash = sha256()
        self.first_at = 0.0
        self.last_at = 0.0
        self._buckets: list[int] = [0] * (len(GAP_BOUNDS_S) + 1)
        self._first: list[tuple[float, int]] = []
        self._last: list[tuple[float, int]] = []
        self._longest: list[tuple[float, int]] = []
        self._shortest_kept = 0.0
        self._insertions: list[tuple[int, int]] | None = None

    def event(self, now: float, size: int) -> None:
        """One event of `size` bytes, received at `now`."""
        number = self.events
        self.events = number + 1
        if number >= FIRST_MARKS + LAST_MARKS:
            self._last[number % LAST_MARKS] = (now, size)
        elif number >= FIRST_MARKS:
            self._last.append((now, size))
        else:
            self._first.append((now, size))
            if not number:
                self.first_at = self.last_at = now
                return
        gap = now - self.last_at
        self.last_at = now
        self._buckets[bisect_left(GAP_BOUNDS_S, gap)] += 1
        if gap > self._shortest_kept:
            self._keep_gap(gap, number)

    def release(self, data: bytes) -> None:
        """`data` goes to the client in this call: counted and hashed."""
        self.released += len(data)
        self._hash.update(data)

    def relay(self, now: float, event: bytes) -> None:
        """`event` and `release` in one call, for the path of nearly every event: it saves 0.3 µs of 4."""
        size = len(event)
        self.released += size
        self._hash.update(event)
        number = self.events
        if number < FIRST_MARKS + LAST_MARKS:
            self.event(now, size)
            return
        self.events = number + 1
        self._last[number % LAST_MARKS] = (now, size)
        gap = now - self.last_at
        self.last_at = now
        self._buckets[bisect_left(GAP_BOUNDS_S, gap)] += 1
        if gap > self._shortest_kept:
            self._keep_gap(gap, number)

    def run(self, times: list[float], events: list[bytes]) -> None:
        """`event` for each of these, in order."""
        number, last_at, shortest = self.events, self.last_at, self._shortest_kept
        if number < FIRST_MARKS + LAST_MARKS:
            for at, event in zip(times, events, strict=True):
                self.event(at, len(event))
            return
        buckets, marks = self._buckets, self._last
        for at, event in zip(times, events, strict=True):
            marks[number % LAST_MARKS] = (at, len(event))
            gap = at - last_at
            last_at = at
            buckets[bisect_left(GAP_BOUNDS_S, gap)] += 1
            if gap > shortest:
                self._keep_gap(gap, number)
                shortest = self._shortest_kept
            number += 1
        self.events, self.last_at = number, last_at

    def insert(self, data: bytes) -> None:
        """The gateway puts `data` of its own behind what was delivered so far."""
        if self._insertions is None:
            self._insertions = []
        if len(self._insertions) < INSERTIONS:
            self._insertions.append((self.released + self.inserted, len(data)))
        self.inserted += len(data)

    def hash_in(self) -> str:
        """SHA-256 (hex) of what was released of the committed attempt."""
        return self._hash.hexdigest()

    def wire(self, began: float, hash_out: str, unreadable: int) -> Wire:
        """The entry's part; times become seconds after `began`. `hash_out` is the sink's."""
        split = self.events % LAST_MARKS if self.events > FIRST_MARKS + LAST_MARKS else 0
        return Wire(
            received=self.received,
            released=self.released,
            removed=self.removed,
            inserted=self.inserted,
            repaired=self.repaired,
            unreadable=unreadable,
            events=self.events,
            heartbeats=self.heartbeats,
            keepalives=self.keepalives,
            first_event_s=seconds_since(began, self.first_at) if self.events else None,
            last_event_s=seconds_since(began, self.last_at) if self.events else None,
            gaps=tuple(self._buckets) if self.events else (),
            longest_gaps=_gaps(self._longest) if self._longest else (),
            first_marks=_marks(began, self._first),
            last_marks=_marks(began, self._last[split:] + self._last[:split]) if self._last else (),
            insertions=tuple(self._insertions or ()),
            hash_in=self.hash_in(),
            hash_out=hash_out,
        )

    def _keep_gap(self, gap: float, number: int) -> None:
        longest = self._longest
        longest.append((gap, number))
        if len(longest) > LONGEST_GAPS:
            longest.remove(min(longest))
        if len(longest) == LONGEST_GAPS:
            self._shortest_kept = min(longest)[0]


def _gaps(longest: list[tuple[float, int]]) -> tuple[tuple[int, float], ...]:
    return tuple((number, round(gap, 4)) for gap, number in sorted(longest, reverse=True))


def _marks(began: float, marks: list[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    return tuple((seconds_since(began, at), size) for at, size in marks)
