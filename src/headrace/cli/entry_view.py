"""An entry for people: what was asked, each attempt, the end, the usage, and the course on the wire.

`sections` tells all of it, `brief` the few lines that the demo prints below each of its shows.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from headrace.cli.output import Section
from headrace.model.entry import AttemptLine, Entry, Wire
from headrace.relay.trace import GAP_BOUNDS_S, INSERTIONS

BAR_CELLS = 32
SHOWN_INSERTIONS = 8
HASH_DIGITS = 16

_ORIGINS = {
    "upstream": "as the upstream reported",
    "upstream_partial": "partial: the upstream's last report before the end",
    "none": "none: the upstream reported nothing",
}
_FAULTS = {"client": "the client's", "gateway": "the gateway's", "upstream": "the upstream's"}
_COUNTERS = (
    ("input", "input_total"),
    ("of it cached", "cached_input"),
    ("of it written to cache", "cache_write"),
    ("of that for an hour", "cache_write_1h"),
    ("of it audio", "audio_input"),
    ("output", "output_total"),
    ("of it reasoning", "reasoning"),
    ("of it audio", "audio_output"),
)


def sections(entry: Entry) -> Iterator[Section]:
    """The whole entry, in the order of its course."""
    yield Section(f"exchange {entry.id}", tuple(_asked(entry)))
    if entry.attempts:
        yield _attempts(entry.attempts)
    yield Section("end", tuple(_end(entry)))
    yield Section("usage", tuple(_usage(entry)))
    yield Section("wire", tuple(_wire(entry.wire)))
    if any(entry.wire.gaps):
        yield Section("gaps between events", tuple(_histogram(entry.wire.gaps)))
    if entry.wire.longest_gaps:
        rows = tuple((f"before event {number}", seconds(gap)) for number, gap in entry.wire.longest_gaps)
        yield Section("longest gaps", rows)
    if entry.wire.insertions:
        yield _insertions(entry.wire)


def brief(entry: Entry) -> Section:
    """The entry in a few lines."""
    rows = [("end", end_words(entry))]
    rows += [(f"attempt {number}", _attempt_words(one)) for number, one in enumerate(entry.attempts, 1)]
    rows += [
        ("usage", usage_words(entry)),
        ("first event", _after(entry.wire.first_event_s)),
        ("bytes", _byte_words(entry.wire)),
        ("hashes", hash_words(entry.wire)),
    ]
    return Section(f"entry {entry.id}", tuple(rows))


def end_words(entry: Entry) -> str:
    """`interrupted: upstream was cut (upstream_interrupted), the upstream's fault`."""
    words = entry.end if entry.reason in ("", entry.end) else f"{entry.end}: {entry.reason}"
    if entry.kind and entry.kind != entry.reason:
        words += f" ({entry.kind})"
    return f"{words}, {_FAULTS[entry.source]} fault" if entry.source in _FAULTS else words


def usage_words(entry: Entry) -> str:
    """The totals, and where they come from."""
    if not entry.usage.known:
        return _ORIGINS.get(entry.usage_origin, entry.usage_origin)
    totals = f"input {_count(entry.usage.input_total)}, output {_count(entry.usage.output_total)} tokens"
    return f"{totals}, {_ORIGINS.get(entry.usage_origin, entry.usage_origin)}"


def hash_words(wire: Wire) -> str:
    """Whether what was delivered is what was released of the upstream's bytes."""
    if not wire.released and wire.hash_in == wire.hash_out:
        return "nothing of the upstream's was released"
    if wire.hash_in == wire.hash_out:
        return f"in and out are equal: sha256 {wire.hash_in[:HASH_DIGITS]}…"
    return f"in and out are NOT equal: in {_short(wire.hash_in)}, out {_short(wire.hash_out)}"


def seconds(value: float) -> str:
    """`0.123 s`."""
    return f"{value:.3f} s"


