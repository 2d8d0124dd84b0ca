"""What a stream's machine asks of others: the metering of an attempt, and the client's protocol."""

from typing import Protocol

from headrace.model.outcome import Outcome
from headrace.model.problem import Problem
from headrace.model.wire import BodyEnd, Sight


class Meter(Protocol):
    """What the machine asks of the metering of one attempt; it never raises."""

    def observe(self, event: bytes) -> Sight:
        """What one whole event is."""

    @property
    def finished(self) -> bool:
        """Whether only a tail is missing."""

    @property
    def saw_id(self) -> bool:
        """Whether the upstream has used `id:`."""

    @property
    def problem(self) -> Problem | None:
        """What an ERROR event said."""

    def ended(self, how: BodyEnd) -> Outcome:
        """What the end of the body means."""


class Voice(Protocol):
    """How the gateway speaks in the client's protocol; `line_end` is the stream's own, None before any came."""

    def keepalive(self, line_end: bytes | None, saw_id: bool) -> bytes:
        """A whole keepalive, or nothing where no form is safe."""

    def interrupt(self, problem: Problem, line_end: bytes | None) -> bytes:
        """A whole error event."""
