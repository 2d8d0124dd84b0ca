"""Many exchanges of all ends leave a worker as it was: memory, descriptors, threads.

HEADRACE_EXCHANGES=20000 makes it long. Tasks and cycles are looked at from inside, in tests/test_exchange.py.
"""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.simulator import SimulatorThread
from tests.chaos.books import audit
from tests.chaos.fleet import Fleet
from tests.chaos.gateway_file import write_config
from tests.chaos.ledger import entries_in
from tests.chaos.load import SCENARIOS, Asked, Load
from tests.stand.stand import until

EXCHANGES = int(os.environ.get("HEADRACE_EXCHANGES", "2000"))
CLIENTS = 32
MOST_GROWTH_KIB = 4096
"""Of a process's memory, while the exchanges become five times as many. A kilobyte each is 16 MB in a long run."""
MOST_CONTROL_KIB = 16384
"""Of the control process: its batches and the database's pages come up to their bounds only after some 15,000."""

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120 + EXCHANGES / 50)]


@dataclass(frozen=True, slots=True)
class Size:
    """What a process holds."""

    rss_kib: int
    descriptors: int
    threads: int


@pytest.fixture
def upstream() -> Iterator[SimulatorThread]:
    with SimulatorThread({"record": 10, "scenarios": SCENARIOS}) as simulator:
        yield simulator


def test_exchanges_of_all_ends_leave_nothing(tmp_path: Path, upstream: SimulatorThread) -> None:
    """Case B071."""
    config = write_config(tmp_path / "headrace.yaml", upstream.origin)
    with Fleet(config) as fleet:
        worker, control = fleet.workers() + fleet.control()
        first = asyncio.run(_exchanges(fleet, EXCHANGES // 5, "m"))
        early, early_control = _size(worker), _size(control)
        asked = first + asyncio.run(_exchanges(fleet, EXCHANGES - EXCHANGES // 5, "q"))
        until(lambda: _size(worker).descriptors <= early.descriptors, "the end of its connections", 40)
        late = _size(worker)
        late_control = _size(control)
        print(f"{len(asked)} exchanges: worker {early} -> {late}, control {early_control} -> {late_control}")
        fleet.signal()
        assert fleet.exit_code() == 0
    entries = entries_in("", tmp_path / "state")
    assert not audit(asked, [], entries).faults
    ends = {entry.end for entry in entries}
    assert ends >= {"completed", "interrupted", "stalled", "client_gone", "refused"}, ends
    assert late.threads <= early.threads
    assert late.rss_kib - early.rss_kib <= MOST_GROWTH_KIB, (early, late)
    assert late_control.rss_kib - early_control.rss_kib <= MOST_CONTROL_KIB, (early_control, late_control)


async def _exchanges(fleet: Fleet, count: int, prefix: str) -> list[Asked]:
    load = Load(fleet.port, CLIENTS, count, weights=(60, 1, 4, 4, 1), prefix=prefix)
    load.start()
    while len(load.asked) < count:
        await asyncio.sleep(0.02)
    await load.stop()
    return load.asked


def _size(pid: int) -> Size:
    fields = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    return Size(
        int(fields["VmRSS"].split()[0]), len(list(Path(f"/proc/{pid}/fd").iterdir())), int(fields["Threads"].split()[0])
    )
