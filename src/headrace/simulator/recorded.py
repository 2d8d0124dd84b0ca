"""What the simulator saw and did, request by request: bounded, for tests that must know the other side's truth."""

from dataclasses import dataclass, field
from enum import StrEnum

import msgspec


class End(StrEnum):
    """How a reply ended, seen from the simulator."""

    OPEN = "open"  # not yet
    COMPLETE = "complete"  # the body's own end was written
    CUT = "cut"  # ended as the scenario's cut says
    REFUSED = "refused"  # closed without an answer
    CLIENT_CLOSED = "client_closed"  # the client closed first
    STOPPED = "stopped"  # the simulator was stopped


@dataclass(slots=True)
class Truth:
    """Tokens by the simulator's own count (`answer.tokens_from_bytes`): of the whole answer, and `sent` so far."""

    prompt: int = 0
    completion: int = 0
    sent: int = 0


@dataclass(slots=True)
class Recorded:
    """One request and its reply. Times `…_s` are seconds after `started_at` (Unix seconds, when its head was read)."""

    number: int
    connection: int
    method: str = ""
    target: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""  # the first 1 MiB
    body_length: int = 0
    body_sha256: str = ""  # of all of it
    credential: str | None = None
    scenario: str = ""
    model: str = ""
    stream: bool = False
    status: int = 0
    end: End = End.OPEN
    started_at: float = 0.0
    received_s: float | None = None
    head_sent_s: float | None = None
    first_event_s: float | None = None
    last_write_s: float | None = None
    ended_s: float | None = None
    closed_early_s: float | None = None  # when the client closed before the end
    write_failed: bool = False  # and the connection broke with data still to write, or by a reset
    bytes_written: int = 0  # of the body, heartbeats included, chunk frames not
    events_written: int = 0
    sent: bytes = b""  # the body's first 64 KiB
    sent_sha256: str = ""  # of all of it, when it has ended
    truth: Truth = field(default_factory=Truth)

    @property
    def closed_early(self) -> bool:
        return self.closed_early_s is not None

    def header(self, name: str) -> str | None:
        """The first value of a request header, in any case."""
        return next((value for found, value in self.headers if found.lower() == name.lower()), None)

    def json(self) -> object:
        """The request's body, parsed."""
        return msgspec.json.decode(self.body)
