"""The database goes away: nothing fails, a worker that dies meanwhile comes back, and nothing is missing afterwards."""

import asyncio
import http.client
import os
import signal
import time
from pathlib import Path

import pytest

from headrace.simulator import SimulatorThread
from tests.chaos.books import Death, audit
from tests.chaos.fleet import Fleet
from tests.chaos.gateway_file import write_config
from tests.chaos.ledger import entries_in, open_in
from tests.chaos.load import Asked, End, Load
from tests.stand.postgres import Postgres
from tests.stand.stand import until
from tests.stand.valkey import Valkey

AWAY_S = float(os.environ.get("HEADRACE_OUTAGE_S", "3"))
CLIENTS = 12

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120 + 2 * AWAY_S)]


def test_the_database_away(tmp_path: Path, upstream: SimulatorThread, postgres: Postgres, valkey: Valkey) -> None:
    """Case B116: under load."""
    database = postgres.new_database()
    config = write_config(tmp_path / "headrace.yaml", upstream.origin, database=database, valkey=valkey.url)
    with Fleet(config) as fleet:
        asked, death = asyncio.run(_run(fleet, postgres))
        fleet.signal()
        assert fleet.exit_code(60) == 0, fleet.words()[-20:]
    entries = entries_in(database, tmp_path / "state")
    found = audit(asked, upstream.requests, entries, [death])
    assert not found.faults, found.faults[:10]
    assert open_in(database, tmp_path / "state") == ()
    failed = [one for one in asked if one.end is End.UNCONNECTED or one.status >= 500]
    assert not failed
    broken = [one for one in asked if one.end is End.BROKEN]
    assert len({one.incarnation for one in broken if one.id}) <= 1, "only the worker that was killed breaks streams"
    assert all(death.at - 0.05 <= one.ended <= death.at + 2 for one in broken)
    print(f"{len(asked)} requests while the database was away for {AWAY_S:g} s, {len(broken)} broken by one kill")


def test_a_start_with_the_database_away(
    tmp_path: Path, upstream: SimulatorThread, postgres: Postgres, valkey: Valkey
) -> None:
    """Case B116: the second start: the snapshot and the file are enough."""
    database = postgres.new_database()
    config = write_config(tmp_path / "headrace.yaml", upstream.origin, database=database, valkey=valkey.url)
    with Fleet(config) as fleet:
        fleet.signal()
        assert fleet.exit_code() == 0
    postgres.kill()
    try:
        with Fleet(config) as fleet:
            asked = asyncio.run(_some(fleet))
            assert all(one.end is End.WHOLE and one.status == 200 for one in asked)
            assert _unknown(fleet) == (503, "5")
            postgres.start()
            until(lambda: _unknown(fleet) == (401, None), "an answer about keys", 30.0)
            until(lambda: len(entries_in(database, tmp_path / "state")) == len(asked), "the entries", 30.0)
            fleet.signal()
            assert fleet.exit_code() == 0
    finally:
        postgres.ensure()


def _unknown(fleet: Fleet) -> tuple[int, str | None]:
    """What a key gets that only the database could have: its status and Retry-After."""
    connection = http.client.HTTPConnection("127.0.0.1", fleet.port, timeout=10)
    connection.request("GET", "/v1/models", headers={"authorization": "Bearer sk-hr-of-the-database-000"})
    reply = connection.getresponse()
    connection.close()
    return reply.status, reply.getheader("retry-after")


async def _run(fleet: Fleet, postgres: Postgres) -> tuple[list[Asked], Death]:
    load = Load(fleet.port, CLIENTS, 1)
    load.start()
    await asyncio.sleep(0.3)
    await asyncio.to_thread(postgres.kill)
    away = time.monotonic()
    await asyncio.sleep(AWAY_S / 3)
    victim = fleet.workers()[0]
    incarnation = fleet.incarnation(victim)
    assert incarnation is not None
    death = Death(incarnation, time.monotonic())
    os.kill(victim, signal.SIGKILL)
    await asyncio.sleep(max(0.0, away + AWAY_S - time.monotonic()))
    assert len(fleet.workers()) == 2, "the worker that was killed is back without the database"
    await asyncio.to_thread(postgres.start)
    await asyncio.sleep(0.3)
    await load.stop()
    return load.asked, death


async def _some(fleet: Fleet) -> list[Asked]:
    load = Load(fleet.port, 4, 2, scenarios=("quick",), leaving=0.0)
    load.start()
    await asyncio.sleep(0.5)
    await load.stop()
    return load.asked
