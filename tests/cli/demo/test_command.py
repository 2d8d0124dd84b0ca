"""`headrace demo` as a process, and what it does when it fails."""

import asyncio
import re
import signal
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.cli.demo import command
from headrace.cli.demo.client import Answer, Arrival
from headrace.cli.demo.command import DemoError, arrival_line
from headrace.cli.demo.shows import PROMPT, SHOWS, Show
from headrace.cli.reading import Said, Sort
from tests.cli import process

QUICK = {"text": PROMPT}
ONE_SHOW = [
    sys.executable,
    "-c",
    "from headrace.cli import main; from headrace.cli.demo import command;"
    "command.SHOWS = [show for show in command.SHOWS if show.failover]; main()",
]


def test_it_shows_every_event_as_it_arrives_and_then_ends(tmp_path: Path) -> None:
    began = time.monotonic()
    with process.running("demo", "--once", folder=tmp_path, TMPDIR=str(tmp_path)) as demo:
        lines = [(time.monotonic(), line.rstrip("\n")) for line in demo.stdout]
        assert demo.end() == 0, demo.stderr.read()
        assert demo.stderr.read() == ""
    assert time.monotonic() - began < 15.0
    assert list(tmp_path.iterdir()) == [], "the temporary directory is gone"

    starts = [number for number, (_, line) in enumerate(lines) if re.match(r"\d+\. ", line)]
    assert len(starts) == len(SHOWS)
    assert lines[-1][1] == f"all {len(SHOWS)} shows were as they must be"
    parts = [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]
    stream, quiet, failover, cut = ([line for _, line in part] for part in parts)

    came = [(at, line) for at, line in parts[0] if line.startswith("+")]
    said = [float(line[1:].split()[0]) for _, line in came]
    assert said == sorted(said)
    assert came[-1][0] - came[0][0] > 0.5 * (said[-1] - said[0]) > 0.5, (
        "events are printed when they come, not at the end"
    )
    assert {"end", "usage", "wire", "attempts", "gaps between events"} <= set(stream)
    assert sum("keepalive " in line for line in quiet) >= 2
    assert any("; then healthy: 200 " in line for line in failover)
    assert sum(line.startswith("+") and "  error  " in line for line in cut) == 1
    assert sum("in and out are equal" in line for _, line in lines) == len(SHOWS)


def test_it_serves_on_until_a_signal(tmp_path: Path) -> None:
    with process.running("demo", folder=tmp_path, command=ONE_SHOW, TMPDIR=str(tmp_path)) as demo:
        url = demo.line_with("base_url:").split()[-1]
        key = demo.line_with("api_key:").split()[-1]
        body = re.search(r"-d '(.+)'$", demo.line_with("Content-Type"))
        assert body is not None
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        request = urllib.request.Request(f"{url}/chat/completions", body[1].encode(), headers)
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.read().endswith(b"data: [DONE]\n\n")
        demo.signal(signal.SIGINT)
        assert demo.end() == 0
    assert list(tmp_path.iterdir()) == []


def test_a_reader_who_leaves_ends_it_quietly(tmp_path: Path) -> None:
    with process.running("demo", "--once", folder=tmp_path, TMPDIR=str(tmp_path)) as demo:
        demo.line_with("+0.")
        demo.stdout.close()
        assert demo.end() == 1
        assert demo.stderr.read() == ""
    assert list(tmp_path.iterdir()) == []


def test_a_signal_during_the_shows_ends_it(tmp_path: Path) -> None:
    with process.running("demo", "--once", folder=tmp_path, TMPDIR=str(tmp_path)) as demo:
        demo.line_with("+0.")
        demo.signal(signal.SIGTERM)
        assert demo.end() == 1
        assert demo.stderr.read() == "stopped before the last show\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("show", "message"),
    [
        (replace(SHOWS[0], scenario=QUICK), f"{SHOWS[0].title}: the text is "),
        (replace(SHOWS[0], scenario={"status": 400}), "not of chat"),
        (replace(SHOWS[0], scenario={"raw": "data: {}\n\ndata: <\n\n"}), "not of chat"),
    ],
)
def test_what_is_not_as_it_must_be_ends_it_with_a_message(
    show: Show, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "SHOWS", (show,))
    result = CliRunner().invoke(app, ["demo", "--once"])
    assert result.exit_code == 1
    assert message in result.stderr


def test_an_entry_that_does_not_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "ENTRY_TIMEOUT_S", 0.02)
    answer = Answer(200, {"x-request-id": "hr_1"})
    with pytest.raises(DemoError, match="no entry 'hr_1'"):
        asyncio.run(command._entry(tmp_path, answer, SHOWS[0]))


def test_no_room_for_the_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    result = CliRunner().invoke(app, ["demo", "--once"])
    assert result.exit_code == 1
    assert result.stderr.startswith("the demo cannot run here: ")


@pytest.mark.parametrize(
    ("arrival", "said", "line"),
    [
        (Arrival(0.5, b"data: [DONE]\n\n"), Said(Sort.LAST), "+0.500 s  end          14 B  data: [DONE]"),
        (Arrival(12.25, b"event: x\ndata: {}\n\n"), Said(Sort.OUTPUT, "hi"),
         "+12.250 s  text         19 B  'hi'          event: x ⏎ data: {}"),
        (Arrival(0.0, b"data: \x1b[2J\n\n"), Said(Sort.ERROR), "+0.000 s  error        12 B  data: \\x1b[2J"),
    ],
)  # fmt: skip
def test_a_line_for_each_event(arrival: Arrival, said: Said, line: str) -> None:
    assert arrival_line(arrival, said) == line


def test_long_events_are_cropped_but_errors_are_not() -> None:
    long = Arrival(0.0, b"data: " + b"x" * 500 + b"\n\n")
    assert arrival_line(long, Said(Sort.OTHER)).endswith("xxx…")
    assert arrival_line(long, Said(Sort.ERROR)).endswith("x" * 500)
