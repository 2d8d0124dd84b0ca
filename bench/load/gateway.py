"""How a process under test is started, found out about and ended, whatever it is.

A gateway is a module with `launch(upstream, directory, port) -> Launch`: it may write its configuration into
`directory`, must listen on 127.0.0.1:`port` and answer `GET /readyz` with 200 once it is ready. Its workers are told
from its other processes by who holds an established connection of that port.
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.load import procfs

ROOT = Path(__file__).resolve().parents[2]
_READY_S = 20.0
_STOP_S = 15.0
_PROBES = 16  # connections that find the workers, where several share a port


class GatewayError(Exception):
    """A process did not start, or ended by itself; the message carries the end of its output."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """Where the upstream listens on 127.0.0.1; `ca` is the certificate to trust where it speaks TLS."""

    port: int
    ca: Path | None = None

    @property
    def origin(self) -> str:
        """Scheme and authority."""
        return f"{'https' if self.ca else 'http'}://127.0.0.1:{self.port}"


@dataclass(frozen=True, slots=True)
class Launch:
    """A command and what it adds to the environment. `before` is what has to run already, and ends with it."""

    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    before: "tuple[Launch, ...]" = ()


Launcher = Callable[[Upstream, Path, int], Launch]


class Process:
    """One process that the run has started; ended by pid, its descendants too."""

    def __init__(self, launch: Launch, log: Path, *, stdout: int | None = None) -> None:
        self._log = log
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        env = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"} | launch.env
        with log.open("wb") as output:
            self._popen = subprocess.Popen(
                launch.argv, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=stdout or output, stderr=output
            )
        self.pid = self._popen.pid

    def read_line(self) -> bytes:
        """The next line of standard output; needs `stdout=PIPE`."""
        assert self._popen.stdout
        line: bytes = self._popen.stdout.readline()
        if not line:
            raise self.error("ended without a result")
        return line

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return self._popen.poll() is None

    def error(self, what: str) -> GatewayError:
        """`what`, with the end of the log."""
        tail = self._log.read_text(errors="replace")[-1500:]
        return GatewayError(f"{' '.join(self._popen.args)}: {what}\n{tail}")  # type: ignore[arg-type]

    def stop(self) -> None:
        """SIGTERM, then SIGKILL to what is left of the tree."""
        pids = procfs.tree(self.pid) if self.running else []
        if self.running:
            self._popen.terminate()
        try:
            self._popen.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        for pid in pids[1:]:
            _kill_if_alive(pid)
        if self._popen.stdout:
            self._popen.stdout.close()


def _kill_if_alive(pid: int) -> None:
    if procfs.rss_bytes(pid):
        os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway that is ready. `workers` carry the traffic; `pids` are all its processes, named in `commands`."""

    name: str
    port: int
    process: Process | None
    pids: list[int]
    workers: list[int]
    commands: dict[int, str]
    before: tuple[Process, ...] = ()

    def stop(self) -> None:
        """End its processes."""
        for process in (self.process, *self.before):
            if process:
                process.stop()


def start_gateway(name: str, launcher: Launcher, upstream: Upstream, directory: Path) -> Gateway:
    """Start, wait until ready, and tell its processes apart."""
    directory.mkdir(parents=True)
    port = free_port()
    launch = launcher(upstream, directory, port)
    started: list[Process] = []
    try:
        for number, one in enumerate((*launch.before, launch)):
            started.append(Process(one, directory / f"output-{number}.log"))
        *before, process = started
        _await_ready(process, port)
        pids = procfs.tree(process.pid)
        workers = _workers(pids, port)
        pids += [one.pid for one in before]
        commands = {pid: procfs.command(pid) for pid in pids}
        return Gateway(name, port, process, pids, workers, commands, tuple(before))
    except BaseException:
        for begun in reversed(started):
            begun.stop()
        raise


def start_upstream(directory: Path, *, pace_ms: float, tls: tuple[Path, Path, Path] | None) -> tuple[Process, Upstream]:
    """Start the upstream; `tls` is its certificate, key and authority."""
    arguments = ["--pace-ms", str(pace_ms)]
    if tls:
        arguments += ["--tls", str(tls[0]), str(tls[1])]
    launch = Launch([sys.executable, "-m", "bench.load.upstream", *arguments])
    process = Process(launch, directory / "upstream.log", stdout=subprocess.PIPE)
    port = json.loads(process.read_line())["port"]
    return process, Upstream(port, tls[2] if tls else None)


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _await_ready(process: Process, port: int) -> None:
    deadline_s = time.monotonic() + _READY_S
    while time.monotonic() < deadline_s:
        if not process.running:
            raise process.error("ended before it was ready")
        try:
            _probe(port).close()
        except (OSError, http.client.HTTPException):
            time.sleep(0.05)
        else:
            return
    raise process.error(f"not ready within {_READY_S} s")


def _probe(port: int) -> http.client.HTTPConnection:
    """An open connection that has had a 200 from /readyz."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    connection.request("GET", "/readyz")
    response = connection.getresponse()
    response.read()
    if response.status != http.HTTPStatus.OK:
        connection.close()
        raise ConnectionError(response.status)
    return connection


def _workers(pids: list[int], port: int) -> list[int]:
    probes = [_probe(port) for _ in range(_PROBES)]
    try:
        return procfs.holders(pids, port)
    finally:
        for probe in probes:
            probe.close()
