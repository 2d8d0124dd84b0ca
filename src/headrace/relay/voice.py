"""What a stream's machine asks of others: the framing and the metering of an attempt, and the client's protocol."""

from collections.abc import Sequence
from typing import Protocol

from headrace.model.outcome import Outcome
from headrace.model.problem import Problem
from headrace.model.wire import BodyEnd, Plain, Sight


class Framing(Protocol):
    """Where the events of one attempt's stream end; `sse.framing.Framer` tells of each attribute."""

    line_end: bytes | None
    bom: bool
    stray_lf: bool
    dropped: bool
    lf_dropped: bool
    held: int

    @property
    def at_boundary(self) -> bool:
        """Whether nothing is open."""

    def feed(self, data: bytes) -> list[bytes]:
        """The events that `data` (not empty) completes, in order; concatenated they are the stream."""

    def rest(self) -> bytes:
        """The unfinished event's bytes; they stay held."""

    def take_rest(self) -> bytes:
        """The unfinished event's bytes, given up."""

    @property
    def cr_is_open(self) -> bool:
        """Whether what was handed on ends in a CR that may yet turn out to be half of a CRLF."""


class Meter(Protocol):
    """What the machine asks of the metering of one attempt; it never raises."""

    def observe(self, event: bytes) -> Sight:
        """What one whole event is."""

    def plain_like(self, event: bytes) -> Plain | None:
        """How to tell that another event is as plain as this one."""

    def observe_plain(self, events: Sequence[bytes]) -> bool:
        """A run of plain events; False where each has to be observed."""

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

    def interrupt(self, problem: Problem, line_end: bytes | None, heard: bool) -> bytes:
        """A whole error event. `heard`: the client was given something of the upstream's."""
