"""An entry for people: first its summary, then each attempt, the end, the usage, and the course on the wire.

`sections` tells all of it, `brief` the few lines that the demo prints below each of its shows. What is nought and means
nothing by being so is left out; `--json` has everything.
"""

from collections.abc import Iterator

import msgspec

from headrace.cli.entry_summary import (
    ORIGINS,
    amount_words,
    attempt_words,
    end_words,
    fault_words,
    seconds,
    summary,
    total_words,
    usage_words,
)
from headrace.cli.moments import words_of
from headrace.cli.output import Section
from headrace.config.money import show_nano
from headrace.model.entry import AttemptLine, Entry, Money, Wire
from headrace.model.limits import NANO
from headrace.relay.trace import GAP_BOUNDS_S, INSERTIONS
from headrace.state.errands import Amended

BAR_CELLS = 32
SHOWN_INSERTIONS = 8
SHOWN_GAPS = 3
HASH_DIGITS = 16

_COUNTERS = (
    ("input", "input_total"),
    ("of it cached", "cached_input"),
    ("of it written to cache", "cache_write"),
    ("of that for 5 minutes", "cache_write_5m"),
    ("of that for half an hour", "cache_write_30m"),
    ("of that for an hour", "cache_write_1h"),
    ("of that for 12 hours", "cache_write_12h"),
    ("of it tools' results", "tool_input"),
    ("of it audio", "audio_input"),
    ("of it images", "image_input"),
    ("of it video", "video_input"),
    ("of it documents", "document_input"),
    ("output", "output_total"),
    ("of it reasoning", "reasoning"),
    ("of it audio", "audio_output"),
    ("of it images", "image_output"),
    ("accepted predictions", "accepted_prediction"),
    ("rejected predictions", "rejected_prediction"),
)
_TOTALS = frozenset({"input_total", "output_total"})


def sections(entry: Entry, amended: Amended | None = None) -> Iterator[Section]:
    """The whole entry: the summary, then everything in the order of its course. `amended` tells that its money was
    another when it was written."""
    yield Section(f"exchange {entry.id}", tuple(summary(entry)))
    if entry.attempts:
        yield attempts_section(entry.attempts)
    yield Section("end", tuple(_end(entry)))
    yield Section("usage", tuple(_usage(entry)))
    yield Section("money, in currency units", tuple(_money(entry.money, amended)))
    yield Section("wire", tuple(_wire(entry.wire)))
    if any(entry.wire.gaps):
        yield Section("gaps between events", tuple(_histogram(entry.wire.gaps)))
    if entry.wire.longest_gaps:
        rows = tuple((f"before event {number}", seconds(gap)) for number, gap in entry.wire.longest_gaps)
        yield Section("longest gaps", rows[:SHOWN_GAPS])
    if entry.wire.insertions:
        yield _insertions(entry.wire)


def brief(entry: Entry) -> Section:
    """The entry in a few lines."""
    rows = [
        ("ended", end_words(entry)),
        ("fault", fault_words(entry)),
        ("went to", attempt_words(entry.attempts)),
        ("tokens", usage_words(entry)),
        ("first event", _after(entry.wire.first_event_s)),
        ("bytes", _byte_words(entry.wire)),
        ("hashes", hash_words(entry.wire)),
    ]
    return Section(f"entry {entry.id}", tuple(rows))


def hash_words(wire: Wire) -> str:
    """Whether what was delivered is what was released of the upstream's bytes."""
    if not wire.released and wire.hash_in == wire.hash_out:
        return "nothing of the upstream's was released"
    if wire.hash_in == wire.hash_out:
        return f"in and out are equal: sha256 {wire.hash_in[:HASH_DIGITS]}…"
    return f"in and out are NOT equal: in {_short(wire.hash_in)}, out {_short(wire.hash_out)}"


def attempts_section(attempts: tuple[AttemptLine, ...]) -> Section:
    """One row for each upstream request."""
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
    if attempt.cost is not None:
        yield f"cost {show_nano(attempt.cost)}"
    if attempt.detail:
        yield attempt.detail


def _end(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "end", entry.end
    yield "why", entry.reason or "not said"
    if entry.kind:
        yield "kind", entry.kind
    if entry.detail:
        yield "detail", entry.detail
    yield "status", str(entry.status) if entry.status is not None else "none was sent"
    if entry.early_open:
        yield "early open", "yes: the head was sent before the first event"
    if entry.served_model:
        yield "served model", entry.served_model
    if any(entry.finish_reasons):
        yield "finish reasons", ", ".join(reason or "none" for reason in entry.finish_reasons)
    if entry.client_request_id:
        yield "client's request id", entry.client_request_id


def _usage(entry: Entry) -> Iterator[tuple[str, str]]:
    yield "origin", ORIGINS.get(entry.usage_origin, entry.usage_origin)
    for name, field in _COUNTERS:
        value: int | None = getattr(entry.usage, field)
        if value or (value is not None and field in _TOTALS):
            yield name, f"{value} tokens"
    for name, calls in msgspec.structs.asdict(entry.usage.calls).items():
        if calls:
            yield name.replace("_", " "), "1 call" if calls == 1 else f"{calls} calls"
    for extra in entry.usage.extra:
        by = extra.model or "a model that was not named"
        yield extra.kind.replace("_", " "), f"{total_words(extra.usage)}, by {by}"
    served = ", ".join(filter(None, (entry.usage.tier, entry.usage.speed, entry.usage.geo)))
    if served:
        yield "tier", served
    if entry.usage.inconsistent:
        yield "inconsistent", ", ".join(entry.usage.inconsistent)


def _money(money: Money, amended: Amended | None) -> Iterator[tuple[str, str]]:
    yield "cost", amount_words(money.cost)
    yield "charge", amount_words(money.charge)
    if money.counted != money.charge:
        yield "counted in budgets", show_nano(money.counted)
    if money.price:
        yield "price", f"version {money.price}"
    if money.multiplier != NANO:
        yield "multiplier", show_nano(money.multiplier)
    if money.unpriced:
        yield "without a price", ", ".join(money.unpriced)
    if amended is not None:
        original = amended.original
        times = "once" if amended.revision == 1 else f"{amended.revision} times"
        yield "rated again", f"{times}, last at {words_of(amended.at)}: {amended.reason}"
        yield "superseded cost", f"{amount_words(original.cost)} (price {original.price or 'none'})"
        yield "superseded charge", amount_words(original.charge)


def _wire(wire: Wire) -> Iterator[tuple[str, str]]:
    yield "received", f"{wire.received} bytes"
    yield "released", f"{wire.released} bytes"
    for name, value, unit in (
        ("removed", wire.removed, " bytes"),
        ("inserted", wire.inserted, " bytes"),
        ("repaired", wire.repaired, " bytes"),
        ("unreadable", wire.unreadable, " events"),
        ("events", wire.events, ""),
        ("heartbeats", wire.heartbeats, ""),
        ("keepalives", wire.keepalives, ""),
    ):
        if value:
            yield name, f"{value}{unit}"
    yield "hashes", hash_words(wire)
    if wire.first_event_s is not None:
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


def _short(digest: str) -> str:
    return f"{digest[:HASH_DIGITS]}…" if digest else "none"
