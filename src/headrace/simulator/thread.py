"""A simulator in a thread of its own, for tests and programs that are synchronous."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.simulator.engine import Simulator
from headrace.simulator.recorded import Recorded
from headrace.simulator.script import Script


class SimulatorThread:
    """A context manager: listening when entered, stopped when left. What `Simulator` says of its members holds here."""

    def __init__(
        self,
        script: Script | str | Path | Mapping[str, object] | None = None,
        *,
        new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    ) -> None:
        self._simulator = Simulator(script)
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="simulator", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._simulator.start(), self._loop).result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._simulator.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return self._simulator.url

    @property
    def origin(self) -> str:
        return self._simulator.origin

    @property
    def requests(self) -> list[Recorded]:
        return self._simulator.requests

    def scenario(self, name: str, fields: Mapping[str, object]) -> None:
        self._simulator.scenario(name, fields)

    def reset(self) -> None:
        self._simulator.reset()

    def idle(self, timeout_s: float = 5.0) -> None:
        asyncio.run_coroutine_threadsafe(self._simulator.idle(timeout_s), self._loop).result()
