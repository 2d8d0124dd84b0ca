"""The paired run: for each part start upstream and gateways, interleave them in rounds, keep every figure.

A part is one kind of work. Within it the gateways run side by side for the whole time and take turns (A B A B A), so
that what changes on the machine meets all of them. A figure is set against the mean of the nginx turns before and after
it: a steady drift of the machine's speed cancels out.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import trustme

from bench.load import measure, procfs
from bench.load.gateway import Gateway, Launch, Launcher, Process, start_gateway, start_upstream

DIRECT = "direct"
REFERENCE = "nginx"
DISTURBED_CORES = 0.3


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of work: what the client is told, what one unit of it is, and whether the upstream speaks TLS."""

    name: str
    title: str
    unit: str
    client: list[str]
    tls: bool = False
    pace_ms: float = 20.0
    rounds: int = 1
    closing: bool = True  # one more turn of nginx at the end, so that every round lies between two
    direct: bool = True  # whether the client can also ask the upstream itself; it speaks no TLS
    restart: bool = False  # fresh gateways per round: memory is measured from a fresh start


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of one gateway. CPU in microseconds per unit of work, by process; shares of a core for the load itself.

    `foreign_cores` is what the machine did besides: neither gateway, client nor upstream. `result.window.stolen_cores`
    is what the hypervisor took. Well above zero, they disturb.
    """

    gateway: str
    number: int
    worker_us: float
    others_us: dict[str, float]
    upstream_cores: float
    client_cores: float
    foreign_cores: float
    worker_rss_bytes: float
    result: measure.Result


@dataclass(frozen=True, slots=True)
class Outcome:
    """All rounds of a part, by gateway; `direct` is the load without a gateway, where it can run so."""

    part: Part
    direct: Round | None
    rounds: dict[str, list[Round]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Calm:
    """What to do about other work on the machine.

    Before a turn wait up to `quiet_s` for it to pause; repeat a disturbed turn up to `patience` times.
    """

    quiet_s: float = 0.0
    patience: int = 0


class Session:
    """What one part has running."""

    def __init__(self, part: Part, directory: Path, calm: Calm, stack: ExitStack) -> None:
        self.part = part
        self._directory = directory
        self._calm = calm
        self._stack = stack
        self._started = 0
        tls = make_certificates(directory) if part.tls else None
        self._upstream_process, self.upstream = start_upstream(directory, pace_ms=part.pace_ms, tls=tls)
        stack.callback(self._upstream_process.stop)

    def start(self, name: str, launcher: Launcher, stack: ExitStack | None = None) -> Gateway:
        """Start a gateway that ends with `stack`, or else with the part."""
        self._started += 1
        folder = self._directory / f"{name}-{self._started}"
        gateway = start_gateway(name, launcher, self.upstream, folder)
        (stack or self._stack).callback(gateway.stop)
        return gateway

    def turn(self, gateway: Gateway, number: int) -> Round:
        """One client run against one gateway; of repeated ones the least disturbed."""
        best = self._run_client(gateway, number)
        for _ in range(self._calm.patience):
            if best.foreign_cores <= DISTURBED_CORES:
                break
            best = min(best, self._run_client(gateway, number), key=lambda turn: turn.foreign_cores)
        return best

    def _run_client(self, gateway: Gateway, number: int) -> Round:
        procfs.await_quiet(self._calm.quiet_s)
        pids = [*gateway.pids, self._upstream_process.pid]
        where = ["--port", str(gateway.port), "--pids", ",".join(map(str, pids))]
        launch = Launch([sys.executable, "-m", "bench.load.client", *self.part.client, *where])
        client = Process(launch, self._directory / "client.log", stdout=subprocess.PIPE)
        try:
            result = measure.result_from_json(client.read_line())
        finally:
            client.stop()
        return self._round(gateway, number, result, client.pid)

    def _round(self, gateway: Gateway, number: int, result: measure.Result, client_pid: int) -> Round:
        window = result.window
        units = max(1, window.done)
        cores = {pid: us / 1e6 / window.duration_s for pid, us in window.cpu_us.items()}
        others = [pid for pid in gateway.pids if pid not in gateway.workers]
        return Round(
            gateway=gateway.name,
            number=number,
            worker_us=sum(window.cpu_us[pid] for pid in gateway.workers) / units,
            others_us={f"{pid} {gateway.commands[pid]}": window.cpu_us[pid] / units for pid in others},
            upstream_cores=cores[self._upstream_process.pid],
            client_cores=cores[client_pid],
            foreign_cores=max(0.0, window.busy_cores - sum(cores.values())),
            worker_rss_bytes=sum(result.rss_bytes.get(pid, 0.0) for pid in gateway.workers),
            result=result,
        )


def run_part(part: Part, launchers: dict[str, Launcher], calm: Calm, report: Callable[[Part, Round], None]) -> Outcome:
    """Run a part; every process it starts has ended when it returns or raises."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as directory, ExitStack() as stack:
        session = Session(part, Path(directory), calm, stack)
        direct = session.turn(Gateway(DIRECT, session.upstream.port, None, [], [], {}), 0) if part.direct else None
        if direct:
            report(part, direct)
        outcome = Outcome(part, direct, {name: [] for name in launchers})
        gateways = {} if part.restart else {name: session.start(name, launchers[name]) for name in launchers}
        turns = [(number, name) for number in range(1, part.rounds + 1) for name in launchers]
        if part.closing and REFERENCE in launchers:
            turns.append((part.rounds + 1, REFERENCE))
        for number, name in turns:
            with ExitStack() as turn_stack:
                gateway = gateways.get(name) or session.start(name, launchers[name], turn_stack)
                done = session.turn(gateway, number)
            outcome.rounds[name].append(done)
            report(part, done)
        return outcome


def make_certificates(directory: Path) -> tuple[Path, Path, Path]:
    """Certificate, key and authority of a new CA for localhost and 127.0.0.1, in `directory`."""
    authority = trustme.CA()
    server = authority.issue_cert("localhost", "127.0.0.1")
    certificate, key, ca = (directory / name for name in ("upstream.pem", "upstream.key", "ca.pem"))
    server.cert_chain_pems[0].write_to_path(str(certificate))
    server.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(ca))
    return certificate, key, ca
