"""Collects what one exchange leaves behind, and makes its records of it: `opened`, checkpoints, and the entry."""

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from headrace.http.rules import upstream_request_id
from headrace.journal.writer import Writer
from headrace.model.channel import Channel, Credential
from headrace.model.entry import AttemptLine, Checkpoint, Entry, Money, Opened, Wire, seconds_since
from headrace.model.estimate import NO_TEXT, TextCount
from headrace.model.key import Key
from headrace.model.outcome import End, Failure, Outcome
from headrace.model.problem import LOST_OR_LATE, Kind, Problem, Source
from headrace.model.request import Call, ReplyHead, RequestHead
from headrace.model.usage import NOTHING, Usage
from headrace.protocols.interface import Observer

MOST_DETAIL = 300
"""Characters of an operator's note that an entry keeps; an entry stays within 4 KiB."""
MOST_MODEL = 200
"""Characters of a model's name that it keeps."""
_LOST_IN_TRANSIT = LOST_OR_LATE | {Kind.UPSTREAM_UNREACHABLE}


class Place(Protocol):
    """Where an attempt went."""

    @property
    def channel(self) -> Channel:
        """The channel."""

    @property
    def credential(self) -> Credential:
        """Its credential."""

    @property
    def upstream_model(self) -> str:
        """The upstream's name for the model."""


class AttemptFacts(Protocol):
    """What an attempt knows of itself."""

    reused: bool
    replayed: bool
    maybe_executed: bool


class Spending(NamedTuple):
    """What one attempt used that came to nothing."""

    usage: Usage = NOTHING
    origin: str = "none"
    cost: int | None = None
    """Nano-units; None where it is not known, and where nothing was used."""


NOTHING_SPENT = Spending()


class Bill(NamedTuple):
    """What is to be paid for an exchange, and what that rests on."""

    usage: Usage
    origin: str
    """Where the usage is from: upstream, upstream_partial, estimated or none."""
    money: Money
    sent: TextCount
    generated: TextCount


NO_BILL = Bill(NOTHING, "none", Money(cost=0, charge=0), NO_TEXT, NO_TEXT)
"""Of a request that was not read."""


class Course(NamedTuple):
    """What has come of an exchange so far."""

    observer: Observer | None
    bill: Bill
    wire: Wire
    answered: bool
    """A head has gone to the client."""
    early_open: bool
    """It went before the upstream's."""


class _Attempt(NamedTuple):
    """One that runs: where to, what it knows of itself, when it began."""

    place: Place
    facts: AttemptFacts
    started: float


