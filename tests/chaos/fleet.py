"""`headrace serve` as what it is: a supervisor and its children, seen from outside by pid."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from headrace.journal.place import SUFFIX
from tests.chaos.load import incarnation_from_id
from tests.stand import procfs
from tests.stand.stand import until

START_S = 40.0
_LISTENS = re.compile(r"listens on https?://[\d.]+:(\d+)")


class Fleet:
    """One gateway's processes. It may be killed and started again: the port stays where the file names one."""

    def __init__(self, config: Path) -> None:
        self._config = config
        self._process: subprocess.Popen[str] | None = None
        self._readers: list[threading.Thread] = []
        self._started: list[subprocess.Popen[str]] = []
        self._pids: set[int] = set()
        self.port = 0
        self.said: list[tuple[float, str]] = []
        """What was written to stderr, by this and earlier supervisors and their children, and when."""
        self.logged: list[str] = []
        """The lines of stdout."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all that was started, by pid."""
        self.workers()
        self.control()
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait(20)
        for pid in self._pids:
            if _role(pid) is not None:
                os.kill(pid, signal.SIGKILL)
        for reader in self._readers:
            reader.join(20)

    def start(self, wait_s: float = START_S) -> None:
        """Start a supervisor and wait until it says where it listens."""
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", "serve", "--config", str(self._config)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._process = process
        self._started.append(process)
        assert process.stdout is not None and process.stderr is not None
        before = len(self.logged)
        for stream, take in ((process.stdout, self.logged.append), (process.stderr, self._say)):
            reader = threading.Thread(target=_read, args=(stream, take), daemon=True)
            reader.start()
            self._readers.append(reader)

        def port() -> int:
            assert process.poll() is None, f"it did not start: {self.words()[-10:]}"
            found = [match for line in self.logged[before:] if (match := _LISTENS.search(line))]
            return int(found[0][1]) if found else 0

        self.port = until(port, "the word that it listens", wait_s)

    @property
    def pid(self) -> int:
        """The supervisor's."""
        assert self._process is not None
        return self._process.pid

    def workers(self) -> list[int]:
        """The pids of the supervisor's workers, now."""
        return self._children("headrace.worker")

    def control(self) -> list[int]:
        """The pid of the supervisor's control process; none while there is none."""
        return self._children("headrace.control")

    def incarnation(self, pid: int) -> int | None:
        """The 16 bits that the ids of this worker's exchanges have, by the journal that it holds open; None before it
        has one."""
        paths = (Path(path) for path in procfs.descriptors(pid).values())
        names = [path.parent.name for path in paths if path.suffix == SUFFIX]
        return incarnation_from_id(names[0]) if names else None

    def signal(self, number: int = signal.SIGTERM) -> None:
        """Send the supervisor a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """kill -9 of all of its processes. The supervisor is stopped before, so that it follows nobody, and no worker
        sees it go and gives back in good order what it holds."""
        self.signal(signal.SIGSTOP)
        for pid in (*self.workers(), *self.control(), self.pid):
            os.kill(pid, signal.SIGKILL)
        self.exit_code()

    def is_running(self) -> bool:
        """Whether the supervisor is there."""
        return self._process is not None and self._process.poll() is None

    def exit_code(self, wait_s: float = 30.0) -> int:
        """Wait until the supervisor has ended."""
        assert self._process is not None
        return self._process.wait(wait_s)

    def words(self) -> list[str]:
        """What was said on stderr so far."""
        return [line for _, line in self.said]

    def alive(self) -> list[int]:
        """Every process that belongs or belonged to this gateway and has not ended."""
        self.workers()
        self.control()
        return [pid for pid in self._pids if _role(pid) is not None]

    def _say(self, line: str) -> None:
        self.said.append((time.monotonic(), line))

    def _children(self, module: str) -> list[int]:
        assert self._process is not None
        found = [pid for pid in _children(self._process.pid) if _role(pid) == module]
        self._pids.update(found)
        return found


def _read(stream: IO[str], take: Callable[[str], None]) -> None:
    for line in stream:
        take(line.rstrip("\n"))
    stream.close()


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def _role(pid: int) -> str | None:
    """The module that a process of ours runs; None where it has ended (a zombie has no command line)."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((word.decode() for word in words if word in (b"headrace.worker", b"headrace.control")), None)
