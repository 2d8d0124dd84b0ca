"""What one client process measures, as it prints it: one JSON line, read back by the runner."""

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

import msgspec

from bench.load import procfs


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, 99th percentile and worst of a set of durations in milliseconds."""

    count: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0


def spread_from_ns(values: Iterable[int]) -> Spread:
    """Summarise durations in nanoseconds; all zero where there are none."""
    ordered = sorted(values)
    if not ordered:
        return Spread()
    count = len(ordered)
    p50, p99 = ordered[count // 2], ordered[min(count - 1, count * 99 // 100)]
    return Spread(count, p50 / 1e6, p99 / 1e6, ordered[-1] / 1e6)


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters at one moment. `done` counts events or requests delivered to the client."""

    at_ns: int
    done: int
    received_bytes: int
    busy_s: float
    stolen_s: float
    cpu_ns: dict[int, int]


def take_sample(pids: list[int], done: int, received_bytes: int) -> Sample:
    """Read the CPU clocks of `pids` beside the client's own counters."""
    busy_s, stolen_s = procfs.machine_cpu_s()
    return Sample(
        at_ns=time.monotonic_ns(),
        done=done,
        received_bytes=received_bytes,
        busy_s=busy_s,
        stolen_s=stolen_s,
        cpu_ns={pid: procfs.cpu_ns(pid) for pid in pids},
    )


@dataclass(frozen=True, slots=True)
class Window:
    """The steady state between two samples. `cpu_us` is microseconds of CPU per process over the window."""

    duration_s: float
    done: int
    received_bytes: int
    busy_cores: float
    stolen_cores: float
    cpu_us: dict[int, float]


def window_between(start: Sample, end: Sample) -> Window:
    """The difference of two samples."""
    duration_s = (end.at_ns - start.at_ns) / 1e9
    return Window(
        duration_s=duration_s,
        done=end.done - start.done,
        received_bytes=end.received_bytes - start.received_bytes,
        busy_cores=(end.busy_s - start.busy_s) / duration_s,
        stolen_cores=(end.stolen_s - start.stolen_s) / duration_s,
        cpu_us={pid: (end.cpu_ns[pid] - start.cpu_ns[pid]) / 1000 for pid in start.cpu_ns},
    )


@dataclass(frozen=True, slots=True)
class Result:
    """One client run. `faults` maps what went wrong to how often; a valid run has none.

    `delay`: sending stamp to arrival, per content event in the window. `gap`: between two events of a stream.
    `first`: request sent to first event (streams) or to whole reply (short). `rss_bytes`: growth per idle stream.
    """

    window: Window
    complete: int
    faults: dict[str, int] = field(default_factory=dict)
    delay: Spread = field(default_factory=Spread)
    gap: Spread = field(default_factory=Spread)
    first: Spread = field(default_factory=Spread)
    keepalive: Spread = field(default_factory=Spread)
    rss_bytes: dict[int, float] = field(default_factory=dict)


def json_from_result(result: Result) -> bytes:
    """One line."""
    return msgspec.json.encode(asdict(result))


def result_from_json(line: bytes) -> Result:
    """Read the line back, with its types checked."""
    return msgspec.json.decode(line, type=Result)
