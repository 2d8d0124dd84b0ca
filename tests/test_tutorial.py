"""The tutorial is true: its commands run as they are printed, in three shells, and print what it says they do.

Blocks that begin with `# terminal N` are typed into that terminal's shell; the text block behind must appear there,
line by line, in this order. Only ports are other ones, so that tests can run side by side; numbers, times, ids and
hashes in what is printed may be any. A text block that itself begins with `# terminal N` is what Ctrl-C brings there.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.cli.providers import PROVIDERS
from tests.cli.served import free_port

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tutorial" / "first-stream.md"
BLOCK = re.compile(r"^```(?P<language>sh|text)\n(?P<body>.*?)^```$", re.M | re.S)
TERMINAL = re.compile(r"# terminal (\d)\n")
PATIENCE_S = 30.0
POLL_S = 0.02
VARIABLE = re.compile(r"…|hr_[0-9a-z]{26}|\b[0-9a-f]{64}\b|[0-9]+(?:[.:-][0-9]+)*| +")
"""What a line says otherwise each time: paths, ids, hashes, numbers, times, and the columns that follow from them."""

pytestmark = pytest.mark.sdk


@dataclass(frozen=True)
class Step:
    """What is typed into a terminal, and what must appear there; nothing is typed where Ctrl-C is pressed."""

    terminal: str
    typed: str
    lines: tuple[str, ...]


def steps() -> Iterator[Step]:
    """The page's steps, in its order."""
    blocks = [(match["language"], match["body"]) for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
    followed = [*blocks[1:], ("", "")]
    for (language, body), (next_language, next_body) in zip(blocks, followed, strict=True):
        if not (found := TERMINAL.match(body)):
            continue
        rest = body[found.end() :]
        if language == "text":
            yield Step(found[1], "", tuple(rest.splitlines()))
        else:
            yield Step(found[1], rest, tuple(next_body.splitlines()) if next_language == "text" else ())


def pattern(line: str) -> re.Pattern[str]:
    """The line, with anything in place of what varies."""
    text, position = "", 0
    for found in VARIABLE.finditer(line):
        text += re.escape(line[position : found.start()])
        text += " +" if found[0].startswith(" ") else r"\S*" if found[0] != "…" else ".*"
        position = found.end()
    return re.compile(text + re.escape(line[position:].rstrip()) + " *")


class Terminal:
    """A shell that types nothing by itself; what it and its programs print goes to one file."""

    def __init__(self, process: "subprocess.Popen[str]", output: Path) -> None:
        self.process = process
        self._output = output
        self._read = 0

    def type(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def press_ctrl_c(self) -> None:
        """Interrupt what runs in the foreground."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGINT)

    def await_lines(self, expected: tuple[str, ...]) -> None:
        """Wait until these lines have appeared, one after the other, behind those that were waited for before."""
        deadline = time.monotonic() + PATIENCE_S
        for line in filter(str.strip, expected):
            wanted = pattern(line)
            while not self._advance(wanted):
                assert time.monotonic() < deadline, f"not printed: {line!r}; after it came:\n{self._rest()}"
                time.sleep(POLL_S)

    def _advance(self, wanted: re.Pattern[str]) -> bool:
        position = self._read
        for line in self._rest().splitlines(keepends=True):
            position += len(line.encode())
            if line.endswith("\n") and wanted.fullmatch(line.rstrip("\n")):
                self._read = position
                return True
        return False

    def _rest(self) -> str:
        return self._output.read_bytes()[self._read :].decode()


@contextmanager
def terminal(folder: Path, output: Path) -> Iterator[Terminal]:
    """A shell in the newcomer's folder; what still runs in it at the end is ended."""
    known = {name for one in PROVIDERS for name in (*one.variables, one.base_variable)}
    environ = {name: value for name, value in os.environ.items() if name not in known}
    environ |= {"PATH": f"{Path(sys.executable).parent}:{environ['PATH']}", "PYTHONUNBUFFERED": "1", "TERM": "dumb"}
    with (
        output.open("wb") as file,
        subprocess.Popen(
            ["sh"], cwd=folder, env=environ, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        one = Terminal(process, output)
        try:
            yield one
        finally:
            one.press_ctrl_c()
            assert process.stdin is not None
            process.stdin.close()
            process.wait(PATIENCE_S)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the children of a shell are found in /proc")
def test_the_tutorial(tmp_path: Path) -> None:
    folder = tmp_path / "first-stream"
    folder.mkdir()
    ports = {"9090": str(free_port()), "8080": str(free_port())}
    with ExitStack() as stack:
        terminals = {number: stack.enter_context(terminal(folder, tmp_path / f"terminal-{number}")) for number in "123"}
        taken = list(steps())
        assert len(taken) >= 8
        for step in taken:
            if step.typed:
                terminals[step.terminal].type(re.sub(r"\b(9090|8080)\b", lambda port: ports[port[0]], step.typed))
            else:
                terminals[step.terminal].press_ctrl_c()
            terminals[step.terminal].await_lines(step.lines)
    assert {"headrace.yaml", "headrace.key", "headrace-data", "hello.py", "ask.sh", "body.sse"} <= {
        path.name for path in folder.iterdir()
    }
