"""An upstream for the commands, and entries without a gateway."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.simulator import SimulatorThread
from tests.cli import process
from tests.cli.declared import Beside
from tests.cli.served import Served, made_file
from tests.stand.journals import journal
from tests.stand.postgres import postgres, postgres_process

__all__ = ["journal", "postgres", "postgres_process"]

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
def beside(tmp_path: Path) -> Beside:
    """Commands on a file, with an SQLite database that is not there yet."""
    return Beside(tmp_path)


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
