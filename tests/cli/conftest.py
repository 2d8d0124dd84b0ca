"""An upstream for the commands, and entries without a gateway."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.journal.place import Incarnation
from headrace.journal.writer import Writer
from headrace.model.entry import Record
from headrace.simulator import SimulatorThread
from tests.cli import process
from tests.cli.served import Served, made_file

SCRIPT = {
    "scenarios": {
        "quick": {"text": "one two three"},
        "paced": {"text": "one two three four five six", "gap": 0.1},
        "hold": {"text": "one two three", "cut": {"after_events": 2, "how": "stall"}},
    }
}


@pytest.fixture(scope="session")
def upstream() -> Iterator[SimulatorThread]:
    with SimulatorThread(SCRIPT) as simulator:
        yield simulator


@pytest.fixture
def journal(tmp_path: Path) -> Callable[..., Path]:
    """Writes records as a worker would; returns the state directory."""

    async def write(directory: Path, records: tuple[Record, ...]) -> None:
        writer = Writer(Incarnation.of(directory, "local", 0, "0000"), asyncio.get_running_loop())
        for record in records:
            writer.append(record)
        writer.close()

    def written(*records: Record) -> Path:
        asyncio.run(write(tmp_path / "state", records))
        return tmp_path / "state"

    return written


@pytest.fixture(scope="session")
def served(upstream: SimulatorThread, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway process on a file that `headrace init` wrote, before a simulator that stands for three providers."""
    folder = tmp_path_factory.mktemp("served")
    one = made_file(folder, upstream)
    with process.running("serve", folder=folder, **one.environ) as gateway:
        gateway.line_with("listens on")
        reader = threading.Thread(target=gateway.stdout.read)  # a line for each exchange would fill the pipe
        reader.start()
        yield one
        gateway.signal(signal.SIGTERM)
        assert gateway.end() == 0
        reader.join()
