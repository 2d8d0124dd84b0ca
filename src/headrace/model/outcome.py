"""How an exchange ended: exactly one end, its reason, and the problem behind it."""

from enum import Enum

import msgspec

from headrace.model.problem import Problem


class End(Enum):
    """The states in which an exchange can end."""

    COMPLETED = "completed"
    """The protocol's own good end was seen."""
    INCOMPLETE = "incomplete"
    """The model stopped early: length, content filter, refusal."""
    FAILED = "failed"
    """The upstream said in the stream that it failed."""
    INTERRUPTED = "interrupted"
    """The upstream was cut or ended without its terminal event, or the gateway itself failed."""
    STALLED = "stalled"
    """A stall limit passed after commit."""
    CLIENT_GONE = "client_gone"
    """The client left, or took nothing for `write_timeout`."""
    STOPPED = "stopped"
    """The gateway ended it on purpose: drain, `total`, an operator, a budget."""
    REFUSED = "refused"
    """Nothing was committed and no other state applies."""


class Outcome(msgspec.Struct, frozen=True):
    """An end with its reason (a short word or the provider's own) and, where something failed, the problem."""

    end: End
    reason: str
    problem: Problem | None = None


class Failure(msgspec.Struct, frozen=True):
    """An attempt that came to nothing: why, and whether no other attempt may follow (the work may have been done)."""

    problem: Problem
    final: bool = False
