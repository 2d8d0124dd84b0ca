"""What the shows are played on: two simulated upstreams and a worker, in this process, on free loopback ports."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import msgspec

from headrace.cli.demo.shows import Show
from headrace.config.draft import load, obtain_secret
from headrace.model.settings import Address
from headrace.simulator import Simulator
from headrace.worker import Worker

OVERLOADED = {"default": "overloaded", "scenarios": {"overloaded": {"status": 503}}}


@dataclass(frozen=True, slots=True)
class Stage:
    """A running gateway: where it is, its key, its state directory, and the upstream that answers."""

    address: Address
    key: str
    directory: Path
    upstream: Simulator

    @property
    def sent(self) -> bytes:
        """The body that the upstream sent last."""
        return self.upstream.requests[-1].sent if self.upstream.requests else b""

    @property
    def base_url(self) -> str:
        """What a client of the OpenAI API takes."""
        return f"http://{self.address}/v1"


@asynccontextmanager
async def stage(shows: Sequence[Show], report: Callable[[str], None]) -> AsyncIterator[Stage]:
    """Everything runs within; afterwards it is drained, and its directory gone. `report` takes the worker's lines."""
    script = {"scenarios": {show.model: show.scenario for show in shows}}
    with TemporaryDirectory(prefix="headrace-demo-") as name:
        directory = Path(name)
        async with Simulator(script) as upstream, Simulator(OVERLOADED) as overloaded:
            key = f"sk-hr-demo-{token_hex(16)}"
            file = directory / "headrace.yaml"
            file.touch(mode=0o600)
            # JSON is YAML too.
            file.write_bytes(msgspec.json.encode(configuration(shows, upstream.url, overloaded.url, key)))
            draft = load(file)
            loaded = draft.resolve(obtain_secret(draft))
            worker = Worker(loaded.settings, loaded.catalogue, report)
            await worker.start()
            try:
                yield Stage(worker.addresses[0], key, Path(loaded.settings.state.directory), upstream)
            finally:
                await worker.drain()


def configuration(shows: Sequence[Show], upstream: str, overloaded: str, key: str) -> dict[str, object]:
    """The file's content: the shows' models, and the simulator's own scenarios as `sim-*`."""
    protocols = sorted({show.reading.protocol.value for show in shows})
    models: dict[str, object] = {"sim-*": {"routes": _routes(False)}}
    for show in shows:
        models[show.model] = {"routes": _routes(show.failover), **show.stream}
    return {
        "server": {"listen": "127.0.0.1:0", "drain": "0s", "drain_notice": "0s"},
        "state": {"directory": "state"},
        "channels": {
            "healthy": _channel(upstream, protocols),
            "overloaded": _channel(overloaded, protocols),
        },
        "models": models,
        "keys": [{"name": "demo", "secret": key}],
    }


def _channel(base_url: str, protocols: list[str]) -> dict[str, object]:
    credentials = [{"name": "main", "secret": "sk-simulated"}]
    return {"base_url": base_url, "allow_http": True, "protocols": protocols, "credentials": credentials}


def _routes(failover: bool) -> list[dict[str, object]]:
    healthy: dict[str, object] = {"channel": "healthy", "priority": 1}
    return [{"channel": "overloaded", "priority": 0}, healthy] if failover else [healthy]
