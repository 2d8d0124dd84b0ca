"""An exchange in a few lines: what was asked, how it ended, whose fault it was, what the client saw, where it went.

It is what an operator reads first, so every line is whole by itself and says what is known, not how it is stored.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from headrace.config.money import show_nano
from headrace.model.entry import AttemptLine, Checkpoint, Entry, Money, Opened, Wire
from headrace.model.outcome import End
from headrace.model.problem import FACTS, Kind
from headrace.model.usage import Usage

ORIGINS = {
    "upstream": "as the upstream reported",
    "upstream_partial": "partial: the upstream's last report before the end",
    "estimated": "estimated: no upstream reported it",
    "none": "none: the upstream reported nothing",
}
FAULTS = {"client": "the client's", "gateway": "the gateway's", "upstream": "the upstream's"}
_REASONS = {
    "stall": "no progress for the stall limit",
    "total": "the limit of the whole time was over",
    "open": "no attempt brought a first event within the limit",
    "shutdown": "the gateway was shut down",
    "write_timeout": "the client took no byte for write_timeout",
    "journal_full": "the disk of the journal was full",
    "worker_lost": "its process died",
    "journal_damaged": "its process died, and its journal is damaged",
    "internal": "a fault of the gateway",
}
_GOOD = frozenset({End.COMPLETED.value, End.INCOMPLETE.value, End.FAILED.value})
_LOST = frozenset({"worker_lost", "journal_damaged"})


def summary(entry: Entry) -> Iterator[tuple[str, str]]:
    """The lines of an entry, by name."""
    yield from _asked(entry)
    yield "ended", f"{end_words(entry)}, after {seconds(entry.duration_s)}"
    yield "fault", fault_words(entry)
    yield "client saw", client_words(entry)
    if entry.attempts:
        yield "went to", attempt_words(entry.attempts)
    yield "tokens", usage_words(entry)
    yield "money", money_words(entry.money)


def open_summary(opened: Opened, reached: Checkpoint | None) -> Iterator[tuple[str, str]]:
    """The lines of an exchange that has no entry; `reached` is its last checkpoint."""
    yield from _asked(opened)
    yield "ended", "not yet: it runs, or its process died and that is not settled so far"
    if reached is None:
        yield "so far", "no checkpoint was written"
        return
    yield "so far", f"at the last checkpoint, after {seconds(reached.duration_s)}"
    status = f"status {reached.status}, " if reached.status is not None else ""
    yield "client saw", f"{status}{_events(reached.wire)}{_keepalives(reached.wire)}"
    if reached.attempts:
        yield "went to", attempt_words(reached.attempts)
    yield "tokens", usage_words(reached)
    yield "money", money_words(reached.money)


def end_words(entry: Entry) -> str:
    """`interrupted: upstream was cut (upstream_interrupted)`; `refused: model_not_found, no model of this name …`."""
    words = entry.end
    if entry.reason not in ("", entry.end):
        words += f": {_REASONS.get(entry.reason, entry.reason)}"
    if entry.kind and entry.kind == entry.reason:
        words += f" ({_cause(entry.kind)})" if entry.kind not in _REASONS and _cause(entry.kind) else ""
    elif entry.kind and entry.kind not in _REASONS:
        words += f" ({entry.kind})"
    return words


def fault_words(entry: Entry) -> str:
    """Whose fault the end was; of an upstream, which channel."""
    if entry.source not in FAULTS:
        return "nobody's"
    words = FAULTS[entry.source]
    if entry.source == "upstream" and entry.attempts:
        words += f" (channel {entry.attempts[-1].channel})"
    return words


def client_words(entry: Entry) -> str:
    """What came to the client, from its own side."""
    wire = entry.wire
    if entry.end == End.REFUSED.value:
        return _refusal(entry)
    status = f"status {entry.status}" if entry.status is not None else "no status"
    if entry.end == End.CLIENT_GONE.value:
        return f"{status} and {_events(wire)}; then it left" if wire.released else "nothing: it left before"
    if entry.reason in _LOST:
        return f"{status} and {_events(wire)} up to the last checkpoint; then the connection broke"
    if not wire.released and not wire.inserted:
        return f"{status} with the error {entry.kind}" if entry.status is not None else "nothing: it had gone"
    if entry.end in _GOOD:
        whole = "the whole stream, " if wire.events else "the whole reply, "
        words = f"{status} and {whole}{_events(wire)}{_keepalives(wire)}"
        return f"{words}; the upstream's error is its end" if entry.end == End.FAILED.value else words
    last = "the error event" if _has_error_event(wire) else "a cut connection"
    return f"{status}, {_events(wire)}{_keepalives(wire)}, then {last}"


def attempt_words(attempts: tuple[AttemptLine, ...]) -> str:
    """`east: 503 upstream_error after 0.100 s; then west: 200 after 1.399 s`."""
    return "; then ".join(map(_attempt, attempts))


def usage_words(entry: Entry | Checkpoint) -> str:
    """The totals, and where they come from."""
    origin = ORIGINS.get(entry.usage_origin, entry.usage_origin)
    if not entry.usage.known:
        return origin
    return f"{total_words(entry.usage)}{_others(entry.usage)}; {origin}"


def total_words(usage: Usage) -> str:
    """`9 in (4 of them from a cache), 20 out`."""
    cached = f" ({usage.cached_input} of them from a cache)" if usage.cached_input else ""
    thought = f" ({usage.reasoning} of them reasoning)" if usage.reasoning else ""
    return f"{_count(usage.input_total)} in{cached}, {_count(usage.output_total)} out{thought}"


def money_words(money: Money) -> str:
    """`cost 0.00123, charge 0.001353`; in currency units, exactly."""
    if money.cost is None:
        return f"cost not known: {', '.join(map(_unpriced, money.unpriced)) or 'nothing was priced'}"
    return f"cost {show_nano(money.cost)}, charge {amount_words(money.charge)}"


def amount_words(nano: int | None) -> str:
    """Currency units, exactly."""
    return "not known" if nano is None else show_nano(nano)


def seconds(value: float) -> str:
    """`0.123 s`."""
    return f"{value:.3f} s"


def _asked(request: Entry | Opened) -> Iterator[tuple[str, str]]:
    model = request.model or "no model"
    how = f"{request.operation or request.protocol}{', streaming' if request.stream else ''}"
    who = f"{request.key} of {request.owner}" if request.owner else request.key
    yield "asked", f"{model} through {how}; key {who}"
    yield "at", datetime.fromtimestamp(request.at, UTC).isoformat(sep=" ", timespec="milliseconds")


def _cause(kind: str) -> str:
    """What a kind means, to stand in a sentence."""
    known = {one.value for one in Kind}
    if kind not in known:
        return ""
    cause = FACTS[Kind(kind)].cause.rstrip(".")
    return cause[0].lower() + cause[1:]


def _refusal(entry: Entry) -> str:
    if entry.early_open:
        return "status 200 and an open stream without an event, then the error event"
    if entry.status is None:
        return "nothing: it had gone"
    if not entry.kind:
        return f"status {entry.status}, in the upstream's own words"
    return f"status {entry.status} with the error {entry.kind}"


def _events(wire: Wire) -> str:
    size = f"{wire.released + wire.inserted} bytes"
    if not wire.events:
        return size
    first = f", the first after {seconds(wire.first_event_s)}" if wire.first_event_s is not None else ""
    return f"{wire.events} {'event' if wire.events == 1 else 'events'} ({size}{first})"


def _keepalives(wire: Wire) -> str:
    if not wire.keepalives:
        return ""
    return ", 1 keepalive" if wire.keepalives == 1 else f", {wire.keepalives} keepalives"


def _has_error_event(wire: Wire) -> bool:
    """Whether the gateway's last insertion ends the body and is more than a keepalive or a missing line end."""
    if sum(size for _, size in wire.insertions) != wire.inserted:
        return True  # more insertions than are kept; the clean end is by far the likelier one
    others = len(wire.insertions) - wire.keepalives - (1 if wire.repaired else 0)
    return others > 0 and sum(wire.insertions[-1]) == wire.released + wire.inserted


def _attempt(attempt: AttemptLine) -> str:
    status = "no answer" if attempt.status is None else str(attempt.status)
    verdict = f" {attempt.verdict}" if attempt.verdict not in ("", "relay") else ""
    return f"{attempt.channel}: {status}{verdict} after {seconds(attempt.ended_s - attempt.started_s)}"


def _others(usage: Usage) -> str:
    """What other models used, in brief: it is in no total."""
    into = sum(one.usage.input_total or 0 for one in usage.extra)
    out = sum(one.usage.output_total or 0 for one in usage.extra)
    return f", and by other models {into} in, {out} out" if usage.extra else ""


def _unpriced(word: str) -> str:
    """As a word of `Money.unpriced` reads in a sentence; `price` stands for all of it."""
    if word.startswith("unknown "):
        return f"the {word.removeprefix('unknown ')} is not known"
    return "the model has no price" if word == "price" else f"no price for {word}"


def _count(value: int | None) -> str:
    return "an unknown number" if value is None else str(value)
