"""The structured log line of one exchange: its entry in brief, as JSON. Never content."""

from datetime import UTC, datetime

import msgspec

from headrace.model.entry import Entry


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a line says. The words are those of the ledger's columns; what was not said or is 0 is left out."""

    time: datetime
    """When the exchange began."""
    event: str
    id: str
    node: str
    slot: int
    protocol: str
    operation: str = ""
    key: str
    owner: str = ""
    model: str = ""
    served_model: str = ""
    channel: str = ""
    credential: str = ""
    attempts: int = 0
    stream: bool = False
    end: str
    reason: str
    kind: str = ""
    source: str = ""
    detail: str = ""
    status: int | None = None
    duration_s: float
    first_event_s: float | None = None
    input_total: int | None = None
    cached_input: int | None = None
    cache_write: int | None = None
    output_total: int | None = None
    reasoning: int | None = None
    tier: str = ""
    usage_origin: str = "none"
    client_request_id: str = ""


_encode = msgspec.json.Encoder().encode
_LATEST = 253402300799.0
"""The last second of the year 9999: what stands behind has no name in a calendar of four digits."""


def line(entry: Entry, node: str, slot: int) -> bytes:
    """One line with its line end. `node` and `slot` say whose journal the entry was in."""
    usage = entry.usage
    last = entry.attempts[-1] if entry.attempts else None
    return (
        _encode(
            Line(
                time=datetime.fromtimestamp(entry.at if 0.0 <= entry.at < _LATEST else 0.0, UTC),
                event="exchange",
                id=entry.id,
                node=node,
                slot=slot,
                protocol=entry.protocol,
                operation=entry.operation,
                key=entry.key,
                owner=entry.owner,
                model=entry.model,
                served_model=entry.served_model,
                channel=last.channel if last is not None else "",
                credential=last.credential if last is not None else "",
                attempts=len(entry.attempts),
                stream=entry.stream,
                end=entry.end,
                reason=entry.reason,
                kind=entry.kind,
                source=entry.source,
                detail=entry.detail,
                status=entry.status,
                duration_s=entry.duration_s,
                first_event_s=entry.wire.first_event_s,
                input_total=usage.input_total,
                cached_input=usage.cached_input,
                cache_write=usage.cache_write,
                output_total=usage.output_total,
                reasoning=usage.reasoning,
                tier=usage.tier,
                usage_origin=entry.usage_origin,
                client_request_id=entry.client_request_id,
            )
        )
        + b"\n"
    )
