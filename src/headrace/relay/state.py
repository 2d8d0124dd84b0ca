"""Where a stream stands, and what a step from one state to the next asks of the pump."""

from dataclasses import dataclass
from enum import Enum

from headrace.model.outcome import Failure

Repaired = tuple[bytes, bytes]
"""The bytes of a last event that came without its blank line, and the line ends that it lacked."""
UNTOUCHED: Repaired = (b"", b"")


class State(Enum):
    """Where a stream stands."""

    WAITING = "waiting"
    """Nothing of any attempt has been delivered; a failure can still go to the next attempt."""
    COMMITTED = "committed"
    """An event was delivered: the exchange is bound to its attempt."""
    ENDING = "ending"
    """The end was seen; what follows within the grace is relayed, nothing is inserted."""
    CLOSING = "closing"
    """The error event is ready and waits a moment for the LF of a CR; nothing else is relayed."""
    ENDED = "ended"
    """Over. Bytes that still come are received and go nowhere."""


@dataclass(slots=True)
class Step:
    """What the pump must do, in this order. An empty step says that `due` has come nearer."""

    open: bool = False
    """Send the head now, before any event (early open), or for a reply whose body is empty."""
    write: bytes = b""
    """Relay these bytes of the upstream's."""
    insert: bytes = b""
    """Write these bytes of our own."""
    failed: Failure | None = None
    """This attempt is over and nothing of it was delivered."""
    ended: bool = False
    """The exchange is over; see `outcome`."""
    abort: bool = False
    """End the client's connection visibly instead of ending the body."""
