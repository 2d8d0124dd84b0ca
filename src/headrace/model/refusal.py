"""The problems that the line itself has, whatever the protocol, and the outcome of a request that is refused."""

from headrace.model.outcome import End, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.request import ReplyHead

INTERNAL = Problem(
    Kind.INTERNAL, "The gateway failed. Try again; if it happens again, tell the operator the request id."
)
BAD_CODING = Problem(Kind.UPSTREAM_BAD_REPLY, "The upstream answered with an encoding that was not asked for.")
SHUTDOWN = Problem(Kind.STOPPED, "The gateway is shutting down and ended this request.")
NO_JOURNAL = Problem(Kind.OVERLOADED, "The gateway cannot write its journal now. Try again later.", retry_after_s=5.0)
NO_CHANNEL = Problem(Kind.NO_CHANNEL_AVAILABLE, "No channel of this model can take the request now.")


def refused(problem: Problem) -> Outcome:
    """Nothing was committed, and this is why."""
    return Outcome(End.REFUSED, problem.kind.value, problem)


def refused_upstream(head: ReplyHead, body: bytes | None) -> Outcome:
    """The upstream's word on a fault of the client's was relayed as it came."""
    return Outcome(End.REFUSED, f"upstream {head.status}")
