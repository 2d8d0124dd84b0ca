"""Open streams live through reloads and a roll; a drain lets them finish, and ends the rest with a word."""

import asyncio
import http.client
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.simulator import SimulatorThread
from tests.chaos.books import audit
from tests.chaos.fleet import Fleet
from tests.chaos.gateway_file import write_config
from tests.chaos.ledger import entries_in
from tests.chaos.load import PROTOCOLS, Asked, End, Load, ask, until_so
from tests.stand.valkey import Valkey

STREAMS = int(os.environ.get("HEADRACE_STREAMS", "300"))
RELOADS = 20
SCENARIOS: dict[str, dict[str, object]] = {
    "long": {"text": "word " * 90, "gap": 0.1},
    "endless": {"text": "word ", "repeat": 100_000, "gap": 0.2},
    "quick": {"text": "a few words that come at once"},
}

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180)]


@pytest.fixture
def upstream() -> Iterator[SimulatorThread]:
    with SimulatorThread({"record": 100_000, "scenarios": SCENARIOS}) as simulator:
        yield simulator


def test_streams_live_through_reloads_a_roll_and_a_drain(
    tmp_path: Path, upstream: SimulatorThread, valkey: Valkey
) -> None:
    config = write_config(tmp_path / "headrace.yaml", upstream.origin, valkey=valkey.url, drain="15s")
    with Fleet(config) as fleet:
        streams, short = asyncio.run(_run(fleet, config))
        assert fleet.exit_code(60) == 0, fleet.words()[-20:]
        assert fleet.alive() == []
    finished = [one for one in streams if one.model == "long"]
    ended = [one for one in streams if one.model == "endless"]
    assert [one for one in streams if one.end is not End.WHOLE] == []
    assert [one for one in finished if one.error] == [], "a stream that could finish was cut"
    assert [one for one in ended if not one.error] == []
    entries = entries_in("", tmp_path / "state")
    by_id = {entry.id: entry for entry in entries}
    assert {by_id[one.id].end for one in finished} == {"completed"}
    assert {(by_id[one.id].end, by_id[one.id].reason) for one in ended} == {("stopped", "shutdown")}
    assert [one for one in short if one.end is not End.WHOLE] == [], "a connection was not served"
    assert not audit(streams + short, upstream.requests, entries).faults


async def _run(fleet: Fleet, config: Path) -> tuple[list[Asked], list[Asked]]:
    """The streams, and the short requests that went on beside them until the drain."""
    streams = [_stream(number) for number in range(STREAMS)]
    tasks = [asyncio.create_task(ask(fleet.port, one)) for one in streams]
    await until_so(lambda: all(one.id for one in streams), "the head of every stream")
    load = Load(fleet.port, 4, 1, scenarios=("quick",), leaving=0.0, prefix="q")
    load.start()
    text = config.read_text()
    for number in range(RELOADS):
        key = f"sk-hr-reloaded-{number:020d}"
        config.write_text(f"{text}  - {{name: again-{number}, secret: {key}}}\n")
        fleet.signal(signal.SIGHUP)
        await asyncio.to_thread(_wait_for_key, fleet.port, key)
    before = fleet.workers()
    fleet.signal(signal.SIGUSR2)
    await until_so(lambda: _rolled(fleet, before), "a successor for each worker")
    waiting = [_queued(number) for number in range(20)]
    tasks += [asyncio.create_task(ask(fleet.port, one)) for one in waiting]
    await load.stop()
    await until_so(lambda: all(one.id for one in waiting), "an answer to what waited")
    fleet.signal(signal.SIGTERM)
    await asyncio.gather(*tasks)
    return streams, load.asked + waiting


def _stream(number: int) -> Asked:
    model = "endless" if number % 3 == 0 else "long"
    return Asked(f"m-{number:07d}", PROTOCOLS[number % 4], model, True)


def _queued(number: int) -> Asked:
    return Asked(f"w-{number:07d}", PROTOCOLS[number % 4], "quick", True)


def _rolled(fleet: Fleet, before: list[int]) -> bool:
    """Whether there is a new worker in each slot, and no more than one roll's old ones."""
    return len(set(fleet.workers()) - set(before)) >= len(before)


def _wait_for_key(port: int, key: str) -> None:
    """Ask until a worker knows the key: several times, since each asks a worker of its own."""
    known = 0
    for _ in range(2000):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", "/v1/models", headers={"authorization": f"Bearer {key}"})
        known = known + 1 if connection.getresponse().status == 200 else 0
        connection.close()
        if known == 8:
            return
    raise AssertionError("the new key never worked")