class Logbook:
    """One exchange's. Clock times are the loop's, seconds; `at` is the same moment in seconds since the epoch."""

    __slots__ = (
        "_attempts", "_client_request_id", "_clock", "_head", "_id", "_journal", "_key", "_moved",
        "_operation", "_protocol", "_running", "at", "began", "closed", "status",
    )  # fmt: skip

    def __init__(
        self,
        journal: Writer,
        clock: Callable[[], float],
        id: str,
        key: Key,
        protocol: str,
        operation: str,
        head: RequestHead,
    ) -> None:
        self.began = clock()
        self.at = time.time()
        self.status: int | None = None
        """What the client was answered with."""
        self.closed = False
        """Whether its entry was written, or tried in vain."""
        self._journal = journal
        self._clock = clock
        self._id = id
        self._key = key
        self._protocol = protocol
        self._operation = operation
        self._client_request_id = (head.header(b"x-request-id") or b"")[:100].decode("latin-1")
        self._attempts: list[AttemptLine] = []
        self._running: _Attempt | None = None
        self._head: ReplyHead | None = None
        self._moved = (0, 0, 0)

    @property
    def maybe_executed(self) -> bool:
        """Whether the last attempt failed without proof that its upstream did nothing."""
        return bool(self._attempts) and self._attempts[-1].maybe_executed

    @property
    def last_status(self) -> int | None:
        """The status of the last attempt's reply; None where there was no reply."""
        return self._attempts[-1].status if self._attempts else None

    def open(self, call: Call) -> None:
        """Write that money may be spent from now on. JournalError where that cannot be written."""
        self._journal.append(
            Opened(
                id=self._id,
                at=self.at,
                protocol=self._protocol,
                operation=self._operation,
                key=self._key.name,
                owner=self._key.owner,
                model=call.model[:MOST_MODEL],
                stream=call.stream or call.asks_stream,
                client_request_id=self._client_request_id,
                labels=self._key.labels,
            )
        )

    def attempting(self, place: Place, facts: AttemptFacts) -> None:
        """An attempt begins."""
        self._running = _Attempt(place, facts, self._clock())
        self._head = None

    def answered(self, head: ReplyHead) -> None:
        """Its reply's head is there."""
        self._head = head
        self.status = head.status

    def attempted(
        self, failure: Failure | None, verdict: str, outcome: Outcome | None, spending: Spending = NOTHING_SPENT
    ) -> None:
        """The attempt is over; the exchange too, where it has an outcome. `verdict` is a word for one that was relayed.
        A failure brings its own, and what it spent; once the client has left it is nobody's failure."""
        problem = failure.problem if failure is not None else None
        if outcome is not None and outcome.end is End.CLIENT_GONE:
            problem, verdict = None, outcome.end.value
        if self._running is not None:
            self._attempts.append(self._line(self._running, self._clock(), problem, verdict, spending))
        self._running = self._head = None

    def _line(
        self, running: _Attempt, now: float, failure: Problem | None, verdict: str, spending: Spending = NOTHING_SPENT
    ) -> AttemptLine:
        (place, facts, started), head = running, self._head
        return AttemptLine(
            channel=place.channel.name,
            credential=place.credential.name,
            upstream_model=place.upstream_model,
            started_s=seconds_since(self.began, started),
            ended_s=seconds_since(self.began, now),
            status=head.status if head is not None else None,
            verdict=failure.kind.value if failure is not None else verdict,
            detail=failure.detail[:MOST_DETAIL] if failure is not None else "",
            upstream_request_id=upstream_request_id(head)[:100].decode("latin-1") if head else "",
            reused=facts.reused,
            replayed=facts.replayed,
            maybe_executed=facts.maybe_executed
            or (failure is not None and head is not None and failure.kind in _LOST_IN_TRANSIT),
            usage=spending.usage,
            usage_origin=spending.origin,
            cost=spending.cost,
        )

    def has_moved(self, events: int, heartbeats: int, released: int) -> bool:
        """Whether more has come than at the last call than heartbeats: counts of the stream so far. Bytes without
        either are of one that passes plainly."""
        before, self._moved = self._moved, (events, heartbeats, released)
        return events != before[0] or (released != before[2] and heartbeats == before[1])

    def checkpoint(self, course: Course, now: float) -> Checkpoint:
        """What the entry would say at `now`, of what can be known before the end."""
        observer, bill, wire, _, early_open = course
        running = self._running
        attempts = tuple(self._attempts)
        return Checkpoint(
            id=self._id,
            duration_s=seconds_since(self.began, now),
            status=200 if early_open else self.status,
            served_model=observer.served_model[:MOST_MODEL] if observer is not None else "",
            usage=bill.usage,
            usage_origin=bill.origin,
            money=bill.money,
            sent=bill.sent,
            generated=bill.generated,
            attempts=attempts if running is None else (*attempts, self._line(running, now, None, "")),
            early_open=early_open,
            wire=wire,
        )

    def close(self, outcome: Outcome, call: Call | None, course: Course) -> None:
        """Write the entry. JournalError where it cannot be written."""
        self.closed = True
        observer, bill, wire, answered, early_open = course
        if early_open or not answered:
            self.status = 200 if early_open else None  # whatever the upstream said
        problem = outcome.problem
        source = kind = detail = ""
        if problem is not None:
            source, kind, detail = problem.fault.value, problem.kind.value, problem.detail[:MOST_DETAIL]
        elif outcome.end is End.REFUSED:
            source = Source.CLIENT.value  # the upstream's word on a fault of the client's, relayed as it came
        key = self._key
        self._journal.append(
            Entry(
                id=self._id,
                at=self.at,
                duration_s=seconds_since(self.began, self._clock()),
                protocol=self._protocol,
                operation=self._operation,
                key=key.name,
                owner=key.owner,
                model=call.model[:MOST_MODEL] if call is not None else "",
                stream=call is not None and (call.stream or call.asks_stream),
                end=outcome.end.value,
                reason=outcome.reason,
                kind=kind,
                source=source,
                detail=detail,
                status=self.status,
                served_model=observer.served_model[:MOST_MODEL] if observer is not None else "",
                finish_reasons=observer.finish_reasons[:16] if observer is not None else (),
                usage=bill.usage,
                usage_origin=bill.origin,
                money=bill.money,
                sent=bill.sent,
                generated=bill.generated,
                labels=key.labels,
                attempts=tuple(self._attempts),
                early_open=early_open,
                client_request_id=self._client_request_id,
                wire=wire,
            )
        )
