"""The problems that a relay itself finds, in words that tell the client what to do."""

from headrace.model.outcome import End, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.wire import BodyEnd

TIMEOUT = Problem(Kind.UPSTREAM_TIMEOUT, "The upstream did not begin to answer in time. Try again.")
STALLED = Problem(
    Kind.UPSTREAM_STALLED, "The upstream stopped sending before the end of its answer. Send the whole request again."
)
INTERRUPTED = Problem(
    Kind.UPSTREAM_INTERRUPTED, "The upstream's stream broke off before its end. Send the whole request again."
)
FAILED_FIRST = Problem(Kind.UPSTREAM_ERROR, "The upstream failed before its first event. Try again.")
REPLY_TIMEOUT = Problem(
    Kind.UPSTREAM_TIMEOUT,
    "The upstream did not answer in time; it may still have done the work. Try again, or ask for a stream.",
)
TOTAL = Problem(
    Kind.STOPPED, "The gateway ended this answer at its time limit for one exchange. Ask for a shorter answer."
)


CUT = Outcome(End.INTERRUPTED, "upstream was cut", INTERRUPTED)
TIME_OVER = {
    "total": Outcome(End.STOPPED, "total", TOTAL),
    "open": Outcome(End.REFUSED, "open", TIMEOUT),
}
"""The outcomes of the limits that end an exchange as a whole."""


def nothing_came(how: BodyEnd) -> Problem:
    """The problem of an attempt whose body ended before any event."""
    if how is BodyEnd.CUT:
        return Problem(
            Kind.UPSTREAM_UNREACHABLE, "The upstream's connection was lost before its first event. Try again."
        )
    return Problem(Kind.UPSTREAM_BAD_REPLY, "The upstream's stream ended without an event. Try again.")
