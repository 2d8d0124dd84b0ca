"""From rounds to the figures of the cost contract: medians, ratios to the nginx turns around, and verdicts."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median

from bench.load.measure import Spread
from bench.load.rounds import REFERENCE, Outcome, Round

_CONTRACT = "headrace"  # the contract binds this gateway only
_RATIO_LIMITS = {"event": 1.5, "request": 4.0}
_ADDED_P50_MS, _ADDED_P99_MS = 1.0, 5.0
_IDLE_RSS_BYTES, _IDLE_TLS_RATIO = 15 * 1024, 1.5
_CONTROL_US = 30.0
_ADDED_US = (
    ("limited", "headrace", "limits, holds and prices, in memory", 15.0),
    ("valkey", "limited", "limits in Valkey, over memory", 40.0),
)
"""Of two gateways in one run: what the first one's worker may take more for a request."""


@dataclass(frozen=True, slots=True)
class Times:
    """Medians over the rounds of one duration in milliseconds; `added_*` is over the nginx turns around."""

    p50_ms: float
    p99_ms: float
    added_p50_ms: float
    added_p99_ms: float


@dataclass(frozen=True, slots=True)
class Figures:
    """One gateway in one part. `worker_us` per round; `ratio` is the median of the ratios to the nginx turns around."""

    gateway: str
    worker_us: list[float]
    median_us: float
    ratio: float
    others_us: float
    per_second: float
    delay: Times
    gap: Times
    first: Times
    rss_bytes: float
    rss_ratio: float
    keepalive_max_ms: float
    faults: dict[str, int]
    foreign_cores: float
    stolen_cores: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the contract: what was measured, the limit, and whether it holds."""

    what: str
    measured: float
    limit: float
    unit: str

    @property
    def holds(self) -> bool:
        """Whether the measured value is within the limit."""
        return self.measured <= self.limit


def figures_from(outcome: Outcome) -> list[Figures]:
    """The figures of each gateway of a part, in the order of the run."""
    reference = outcome.rounds.get(REFERENCE, [])
    return [_figures(name, rounds, reference or rounds) for name, rounds in outcome.rounds.items() if rounds]


def _figures(name: str, rounds: list[Round], reference: list[Round]) -> Figures:
    pairs = _pairs(rounds, reference)
    faults: dict[str, int] = {}
    for turn in rounds:
        for fault, count in turn.result.faults.items():
            faults[fault] = faults.get(fault, 0) + count
    return Figures(
        gateway=name,
        worker_us=[turn.worker_us for turn in rounds],
        median_us=median(turn.worker_us for turn in rounds),
        ratio=median(_ratio(mine, theirs, lambda turn: turn.worker_us) for mine, theirs in pairs),
        others_us=median(sum(turn.others_us.values()) for turn in rounds),
        per_second=median(turn.result.window.done / turn.result.window.duration_s for turn in rounds),
        delay=_times(pairs, lambda turn: turn.result.delay),
        gap=_times(pairs, lambda turn: turn.result.gap),
        first=_times(pairs, lambda turn: turn.result.first),
        rss_bytes=median(turn.worker_rss_bytes for turn in rounds),
        rss_ratio=median(_ratio(mine, theirs, lambda turn: turn.worker_rss_bytes) for mine, theirs in pairs),
        keepalive_max_ms=max(turn.result.keepalive.max_ms for turn in rounds),
        faults=faults,
        foreign_cores=max(turn.foreign_cores for turn in rounds),
        stolen_cores=max(turn.result.window.stolen_cores for turn in rounds),
    )


def _pairs(rounds: list[Round], reference: list[Round]) -> list[tuple[Round, list[Round]]]:
    """Each round with the nginx turns before and after it; nginx itself with itself."""
    if rounds is reference:
        return [(turn, [turn]) for turn in rounds]
    return [(turn, reference[place : place + 2]) for place, turn in enumerate(rounds)]


def _ratio(mine: Round, theirs: list[Round], read: Callable[[Round], float]) -> float:
    around = mean(read(turn) for turn in theirs)
    return read(mine) / around if around else 0.0


def _times(pairs: list[tuple[Round, list[Round]]], read: Callable[[Round], Spread]) -> Times:
    mine = [read(turn) for turn, _ in pairs]
    theirs = [[read(turn) for turn in around] for _, around in pairs]
    return Times(
        p50_ms=median(spread.p50_ms for spread in mine),
        p99_ms=median(spread.p99_ms for spread in mine),
        added_p50_ms=median(a.p50_ms - mean(b.p50_ms for b in bs) for a, bs in zip(mine, theirs, strict=True)),
        added_p99_ms=median(a.p99_ms - mean(b.p99_ms for b in bs) for a, bs in zip(mine, theirs, strict=True)),
    )


def verdicts_from(outcome: Outcome) -> list[Verdict]:
    """What the cost contract demands of Headrace in this part, as far as the gateways that it compares did run."""
    return [*_beside_nginx(outcome), *_added(outcome)]


def _added(outcome: Outcome) -> list[Verdict]:
    """What limits add to a request: the median of the differences within a round."""
    verdicts = []
    for name, base, what, limit in _ADDED_US:
        mine, theirs = outcome.rounds.get(name), outcome.rounds.get(base)
        if mine and theirs and outcome.part.unit == "request":
            added = median(one.worker_us - other.worker_us for one, other in zip(mine, theirs, strict=True))
            verdicts.append(Verdict(f"CPU per request: {what}", added, limit, "us more"))
    return verdicts


def _beside_nginx(outcome: Outcome) -> list[Verdict]:
    found = {figures.gateway: figures for figures in figures_from(outcome)}
    unit, figures = outcome.part.unit, found.get(_CONTRACT)
    if figures is None or REFERENCE not in found:
        return []
    if unit in _RATIO_LIMITS:
        verdicts = [Verdict(f"CPU per {unit}", figures.ratio, _RATIO_LIMITS[unit], "x nginx")]
    elif outcome.part.tls:
        verdicts = [Verdict("RSS per idle stream", figures.rss_ratio, _IDLE_TLS_RATIO, "x nginx")]
    else:
        verdicts = [Verdict("RSS per idle stream", figures.rss_bytes / 1024, _IDLE_RSS_BYTES / 1024, "KiB")]
    match unit:
        case "event":
            verdicts += [
                Verdict("time to first event, median over nginx", figures.first.added_p50_ms, _ADDED_P50_MS, "ms"),
                Verdict("time to first event, p99 over nginx", figures.first.added_p99_ms, _ADDED_P99_MS, "ms"),
                Verdict("gap, median over nginx", figures.gap.added_p50_ms, _ADDED_P50_MS, "ms"),
                Verdict("gap, p99 over nginx", figures.gap.added_p99_ms, _ADDED_P99_MS, "ms"),
            ]
        case "request":
            verdicts.append(Verdict("control process per entry", figures.others_us, _CONTROL_US, "us"))
        case _:
            if figures.keepalive_max_ms:
                verdicts.append(Verdict("keepalive interval of 10 s, worst", figures.keepalive_max_ms, 11_000.0, "ms"))
    return verdicts
