"""What is kept back before the commit: heartbeats, and with `commit: first_output` the preamble events. Bounded."""

HEARTBEAT_BYTES = 64 * 1024
PREAMBLE_EVENTS = 64
PREAMBLE_BYTES = 1024 * 1024


class Hold:
    """Events in their order; each is (bytes, received at, whether it is progress)."""

    __slots__ = ("_events", "_heartbeat_bytes", "_preamble_bytes", "_preamble_events")

    def __init__(self) -> None:
        self._events: list[tuple[bytes, float, bool]] = []
        self._heartbeat_bytes = 0
        self._preamble_bytes = 0
        self._preamble_events = 0

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._heartbeat_bytes + self._preamble_bytes

    def heartbeat(self, event: bytes, now: float) -> int:
        """Keep a heartbeat; the bytes of older ones that had to go."""
        self._events.append((event, now, False))
        self._heartbeat_bytes += len(event)
        dropped = 0
        while self._heartbeat_bytes > HEARTBEAT_BYTES:
            index = next(i for i, held in enumerate(self._events) if not held[2])
            size = len(self._events.pop(index)[0])
            dropped += size
            self._heartbeat_bytes -= size
        return dropped

    def preamble(self, event: bytes, now: float) -> bool:
        """Keep a preamble event; False (and not kept) where the bounds are reached."""
        if self._preamble_events >= PREAMBLE_EVENTS or self._preamble_bytes + len(event) > PREAMBLE_BYTES:
            return False
        self._events.append((event, now, True))
        self._preamble_events += 1
        self._preamble_bytes += len(event)
        return True

    def add_lf(self) -> None:
        """The LF that belongs to the CR at the end of the last event kept."""
        if not self._events or not self._events[-1][0].endswith(b"\r"):
            return
        event, at, progress = self._events[-1]
        self._events[-1] = (event + b"\n", at, progress)
        if progress:
            self._preamble_bytes += 1
        else:
            self._heartbeat_bytes += 1

    def release(self) -> list[tuple[bytes, float, bool]]:
        """All that is held, in order; nothing is held afterwards."""
        events = self._events
        self._empty()
        return events

    def discard(self) -> int:
        """Forget all; the bytes that were held."""
        size = self.size
        self._empty()
        return size

    def _empty(self) -> None:
        self._events = []
        self._heartbeat_bytes = self._preamble_bytes = self._preamble_events = 0
