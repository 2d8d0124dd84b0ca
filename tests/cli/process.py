"""Runs `headrace` as its users do: a process of its own, read line by line, ended by signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

COMMAND = [sys.executable, "-W", "error", "-m", "headrace"]
TIMEOUT_S = 20.0
KEY = "sk-test-0123456789abcdef"


def environ(**more: str) -> dict[str, str]:
    """Plain output of a known width, whoever runs the tests."""
    return os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUNBUFFERED": "1"} | more


def run(*arguments: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environ(**more),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


class Running:
    """A command that runs on; its stdout and stderr are read in turn."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self.stdout = process.stdout
        self.stderr = process.stderr

    def line_with(self, text: str) -> str:
        """The next line of stdout that holds `text`."""
        for line in self.stdout:
            if text in line:
                return line.rstrip("\n")
        raise AssertionError(f"ended without {text!r}: {self.stderr.read()}")

    def said_with(self, text: str) -> str:
        """The next line of stderr that holds `text`."""
        for line in self.stderr:
            if text in line:
                return line.rstrip("\n")
        raise AssertionError(f"ended without {text!r} on stderr")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Wait for its end; the exit code."""
        return self.process.wait(TIMEOUT_S)


def end(process: "subprocess.Popen[str]") -> None:
    """End it at once, its children with it: they follow a killed supervisor in their own time only."""
    for _ in range(2):
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    process.kill()


@contextmanager
def running(*arguments: str, folder: Path, command: Sequence[str] = COMMAND, **more: str) -> Iterator[Running]:
    """A command that is killed at the end of the test if it still runs."""
    with subprocess.Popen(
        [*command, *arguments],
        cwd=folder,
        env=environ(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Running(process)
        finally:
            end(process)


def configuration(folder: Path, upstream: str, *, listen: str = "127.0.0.1:0", server: str = "") -> Path:
    """A configuration file before `upstream`, a base URL; `server` adds options of that section."""
    file = folder / "headrace.yaml"
    file.write_text(
        f"""
server: {{listen: "{listen}", drain_notice: 0s{server}}}
channels:
  sim: {{base_url: "{upstream}", allow_http: true, protocols: [chat], credentials: [{{name: main, secret: sk-up}}]}}
models:
  "*": {{routes: [{{channel: sim}}]}}
keys:
  - {{name: dev, secret: {KEY}}}
"""
    )
    file.chmod(0o600)
    return file
