"""`python -m bench.load`: the paired load run. See bench/README.md."""

import argparse
import resource
import signal
import sys
from pathlib import Path

from bench.load import headrace, minimal, nginx, parts, plot, report
from bench.load.figures import verdicts_from
from bench.load.gateway import ROOT, GatewayError, Launcher
from bench.load.machine import describe_machine
from bench.load.rounds import Calm, Outcome, Part, Round, run_part

GATEWAYS: dict[str, Launcher] = {
    "nginx": nginx.launch,
    "headrace": headrace.launch,
    "limited": headrace.launch_limited,
    "valkey": headrace.launch_valkey,
    "minimal": minimal.launch,
}
_DOCS = ROOT / "docs" / "reference"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one short round of streams and short requests, under 60 s"
    )
    parser.add_argument("--parts", help=f"of: {' '.join(parts.NAMES)} (default {','.join(parts.DEFAULT)})")
    parser.add_argument("--gateways", default="nginx,headrace", help=f"in turn, of: {' '.join(GATEWAYS)}")
    parser.add_argument("--rounds", type=int, help="rounds per part")
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--idle-streams", type=int, default=9000)
    parser.add_argument("--pace-ms", type=float, default=20.0, help="between two events of a stream")
    parser.add_argument("--connections", type=int, default=64, help="concurrency of short requests")
    parser.add_argument("--rate", type=float, default=4000.0, help="short requests per second in the part `rate`")
    parser.add_argument(
        "--quiet-s", type=float, default=0.0, help="before each turn wait up to this long for other work to pause"
    )
    parser.add_argument(
        "--patience", type=int, default=0, help="repeat a disturbed turn so often, keep the least disturbed"
    )
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--write-docs", action="store_true", help="write table, JSON and plot into docs/reference")
    return parser.parse_args()


def _chosen(text: str, known: list[str], what: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        sys.exit(f"{what} {', '.join(unknown) or '(none)'}: choose from {', '.join(known)}")
    return names


def _print_round(part: Part, turn: Round) -> None:
    print(report.line_from_round(part, turn), flush=True)


def _prepare() -> None:
    """Ended by SIGTERM, still end what was started; and allow as many descriptors as the system grants."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main() -> None:
    """Run the chosen parts; exit 1 where a line of the contract fails or a reply was wrong."""
    options = _options()
    _prepare()
    known = parts.parts_by_name(
        quick=options.quick,
        streams=options.streams,
        idle_streams=options.idle_streams,
        pace_ms=options.pace_ms,
        connections=options.connections,
        rate=options.rate,
        rounds=options.rounds,
    )
    names = _chosen(options.parts or ",".join(parts.QUICK if options.quick else parts.DEFAULT), list(known), "--parts")
    launchers = {name: GATEWAYS[name] for name in _chosen(options.gateways, list(GATEWAYS), "--gateways")}
    machine = describe_machine()
    print(report.machine_line(machine), flush=True)
    calm = Calm(options.quiet_s, options.patience)
    try:
        outcomes = [run_part(known[name], launchers, calm, _print_round) for name in names]
    except GatewayError as error:
        sys.exit(str(error))
    for outcome in outcomes:
        print(f"\n{report.table_from(outcome)}")
    print(f"\n{report.verdict_table_from(outcomes)}")
    if options.json:
        report.write_json(options.json, machine, outcomes)
    if options.write_docs:
        report.write_json(_DOCS / "performance.json", machine, outcomes)
        plot.write_plot(_DOCS / "performance.svg", outcomes)
        report.write_page(_DOCS / "performance.md", machine, outcomes)
    sys.exit(0 if _good(outcomes) else 1)


def _good(outcomes: list[Outcome]) -> bool:
    turns = [turn for outcome in outcomes for rounds in outcome.rounds.values() for turn in rounds]
    faultless = not any(turn.result.faults for turn in turns)
    return faultless and all(item.holds for outcome in outcomes for item in verdicts_from(outcome))


if __name__ == "__main__":
    main()
