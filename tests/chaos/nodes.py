"""Two nodes: gateways of two workers each, with one database, one Valkey, one secret and one upstream between them."""

import asyncio
import http.client
import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace.model.entry import Entry
from headrace.simulator import Recorded, SimulatorThread
from tests.chaos.fleet import Fleet
from tests.chaos.gateway_file import PATHS, write_config
from tests.chaos.ledger import entries_in
from tests.chaos.load import PROTOCOLS, Asked, ask
from tests.stand import procfs
from tests.stand.postgres import Postgres
from tests.stand.stand import until
from tests.stand.valkey import Valkey

SCENARIOS: dict[str, dict[str, object]] = {
    "call": {"text": "word " * 16, "first_delay": 0.3},
    "tenth": {"text": "2 tokens", "first_delay": 0.1},
    "short": {"text": "word " * 5, "gap": 0.03},
    "cut": {"text": "word " * 8, "gap": 0.02, "cut": {"after_events": 4, "how": "rst"}},
    "failed": {"status": 400},
    "endless": {"text": "word ", "repeat": 100_000, "gap": 0.2},
}
"""What the simulator plays, by model. Four bytes are a token of its count: `call` has 20 of them."""
HOLD = 300_000
"""Nano-units that each exchange holds: 20 tokens, which is the most that a model may say, at 15 a million. It is what
`call` costs; `tenth` costs a tenth. What is sent up costs nothing."""
_MODEL = "{{routes: [{routes}], max_attempts: 1, max_output: 20, price: {{input: 0, output: 15}}}}"


