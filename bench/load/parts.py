"""The parts of the load run: which work, for how long, quick or full."""

from dataclasses import replace

from bench.load.protocols import CHAT, PROTOCOLS
from bench.load.rounds import Part

DEFAULT = ("streams", "responses", "messages", "gemini", "tls", "short")
QUICK = ("streams", "short")
NAMES = (*DEFAULT, "rate", "idle", "idle-tls")
_IDLE_OPENS_S = 300.0  # streams opened per second; a TLS handshake takes about a millisecond on each side
_FULL_PHASES = ["--ramp-s", "1.5", "--warm-s", "1.5", "--window-s", "6", "--churn-s", "5"]
_QUICK_PHASES = ["--ramp-s", "1", "--warm-s", "0.5", "--window-s", "3", "--churn-s", "2.5"]
_FULL_SHORT = ["--warm-s", "0.5", "--window-s", "4"]
_QUICK_SHORT = ["--warm-s", "0.5", "--window-s", "2"]


def parts_by_name(
    *,
    quick: bool,
    streams: int,
    idle_streams: int,
    pace_ms: float,
    connections: int,
    rate: float,
    rounds: int | None,
) -> dict[str, Part]:
    """Every part; `rate` is in requests per second, `pace_ms` the time between two events of a stream."""
    rounds = rounds or (1 if quick else 4)
    phases = _QUICK_PHASES if quick else _FULL_PHASES
    short = ["short", "--connections", str(connections), *(_QUICK_SHORT if quick else _FULL_SHORT)]
    stream = ["streams", "--streams", str(streams), "--pace-ms", str(pace_ms), *phases]
    idle = ["idle", "--streams", str(idle_streams), "--window-s", "25", "--ramp-s", str(idle_streams / _IDLE_OPENS_S)]
    work = f"{streams} streams, an event per {pace_ms:g} ms each"
    silent = f"{idle_streams} streams that fall silent after one event"
    parts = [
        Part(
            "streams" if protocol is CHAT else protocol.name,
            f"{protocol.title}, {work}",
            "event",
            [*stream, "--protocol", protocol.name],
            pace_ms=pace_ms,
        )
        for protocol in PROTOCOLS.values()
    ]
    parts += [
        Part("tls", f"{CHAT.title}, {work}, TLS upstream", "event", stream, tls=True, pace_ms=pace_ms, direct=False),
        Part("short", f"short requests, {connections} at a time, closed loop", "request", short),
        Part("rate", f"short requests, {rate:g} per second", "request", [*short, "--rate", str(rate)]),
    ]
    parts = [replace(part, rounds=rounds, closing=not quick) for part in parts]
    parts += [
        Part("idle", silent, "stream", idle, closing=False, direct=False, restart=True),
        Part(
            "idle-tls", f"{silent}, TLS upstream", "stream", idle, tls=True, closing=False, direct=False, restart=True
        ),
    ]
    return {part.name: part for part in parts}
