"""The load client process: one run against one port, one JSON line as the result.

It reads the CPU clocks of `--pids` (the gateway's processes, the upstream) and its own at the very moments when it
reads its counters, so CPU and events belong to the same window.
"""

import argparse
import gc
import os
import sys
from collections.abc import Coroutine

import uvloop

from bench.load import measure
from bench.load.idle import run_idle
from bench.load.protocols import PROTOCOLS
from bench.load.short import ShortPlan, run_short
from bench.load.streams import StreamPlan, run_streams


def _run_from(options: argparse.Namespace, pids: list[int]) -> Coroutine[None, None, measure.Result]:
    if options.mode == "streams":
        plan = StreamPlan(
            options.streams,
            options.pace_ms,
            options.ramp_s,
            options.warm_s,
            options.window_s,
            options.churn_s,
            PROTOCOLS[options.protocol],
        )
        return run_streams(options.port, plan, pids)
    if options.mode == "idle":
        return run_idle(options.port, options.streams, options.ramp_s, options.window_s, pids)
    short = ShortPlan(options.connections, options.warm_s, options.window_s, options.rate)
    return run_short(options.port, short, pids)


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["streams", "short", "idle"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pids", type=lambda text: [int(pid) for pid in text.split(",") if pid], default=[])
    parser.add_argument("--protocol", choices=list(PROTOCOLS), default="chat", help="of the streams")
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--pace-ms", type=float, default=20.0, help="must be the upstream's")
    parser.add_argument("--ramp-s", type=float, default=2.0)
    parser.add_argument("--warm-s", type=float, default=2.0)
    parser.add_argument("--window-s", type=float, default=10.0)
    parser.add_argument("--churn-s", type=float, default=4.0)
    parser.add_argument("--connections", type=int, default=64, help="short requests: concurrency")
    parser.add_argument("--rate", type=float, default=0.0, help="short requests per second; 0: closed loop")
    options = parser.parse_args()
    gc.freeze()
    gc.disable()
    result = uvloop.run(_run_from(options, [*options.pids, os.getpid()]))
    sys.stdout.buffer.write(measure.json_from_result(result) + b"\n")


if __name__ == "__main__":
    main()