class Nodes:
    """See above. Their policy for an outage of Valkey is `refuse`, until `set_policy`: on a busy machine Valkey may now
    and then answer too late, which is an outage for a moment, and with `allow` more would pass then. The clients run in
    a thread, so that a test may wait for what becomes of them."""

    def __init__(
        self, folder: Path, upstream: SimulatorThread, postgres: Postgres, valkey: Valkey, keys: dict[str, str]
    ) -> None:
        """`keys`: options by name, as the file has them."""
        self.upstream = upstream
        self.valkey = valkey
        self._postgres = postgres
        self._database = postgres.new_database()
        self._stack = ExitStack()
        self._loop = asyncio.new_event_loop()
        self._clients = threading.Thread(target=self._loop.run_forever, name="clients", daemon=True)
        self._open: list[Future[None]] = []
        self._number = 0
        secret = folder / "secret"
        secret.write_text(secrets.token_hex(32))
        secret.chmod(0o600)
        self.configs: list[Path] = []
        self._policies = ["refuse", "refuse"]
        for name, outage in zip("ab", self._policies, strict=True):
            (folder / name).mkdir()
            self.configs.append(
                write_config(
                    folder / name / "headrace.yaml",
                    upstream.origin,
                    database=self._database,
                    valkey=valkey.url,
                    secret=f"file:{secret}",
                    outage=outage,
                    objects=_objects(keys),
                )
            )
        self.fleets = [Fleet(config) for config in self.configs]

    def __enter__(self) -> Self:
        self._clients.start()
        self._stack.callback(self._end_clients)
        for fleet in self.fleets:
            self._stack.push(fleet.__exit__)
        self.ensure()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def ensure(self) -> None:
        """Both run; those that have to be started are started at the same time."""
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Fleet.start, (fleet for fleet in self.fleets if not fleet.is_running())))

    def set_policy(self, node: int, outage: str) -> None:
        """Have a node run with another `state.shared_outage`: where it does not, it is started with that."""
        before, self._policies[node] = self._policies[node], outage
        if before != outage:
            config = self.configs[node]
            config.write_text(config.read_text().replace(f"shared_outage: '{before}'", f"shared_outage: '{outage}'"))
            if self.fleets[node].is_running():
                self.fleets[node].kill()
        self.ensure()

    # ---- requests

    def requests(self, key: str, model: str, count: int, *, stream: bool = True) -> list[Asked]:
        """Requests of all protocols in turn, not sent yet."""
        first, self._number = self._number, self._number + count
        return [
            Asked(f"{key}-{number:07d}", PROTOCOLS[number % 4], model, stream, secret=secret_of(key))
            for number in range(first, first + count)
        ]

    def ask(self, asked: Sequence[Asked], *nodes: int) -> None:
        """Send them all at once, to the nodes (both, if none is named) by fours in turn, and hear every answer to its
        end."""
        self.start(self._ask(asked, nodes)).result()

    def ask_until_told(self, asked: list[Asked]) -> None:
        """The same, and another request in place of each that hears 503: Valkey had answered too late."""
        self.ask(asked)
        until(lambda: not self._ask_again(asked), "an answer of Valkey in time")

    def _ask_again(self, asked: list[Asked]) -> bool:
        """Whether any still had to be told."""
        untold = [at for at, one in enumerate(asked) if one.status == 503]
        again = [self._again(asked[at]) for at in untold]
        self.ask(again)
        for at, one in zip(untold, again, strict=True):
            asked[at] = one
        return bool(untold)

    def _again(self, one: Asked) -> Asked:
        key, self._number = one.marker.rpartition("-")[0], self._number + 1
        return Asked(f"{key}-{self._number - 1:07d}", one.protocol, one.model, one.stream, secret=one.secret)

    def open(self, asked: Sequence[Asked], *nodes: int) -> None:
        """The same with streams that do not end: returns once each has its head."""
        self._open.append(self.start(self._ask(asked, nodes)))
        until(lambda: all(one.status for one in asked), "the head of every stream")

    def leave(self) -> None:
        """Leave the streams that are open."""
        while self._open:
            self._open.pop().cancel()

    def start(self, clients: Coroutine[Any, Any, None]) -> Future[None]:
        """Let clients run in their thread."""
        return asyncio.run_coroutine_threadsafe(clients, self._loop)

    async def _ask(self, asked: Sequence[Asked], nodes: Sequence[int]) -> None:
        ports = [self.fleets[node].port for node in nodes or (0, 1)]
        await asyncio.gather(*(ask(ports[at // 4 % len(ports)], one) for at, one in enumerate(asked)))

    def _end_clients(self) -> None:
        async def end() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.start(end()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._clients.join()
        self._loop.close()

    def standing(self, node: int, key: str) -> dict[str, Any]:
        """What GET /v1/usage tells a key."""
        status, body = self.get(node, "/v1/usage", secret_of(key))
        assert status == 200, body
        found: dict[str, Any] = json.loads(body)["key"]
        return found

    def get(self, node: int, path: str, secret: str) -> tuple[int, bytes]:
        """Status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.fleets[node].port, timeout=10)
        try:
            connection.request("GET", path, headers={"authorization": f"Bearer {secret}"})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def status_by(self, node: int, secret: str) -> tuple[int, int]:
        """How a key fares: the status, and the pid of the worker that it met."""
        fleet = self.fleets[node]
        connection = http.client.HTTPConnection("127.0.0.1", fleet.port, timeout=10)
        try:
            connection.request("GET", "/v1/models", headers={"authorization": f"Bearer {secret}"})
            met = procfs.server_of(connection.sock.getsockname()[1], fleet.port, fleet.workers())
            return connection.getresponse().status, met
        finally:
            connection.close()

    # ---- what came of them

    def calls(self, asked: Sequence[Asked]) -> list[Recorded]:
        """What the upstream saw of requests of one key."""
        markers = {one.marker.encode() for one in asked}
        prefix = asked[0].marker.rpartition("-")[0].encode() + b"-"
        found = []
        for call in self.upstream.requests:
            begin = call.body.find(prefix)
            if begin >= 0 and call.body[begin : begin + len(prefix) + 7] in markers:
                found.append(call)
        return found

    def entries(self, asked: Sequence[Asked]) -> list[Entry]:
        """What the ledger has of requests so far."""
        markers = {one.marker for one in asked}
        return [one for one in entries_in(self._database, Path()) if one.client_request_id in markers]

    def changed_at(self, key: str) -> float:
        """When a key of the database was changed last, in monotonic seconds."""
        at = self._postgres.execute(f"SELECT updated_at FROM object WHERE name = '{key}'", self._database)
        return float(at) - time.time() + time.monotonic()

    def run(self, *words: str) -> str:
        """What a command of the first node's machine prints."""
        done = subprocess.run(
            [sys.executable, "-m", "headrace", *words, "--config", str(self.configs[0])],
            check=False,
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def secret_of(key: str) -> str:
    """The secret of a key of the file."""
    return f"sk-hr-{key}-0123456789abcdef"


def word_in(one: Asked) -> str:
    """What an error is called in its dialect."""
    error = json.loads(one.refusal)["error"]
    return str(error[{"messages": "type", "gemini": "status"}.get(one.protocol, "code")])


def most_at_once(calls: Sequence[Recorded]) -> int:
    """The most exchanges that ran at the same time, as the upstream saw it."""
    begun = [(call.started_at, 1) for call in calls]
    ended = [(call.started_at + call.ended_s, -1) for call in calls if call.ended_s is not None]
    running = most = 0
    for _, step in sorted(begun + ended):  # at the same moment the ends come first
        running += step
        most = max(most, running)
    return most


def _objects(keys: dict[str, str]) -> str:
    """The sections `models` and `keys`."""
    routes = ", ".join(f"{{channel: up-{protocol}}}" for protocol in PATHS)
    lines = "".join(f"  - {{name: {name}, secret: {secret_of(name)}, {options}}}\n" for name, options in keys.items())
    return f'models:\n  "*": {_MODEL.format(routes=routes)}\nkeys:\n{lines}'