def _asked(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "at", datetime.fromtimestamp(entry.at, UTC).isoformat(sep=" ", timespec="milliseconds")
    yield "protocol", f"{entry.protocol} ({entry.operation})"
    yield "model", entry.model or "none"
    yield "stream", "yes" if entry.stream else "no"
    yield "key", f"{entry.key} of {entry.owner}" if entry.owner else entry.key
    if entry.client_request_id:
        yield "client's request id", entry.client_request_id


def _attempts(attempts: tuple[AttemptLine, ...]) -> Section:
    columns = ("no", "channel", "credential", "upstream model", "start", "end", "status", "verdict", "notes")
    rows = tuple(
        (
            str(number),
            one.channel,
            one.credential,
            one.upstream_model,
            seconds(one.started_s),
            seconds(one.ended_s),
            str(one.status) if one.status is not None else "none",
            one.verdict or "none",
            "; ".join(_notes(one)),
        )
        for number, one in enumerate(attempts, 1)
    )
    return Section("attempts", rows, columns)


def _notes(attempt: AttemptLine) -> Iterator[str]:
    if attempt.reused:
        yield "connection reused"
    if attempt.replayed:
        yield "replayed on a new connection"
    if attempt.maybe_executed:
        yield "may have been executed"
    if attempt.upstream_request_id:
        yield attempt.upstream_request_id
    if attempt.detail:
        yield attempt.detail


def _attempt_words(attempt: AttemptLine) -> str:
    status = f"status {attempt.status}" if attempt.status is not None else "no status"
    took = seconds(attempt.ended_s - attempt.started_s)
    return f"{attempt.channel}: {status}, {attempt.verdict or 'no verdict'}, {took}"


def _end(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "end", entry.end
    yield "why", entry.reason or "not said"
    if entry.kind:
        yield "kind", entry.kind
    yield "fault", _FAULTS.get(entry.source, "nobody's")
    if entry.detail:
        yield "detail", entry.detail
    yield "status", str(entry.status) if entry.status is not None else "none was sent"
    if entry.early_open:
        yield "early open", "yes: the head was sent before the first event"
    if entry.served_model:
        yield "served model", entry.served_model
    if any(entry.finish_reasons):
        yield "finish reasons", ", ".join(reason or "none" for reason in entry.finish_reasons)
    yield "duration", seconds(entry.duration_s)


def _usage(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "origin", _ORIGINS.get(entry.usage_origin, entry.usage_origin)
    for name, field in _COUNTERS:
        value: int | None = getattr(entry.usage, field)
        if value is not None:
            yield name, f"{value} tokens"
    if entry.usage.inconsistent:
        yield "inconsistent", ", ".join(entry.usage.inconsistent)


def _wire(wire: Wire) -> Iterator[tuple[str, str]]:
    yield "received", f"{wire.received} bytes"
    yield "released", f"{wire.released} bytes"
    yield "removed", f"{wire.removed} bytes"
    yield "inserted", f"{wire.inserted} bytes"
    if wire.repaired:
        yield "repaired", f"{wire.repaired} bytes"
    if wire.unreadable:
        yield "unreadable", f"{wire.unreadable} events"
    yield "events", str(wire.events)
    yield "heartbeats", str(wire.heartbeats)
    yield "keepalives", str(wire.keepalives)
    yield "hashes", hash_words(wire)
    yield "first event", _after(wire.first_event_s)
    yield "last event", _after(wire.last_event_s)


def _histogram(gaps: tuple[int, ...]) -> Iterator[tuple[str, str, str]]:
    """One row per bucket, from the first to the last that is not empty."""
    filled = [number for number, count in enumerate(gaps) if count]
    names = [f"to {_limit(bound)}" for bound in GAP_BOUNDS_S] + [f"over {_limit(GAP_BOUNDS_S[-1])}"]
    for number in range(filled[0], filled[-1] + 1):
        bar = "█" * -(-gaps[number] * BAR_CELLS // max(gaps))
        yield names[number], str(gaps[number]), bar


def _limit(bound: float) -> str:
    return f"{bound * 1000:g} ms" if bound < 1 else f"{bound:g} s"


def _insertions(wire: Wire) -> Section:
    rows = [(f"at byte {offset}", f"{size} bytes") for offset, size in wire.insertions[:SHOWN_INSERTIONS]]
    if (left := len(wire.insertions) - SHOWN_INSERTIONS) > 0:
        kept = f" (only the first {INSERTIONS} are kept)" if len(wire.insertions) == INSERTIONS else ""
        rows.append(("and", f"{left} more{kept}"))
    return Section("inserted into the delivered body", tuple(rows))


def _byte_words(wire: Wire) -> str:
    parts = f"received {wire.received}, released {wire.released}, removed {wire.removed}, inserted {wire.inserted}"
    return f"{parts} ({_keepalives(wire.keepalives)})" if wire.keepalives else parts


def _keepalives(number: int) -> str:
    return "1 keepalive" if number == 1 else f"{number} keepalives"


def _after(at: float | None) -> str:
    return f"after {seconds(at)}" if at is not None else "none"


def _count(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _short(digest: str) -> str:
    return f"{digest[:HASH_DIGITS]}…" if digest else "none"
