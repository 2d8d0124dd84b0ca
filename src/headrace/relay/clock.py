"""The clocks of one exchange: what has been seen when, and which limit that breaks. Pure: the time is passed in.

All limits are compared with times that were noted; nothing is armed or cancelled. Upstream clocks (first event, stall,
the tail) stand still while the gateway itself has paused the upstream; the client's clock (keepalive) runs from the
last byte sent to it.
"""

from enum import Enum

from headrace.model.settings import StreamSettings

TAIL_S = 10.0
"""What remains for usage, audio and the terminal event once every output has finished."""
NEVER = float("inf")


class Verdict(Enum):
    """Which limit has passed."""

    TOTAL = "total"
    OPEN = "open"
    FIRST_EVENT = "first_event"
    STALL = "stall"
    TAIL = "tail"
    GRACE = "grace"
    PREAMBLE = "preamble"
    """Held preamble events have waited as long as they may (`commit: first_output`)."""


class Clock:
    """Times in monotonic seconds; -inf or inf where nothing was seen yet.

    `asked_at` is the request's last byte; `uploaded_at` the end of the attempt's upload; `answered_at` its 2xx head;
    `out_at` the last byte towards the client.
    """

    __slots__ = (
        "_limits", "_paused_at", "_resumed_at", "answered_at", "asked_at", "began_at", "ending_at", "first_seen",
        "heartbeat_at", "held_since", "out_at", "progress_at", "running", "tail_at", "uploaded_at",
    )  # fmt: skip

    def __init__(self, limits: StreamSettings, began_at: float, asked_at: float) -> None:
        self._limits = limits
        self.began_at = began_at
        self.asked_at = asked_at
        self.uploaded_at = NEVER
        self.answered_at = NEVER
        self.progress_at = asked_at
        self.heartbeat_at = -NEVER
        self.out_at = asked_at
        self.ending_at = NEVER
        self.tail_at = NEVER
        self.held_since = NEVER
        self.first_seen = False
        self.running = False
        self._paused_at = NEVER
        self._resumed_at = -NEVER

    @property
    def tailing(self) -> bool:
        """Whether every output has finished and only the tail is awaited."""
        return self.tail_at != NEVER

    def begin(self, now: float) -> None:
        """A new attempt starts."""
        self.running = True
        self.first_seen = False
        self.uploaded_at = NEVER
        self.answered_at = NEVER
        self.held_since = NEVER
        self.progress_at = now
        self.heartbeat_at = -NEVER

    def rest(self) -> None:
        """The attempt failed: until the next one only the exchange's own limits run."""
        self.begin(self.asked_at)
        self.running = False

    def pause(self, now: float) -> None:
        """The gateway stopped reading the upstream."""
        if self._paused_at == NEVER:
            self._paused_at = now

    def resume(self, now: float) -> None:
        """It reads on: the silence so far was its own doing."""
        if self._paused_at != NEVER:
            self._paused_at = NEVER
            self._resumed_at = now

    def left_for_first_event(self, now: float) -> float:
        """How long from `now` on a first event may still be waited for, by this attempt's limit and by that of all."""
        limits = self._limits
        first = min(self.uploaded_at, now) + limits.first_event
        return max(0.0, min(first, self.asked_at + limits.open) - now)

    def verdict(self, now: float, waiting: bool) -> Verdict | None:
        """The limit that has passed at `now`, or None. `waiting`: nothing was committed yet."""
        limits = self._limits
        if self.ending_at != NEVER:
            return Verdict.GRACE if now >= self.ending_at + limits.end_grace else None
        if now >= self.began_at + limits.total:
            return Verdict.TOTAL
        if waiting and now >= self.asked_at + limits.open:
            return Verdict.OPEN
        if now >= self._preamble_due():
            return Verdict.PREAMBLE
        if self._paused_at == NEVER and self.running and now >= self._silence_due():
            if self.tail_at != NEVER:
                return Verdict.TAIL
            return Verdict.STALL if self.first_seen else Verdict.FIRST_EVENT
        return None

    def may_open(self, now: float) -> bool:
        """Whether the head may go out before any event (early open)."""
        return now >= self._open_due()

    def keepalive_due(self, now: float) -> bool:
        """Whether the client has heard nothing for `keepalive`."""
        return now >= self.out_at + self._limits.keepalive

    def due(self, waiting: bool, head_sent: bool) -> float:
        """When the next limit can pass if nothing more is seen."""
        limits = self._limits
        if self.ending_at != NEVER:
            return self.ending_at + limits.end_grace
        due = min(self.began_at + limits.total, self._preamble_due())
        if self._paused_at == NEVER and self.running:
            # How long the upload takes is not heard of: no limit on what follows it can pass before this time.
            due = min(due, self._silence_due() if self.uploaded_at != NEVER else self.progress_at + limits.first_event)
        if waiting:
            due = min(due, self.asked_at + limits.open)
        return min(due, self.out_at + limits.keepalive if head_sent else self._open_due())

    def _silence_due(self) -> float:
        """When the upstream has been silent too long: before its first event by `first_event`, then by the two stall
        limits, in the tail by the tail's."""
        limits = self._limits
        if self.tail_at != NEVER:
            return max(self.tail_at, self._resumed_at) + TAIL_S
        if not self.first_seen:
            return max(self.uploaded_at, self._resumed_at) + limits.first_event
        since = max(self.progress_at, self._resumed_at)
        return min(max(since, self.heartbeat_at) + limits.stall, since + limits.stall_with_pings)

    def _open_due(self) -> float:
        limits = self._limits
        if self.answered_at != NEVER:
            return self.answered_at + limits.early_open if limits.early_open is not None else NEVER
        return self.asked_at + limits.early_open_cold if limits.early_open_cold is not None else NEVER

    def _preamble_due(self) -> float:
        limits = self._limits
        return self.held_since + (limits.early_open if limits.early_open is not None else TAIL_S)
