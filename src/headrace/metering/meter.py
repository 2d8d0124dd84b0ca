"""Reads usage and terminal state beside the relay. It sees copies, changes nothing, and never raises.

A protocol's observer may fail on anything that an upstream sends; such an event is relayed all the same, counted as
unreadable, and taken for progress, since it is an event.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from headrace.http.coding import decode_body
from headrace.model.outcome import End, Outcome
from headrace.model.problem import Problem
from headrace.model.wire import BodyEnd, Plain, Sight
from headrace.protocols.interface import Observer

T = TypeVar("T")
R = TypeVar("R")

MOST_DECODED_BYTES = 64 * 1024 * 1024
"""How far the copy of an encoded reply may expand."""


class Meter:
    """The metering of one attempt's response."""

    __slots__ = ("_observe", "observer", "unreadable")

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.unreadable = 0
        self._observe = observer.observe

    def observe(self, event: bytes) -> Sight:
        """What one whole event is."""
        try:
            return self._observe(event)
        except Exception:  # noqa: BLE001  any defect of a reading is the meter's, never the relay's
            self.unreadable += 1
            return Sight.PROGRESS

    def plain_like(self, event: bytes) -> Plain | None:
        """How to tell that another event is as plain as this one."""
        return self.observer.plain_like(event)

    def observe_plain(self, events: Sequence[bytes]) -> bool:
        """A run of plain events; False where each has to be observed."""
        done = self._guarded(self.observer.observe_plain, events)
        if done is None:
            self.unreadable += len(events) - 1
        return done is not False

    @property
    def finished(self) -> bool:
        """Whether only a tail is missing."""
        return self.observer.finished

    @property
    def saw_id(self) -> bool:
        """Whether the upstream has used `id:`."""
        return self.observer.saw_id

    @property
    def problem(self) -> Problem | None:
        """What an ERROR event said."""
        return self.observer.problem

    def ended(self, how: BodyEnd) -> Outcome:
        """What it means that the stream's body is over."""
        return self.observer.ended(how)

    def observe_body(self, body: bytes | None, encoding: bytes = b"") -> Outcome:
        """What a whole reply is; None where it was too large to read. Of an encoded one a copy is decoded."""
        if body is None:
            self.unreadable += 1
            return Outcome(End.COMPLETED, "too large to read")
        decoded = decode_body(body, encoding, MOST_DECODED_BYTES) if encoding else body
        if isinstance(decoded, Problem):
            self.unreadable += 1
            return Outcome(End.COMPLETED, "unreadable")
        outcome = self._guarded(self.observer.observe_body, decoded)
        return outcome if outcome is not None else Outcome(End.COMPLETED, "unreadable")

    def _guarded(self, read: Callable[[T], R], what: T) -> R | None:
        """What `read` says; None, and counted, where it fails."""
        try:
            return read(what)
        except Exception:  # noqa: BLE001  as in `observe`
            self.unreadable += 1
            return None
