"""The gateway under test: a worker in a thread of its own, or a real process. Both take a configuration file."""

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import uvloop

from headrace.config.draft import load
from headrace.model.allowance import Spent
from headrace.model.purses import Budgets
from headrace.worker import Worker
from tests.cli.process import end
from tests.stand.waiting import until

SECRET = b"a secret of the stand, 32 bytes."
START_S = 20.0
LISTENS = re.compile(r"listens on https?://[\d.]+:(\d+)")
SERVES = re.compile(r"^(.+) \(pid (\d+)\) serves$", re.MULTILINE)
T = TypeVar("T")


class GatewayThread:
    """A worker on its own uvloop loop. When left it must have drained, with no task, fault or report left behind."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._port: Future[int] = Future()
        self._over: Future[None] = Future()
        self._drain = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._main, name="gateway", daemon=True)
        self.worker: Worker | None = None
        self.reports: list[str] = []
        """What the worker said to the operator."""
        self.faults: list[str] = []
        """What reached the loop's exception handler."""
        self.left: list[str] = []
        """Tasks that were still there after the drain."""

    def __enter__(self) -> Self:
        self._thread.start()
        self._port.result(START_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drain()
        self.wait()
        self._thread.join(10)
        gc.unfreeze()  # a worker freezes what is there when it starts, and that includes the tests
        gc.set_threshold(700, 10, 10)
        if error is None:
            assert not self.faults, self.faults
            assert not self.left, self.left
            assert not self.reports, self.reports

    @property
    def port(self) -> int:
        return self._port.result(START_S)

    def drain(self) -> None:
        """Begin to drain, as after SIGTERM."""
        if self._loop is not None and not self._over.done():
            self._loop.call_soon_threadsafe(self._drain.set)

    def wait(self, timeout_s: float = 30.0) -> None:
        """Wait until it has drained."""
        self._over.result(timeout_s)

    def call(self, function: Callable[[], T]) -> T:
        """Run `function` in the gateway's loop; its result."""

        async def run() -> T:
            return function()

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    def _main(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            for future in (self._port, self._over):
                if not future.done():
                    future.set_exception(error)
            raise
        self._over.set_result(None)

    async def _serve(self) -> None:
        loop = self._loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.faults.append(str(context)))
        loaded = load(self._config).resolve(SECRET)
        self.worker = worker = Worker(loaded.settings, loaded.catalogue, self.reports.append)
        worker.cover([Spent(purse=purse) for purse in Budgets.of(loaded.catalogue).at(time.time())])
        await worker.start()
        self._port.set_result(worker.addresses[0].port)
        await self._drain.wait()
        await worker.drain()
        await asyncio.sleep(0)  # in this turn ends what was cancelled
        self.left = [str(task) for task in asyncio.all_tasks() - {asyncio.current_task()}]


class GatewayProcess:
    """`python -m headrace serve`, in whose lines its children tell who they are."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []
        self.printed: list[str] = []
        """Lines of stdout."""
        self.said: list[str] = []
        """Lines of stderr: the supervisor's and its children's."""
        self.port = 0

    def __enter__(self) -> Self:
        self._process = process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "headrace", "serve", "--config", str(self._config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        assert process.stdout is not None
        assert process.stderr is not None
        for stream, lines in ((process.stdout, self.printed), (process.stderr, self.said)):
            reader = threading.Thread(target=lines.extend, args=(stream,), daemon=True)
            reader.start()
            self._readers.append(reader)
        try:
            until(lambda: LISTENS.search("".join(self.printed)) or process.poll() is not None, "a start", START_S)
            found = LISTENS.search("".join(self.printed))
            assert found, f"it did not start: {self.said}"
        except BaseException:
            self._close()
            raise
        self.port = int(found[1])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        process = self._running
        end(process)
        for reader in self._readers:
            reader.join(START_S)  # its children write to the same pipes: this is their end too
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()

    @property
    def pid(self) -> int:
        """The supervisor's process."""
        return self._running.pid

    def has_said(self, text: str, after: int = 0) -> bool:
        """Whether a line of stderr holds the text, behind the first `after` lines."""
        return any(text in line for line in self.said[after:])

    def child(self, title: str) -> int:
        """The process of the child that served last under a title: `worker 0`, `control process`."""
        return [int(pid) for named, pid in SERVES.findall("".join(self.said)) if named == title][-1]

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Send it a signal."""
        self._running.send_signal(number)

    def exit_code(self, timeout_s: float = 20.0) -> int:
        """Wait until it has ended."""
        return self._running.wait(timeout_s)

    @property
    def _running(self) -> subprocess.Popen[str]:
        assert self._process is not None
        return self._process


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a test on the line's own loop."""
    uvloop.run(main)
