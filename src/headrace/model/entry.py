"""The ledger line of one exchange: what was asked, what was tried, what came, how it ended. Never content."""

import msgspec

from headrace.model.estimate import NO_TEXT, TextCount
from headrace.model.limits import NANO
from headrace.model.usage import Usage


def seconds_since(began: float, at: float) -> float:
    """Seconds from `began` to `at`, to 0.1 ms. By arithmetic: 0.1 µs, while `round` goes by way of text, 0.3 µs."""
    return ((at - began) * 10_000 + 0.5) // 1 / 10_000


class AttemptLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One upstream request. Times are seconds after the exchange began; the verdict is one word or a problem's kind."""

    channel: str
    credential: str
    upstream_model: str
    started_s: float
    ended_s: float
    status: int | None = None
    verdict: str = ""
    detail: str = ""
    upstream_request_id: str = ""
    reused: bool = False
    replayed: bool = False
    maybe_executed: bool = False
    usage: Usage = Usage()
    """Of an attempt that was not the last; the last one's is the entry's own."""
    usage_origin: str = "none"
    cost: int | None = None
    """Nano-units; None where it is not known, and where nothing was used."""


class Money(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an exchange cost and what is charged for it: nano-units of the currency. None: not known, which is not 0."""

    cost: int | None = None
    """All attempts together."""
    charge: int | None = None
    """The committed attempt's alone, times the multiplier."""
    counted: int = 0
    """What budgets count: the charge, or the part of it that has a price."""
    price: str = ""
    """The version of the price; empty where there is none."""
    multiplier: int = NANO
    """Key's times owner's, in billionths."""
    unpriced: tuple[str, ...] = ()
    """What was used and has no price."""


NOT_PRICED = Money()


class Wire(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went over the wire. Bytes and counts; times in seconds after the exchange began; hashes are SHA-256, hex."""

    received: int = 0
    released: int = 0
    removed: int = 0
    inserted: int = 0
    repaired: int = 0
    unreadable: int = 0
    events: int = 0
    heartbeats: int = 0
    keepalives: int = 0
    first_event_s: float | None = None
    last_event_s: float | None = None
    gaps: tuple[int, ...] = ()
    longest_gaps: tuple[tuple[int, float], ...] = ()
    first_marks: tuple[tuple[float, int], ...] = ()
    last_marks: tuple[tuple[float, int], ...] = ()
    insertions: tuple[tuple[int, int], ...] = ()
    hash_in: str = ""
    hash_out: str = ""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="entry"):
    """The one immutable ledger line of an exchange."""

    id: str
    at: float
    """When the first byte came: seconds since the epoch."""
    duration_s: float
    protocol: str
    operation: str
    key: str
    owner: str = ""
    model: str = ""
    stream: bool = False
    end: str
    reason: str
    kind: str = ""
    source: str = ""
    detail: str = ""
    status: int | None = None
    served_model: str = ""
    finish_reasons: tuple[str, ...] = ()
    usage: Usage = Usage()
    usage_origin: str = "none"
    money: Money = NOT_PRICED
    sent: TextCount = NO_TEXT
    """Counts over the request's text, where they were made."""
    generated: TextCount = NO_TEXT
    """Counts over the answer's."""
    labels: tuple[tuple[str, str], ...] = ()
    """The key's."""
    attempts: tuple[AttemptLine, ...] = ()
    early_open: bool = False
    client_request_id: str = ""
    wire: Wire = Wire()


class Opened(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="opened"):
    """Written before the first byte goes upstream, so that no exchange that may cost money is ever unknown."""

    id: str
    at: float
    protocol: str
    operation: str = ""
    key: str
    owner: str = ""
    model: str = ""
    stream: bool = False
    client_request_id: str = ""
    labels: tuple[tuple[str, str], ...] = ()


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="checkpoint"):
    """How far a running exchange has come: what its entry would say now. A later one of the same exchange replaces it.

    Where the process dies, the entry is made of the last one; what came after it is not in any record.
    """

    id: str
    duration_s: float
    status: int | None = None
    served_model: str = ""
    usage: Usage = Usage()
    usage_origin: str = "none"
    money: Money = NOT_PRICED
    sent: TextCount = NO_TEXT
    generated: TextCount = NO_TEXT
    attempts: tuple[AttemptLine, ...] = ()
    early_open: bool = False
    wire: Wire = Wire()


Record = Entry | Opened | Checkpoint
"""What a journal holds."""


def lost_entry(opened: Opened, reached: Checkpoint | None, reason: str) -> Entry:
    """The entry of an exchange whose process died before it could write one: interrupted, by our own fault.

    `reached` is its last checkpoint; without one nothing is known but that it began, and its duration is 0.
    """
    at = reached if reached is not None else Checkpoint(id=opened.id, duration_s=0.0)
    return Entry(
        id=opened.id,
        at=opened.at,
        duration_s=at.duration_s,
        protocol=opened.protocol,
        operation=opened.operation,
        key=opened.key,
        owner=opened.owner,
        model=opened.model,
        stream=opened.stream,
        end="interrupted",
        reason=reason,
        kind="internal",
        source="gateway",
        status=at.status,
        served_model=at.served_model,
        usage=at.usage,
        usage_origin=at.usage_origin,
        money=at.money,
        sent=at.sent,
        generated=at.generated,
        labels=opened.labels,
        attempts=at.attempts,
        early_open=at.early_open,
        client_request_id=opened.client_request_id,
        wire=at.wire,
    )
