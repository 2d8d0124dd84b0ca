"""Writes what was measured: lines while it runs, tables at its end, JSON, the generated part of the reference page."""

from dataclasses import asdict
from pathlib import Path

import msgspec

from bench.load.figures import Figures, Verdict, figures_from, verdicts_from
from bench.load.rounds import DISTURBED_CORES, Outcome, Part, Round

BEGIN, END = "<!-- figures: begin (python -m bench.load --write-docs) -->", "<!-- figures: end -->"
_STOLEN_CORES = 0.02
_PLOT = "![CPU per unit of work, gateways side by side](performance.svg)"


def line_from_round(part: Part, turn: Round) -> str:
    """One line for the terminal as soon as a round is over."""
    result, window = turn.result, turn.result.window
    words = [f"{part.name:9} {turn.number} {turn.gateway:9}"]
    if part.unit == "stream":
        words.append(
            f"{turn.worker_rss_bytes / 1024:6.1f} KiB/stream, keepalive worst {result.keepalive.max_ms:.0f} ms"
        )
    else:
        words.append(f"{turn.worker_us:6.2f} us/{part.unit}  {window.done / window.duration_s:7.0f} {part.unit}s/s")
    if result.delay.count:
        words.append(f"delay {_pair(result.delay.p50_ms, result.delay.p99_ms)} ms")
    words.append(f"first {_pair(result.first.p50_ms, result.first.p99_ms)} ms")
    words.append(
        f"cores: upstream {turn.upstream_cores:.2f} client {turn.client_cores:.2f} foreign {turn.foreign_cores:.2f}"
    )
    if window.stolen_cores > _STOLEN_CORES:
        words.append(f"stolen {window.stolen_cores:.2f}")
    if turn.foreign_cores > DISTURBED_CORES:
        words.append("DISTURBED")
    if result.faults:
        words.append(f"faults {result.faults}")
    lines = ["  ".join(words)]
    lines += [f"{'':20}{us:6.2f} us/{part.unit}  other process {name}" for name, us in turn.others_us.items()]
    return "\n".join(lines)


def _pair(p50_ms: float, p99_ms: float) -> str:
    return f"{p50_ms:.2f} / {p99_ms:.2f}"


def table_from(outcome: Outcome) -> str:
    """A Markdown table of one part, and its load line."""
    part = outcome.part
    lines = [f"### {part.title}", ""]
    lines += _idle_rows(outcome) if part.unit == "stream" else _work_rows(outcome)
    direct = outcome.direct
    if direct:
        result = direct.result
        times = result.delay if result.delay.count else result.first
        lines += [
            "",
            f"The load alone, without a gateway: {result.window.done / result.window.duration_s:.0f} {part.unit}s/s, "
            f"{'delay' if result.delay.count else 'reply'} {_pair(times.p50_ms, times.p99_ms)} ms, "
            f"upstream {direct.upstream_cores:.2f} and client {direct.client_cores:.2f} of a core.",
        ]
    return "\n".join(lines)


def verdict_table_from(outcomes: list[Outcome]) -> str:
    """A Markdown table of the contract in all parts: first each part's CPU or memory, then the rest."""
    judged = []
    for outcome in outcomes:
        disturbed = any(item.foreign_cores > DISTURBED_CORES for item in figures_from(outcome))
        judged += [
            (
                place,
                f"| {outcome.part.name} | {item.what} | {item.measured:.2f} | {item.limit:g} {item.unit} "
                f"| {_judged(item, disturbed=disturbed)} |",
            )
            for place, item in enumerate(verdicts_from(outcome))
        ]
    if not judged:
        return "No verdicts: they take two gateways in one run, such as nginx and headrace, or headrace and limited."
    rows = [row for place, row in judged if not place] + [row for place, row in judged if place]
    return "\n".join(["| part | contract | measured | limit | |", "| --- | --- | --- | --- | --- |", *rows])


def _judged(verdict: Verdict, *, disturbed: bool) -> str:
    word = "holds" if verdict.holds else "FAILS"
    return f"{word}, disturbed" if disturbed else word


def _work_rows(outcome: Outcome) -> list[str]:
    unit = outcome.part.unit
    head = ["gateway", f"CPU µs per {unit}", "rounds", "x nginx", "other processes µs", f"{unit}s/s"]
    head += ["delay ms", "gap p99 ms", "first event ms"] if unit == "event" else ["reply ms"]
    rows = [head, ["---"] * len(head)]
    for item in figures_from(outcome):
        each = ", ".join(f"{us:.1f}" for us in item.worker_us)
        row = [item.gateway, f"**{item.median_us:.1f}**", each, f"{item.ratio:.2f}", f"{item.others_us:.1f}"]
        row.append(f"{item.per_second:.0f}")
        if unit == "event":
            row += [_pair(item.delay.p50_ms, item.delay.p99_ms), f"{item.gap.p99_ms:.2f}"]
        row.append(_pair(item.first.p50_ms, item.first.p99_ms))
        rows.append(row)
    return ["| " + " | ".join(row) + " |" for row in rows] + _notes(figures_from(outcome))


def _idle_rows(outcome: Outcome) -> list[str]:
    rows = ["| gateway | RSS KiB per stream | x nginx | keepalive, worst interval |", "| --- | --- | --- | --- |"]
    for item in figures_from(outcome):
        worst = f"{item.keepalive_max_ms:.0f} ms" if item.keepalive_max_ms else "none"
        rows.append(f"| {item.gateway} | **{item.rss_bytes / 1024:.1f}** | {item.rss_ratio:.2f} | {worst} |")
    return rows + _notes(figures_from(outcome))


def _notes(figures: list[Figures]) -> list[str]:
    notes = [f"Faults of {item.gateway}: {item.faults}." for item in figures if item.faults]
    worst = max((item.foreign_cores for item in figures), default=0.0)
    if worst > DISTURBED_CORES:
        notes.append(f"Disturbed: other processes of the machine used up to {worst:.2f} cores in a window.")
    stolen = max((item.stolen_cores for item in figures), default=0.0)
    if stolen > _STOLEN_CORES:
        notes.append(f"The hypervisor took up to {stolen:.2f} cores in a window.")
    return ["", *notes] if notes else []


def machine_line(machine: dict[str, str]) -> str:
    """The machine in one line."""
    return ", ".join(f"{name} {text}" for name, text in machine.items())


def write_json(path: Path, machine: dict[str, str], outcomes: list[Outcome]) -> None:
    """Everything: each round, and the figures made of them."""
    parts = [
        {
            "outcome": asdict(outcome),
            "figures": [asdict(item) for item in figures_from(outcome)],
            "verdicts": [asdict(item) | {"holds": item.holds} for item in verdicts_from(outcome)],
        }
        for outcome in outcomes
    ]
    text = msgspec.json.format(msgspec.json.encode({"machine": machine, "parts": parts}), indent=2)
    path.write_bytes(text + b"\n")


def write_page(path: Path, machine: dict[str, str], outcomes: list[Outcome]) -> None:
    """Replace the generated part of the reference page, between its two markers."""
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path}: put the two marker lines back: {BEGIN} and {END}")
    tables = [verdict_table_from(outcomes), _PLOT, *(table_from(outcome) for outcome in outcomes)]
    figures = "\n\n".join([f"Measured on: {machine_line(machine)}.", *tables])
    path.write_text(f"{before}{BEGIN}\n\n{figures}\n\n{END}{after}")
