"""Simulated upstreams on real sockets, all in one thread, beside synchronous tests and the gateway."""

import asyncio
import ssl
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self

from headrace.simulator import Recorded, Simulator


class Upstreams:
    """So many simulators; iterate over them. `tls` makes them speak https, `host` is where."""

    def __init__(self, count: int, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._all = [Simulator({"record": 10_000}, host=host, tls=tls) for _ in range(count)]
        self._seen: list[Upstream] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="upstreams", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        for simulator in self._all:
            asyncio.run_coroutine_threadsafe(simulator.start(), self._loop).result(10)
        self._seen = [Upstream(simulator, self._loop) for simulator in self._all]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for simulator in self._all:
            asyncio.run_coroutine_threadsafe(simulator.stop(), self._loop).result(10)
        asyncio.run_coroutine_threadsafe(_settle(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def __getitem__(self, index: int) -> "Upstream":
        return self._seen[index]

    def __iter__(self) -> Iterator["Upstream"]:
        return iter(self._seen)


class Upstream:
    """One simulator, seen from another thread. Models are scenarios' names, so each test's own records are its own."""

    def __init__(self, simulator: Simulator, loop: asyncio.AbstractEventLoop) -> None:
        self._simulator = simulator
        self._loop = loop
        self.origin = simulator.origin
        self.url = simulator.url
        self.port = simulator.port

    @property
    def connections(self) -> int:
        """Connections that are open now."""
        return self._simulator.connections

    def scenario(self, name: str, fields: Mapping[str, object]) -> None:
        """Play `fields` (docs/reference/simulator.md) for the model `name`."""

        async def add() -> None:
            self._simulator.scenario(name, fields)

        asyncio.run_coroutine_threadsafe(add(), self._loop).result(10)

    def calls(self, model: str) -> list[Recorded]:
        """What it was asked for `model`, in order."""
        return [record for record in list(self._simulator.requests) if record.model == model]


async def _settle() -> None:
    """Two loop turns, in which transports that were closed let go of their sockets."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
