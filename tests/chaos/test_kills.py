"""`kill -9` of every kind of process at random moments under load: nothing that may cost money is lost or doubled.

HEADRACE_KILLS=300 makes it long; HEADRACE_SEED=n repeats one run's choices.
"""

import asyncio
import os
import random
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.model.entry import Entry
from headrace.simulator import SimulatorThread
from tests.chaos.books import audit
from tests.chaos.fleet import Fleet
from tests.chaos.gateway_file import write_config
from tests.chaos.ledger import entries_in, open_in
from tests.chaos.load import Asked, End, Load, until_so
from tests.stand.postgres import Postgres

KILLS = int(os.environ.get("HEADRACE_KILLS", "8"))
SEED = int(os.environ.get("HEADRACE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
CLIENTS = 24

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180 + 6 * KILLS)]


@dataclass(slots=True)
class Kill:
    """What was killed, when, and when it was there again (monotonic seconds)."""

    what: str
    at: float
    back: float = 0.0
    incarnation: int | None = None


def test_kills_at_random_moments(tmp_path: Path, upstream: SimulatorThread, postgres: Postgres) -> None:
    """Every exchange has one entry, other processes' streams are untouched, and what was killed comes back."""
    database = postgres.new_database()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = write_config(tmp_path / "headrace.yaml", upstream.origin, port=port, database=database)
    with Fleet(config) as fleet:
        try:
            asked, kills = asyncio.run(_run(fleet, postgres))
        except AssertionError:
            print(f"seed {SEED}", *(f"{at:.3f} {line}" for at, line in fleet.said[-40:]), sep="\n")
            raise
        fleet.signal()
        assert fleet.exit_code(90) == 0, fleet.words()[-20:]
        assert fleet.alive() == []
    entries = entries_in(database, tmp_path / "state")
    found = audit(asked, upstream.requests, entries)
    _check_streams(found.faults, asked, kills, entries)
    print(f"seed {SEED}: {len(kills)} kills, {len(asked)} requests, {len(entries)} entries, ends {dict(found.ends)}")
    print(_report(kills))
    assert open_in(database, tmp_path / "state") == ()
    assert not found.faults, (SEED, len(found.faults), found.faults[:10])


async def _run(fleet: Fleet, postgres: Postgres) -> tuple[list[Asked], list[Kill]]:
    load = Load(fleet.port, CLIENTS, SEED)
    load.start()
    chance = random.Random(SEED)
    victims = ["worker", "worker", "control", "supervisor", "database"]
    kills = []
    await asyncio.sleep(0.5)
    for number in range(KILLS):
        what = victims[number % len(victims)] if KILLS < 20 else chance.choice(victims)
        kills.append(await _kill(what, fleet, postgres, load, chance))
        await asyncio.sleep(chance.uniform(0.1, 1.0))
    await load.stop()
    return load.asked, kills


async def _kill(what: str, fleet: Fleet, postgres: Postgres, load: Load, chance: random.Random) -> Kill:
    """Kill one process and wait until it is there again."""
    match what:
        case "worker":
            before = fleet.workers()
            kill = Kill(what, time.monotonic())
            os.kill(chance.choice(before), signal.SIGKILL)
            kill.back = await until_so(lambda: _fresh(load, kill.at), "a new worker's answer")
        case "control":
            before = fleet.control()
            kill = Kill(what, time.monotonic())
            for pid in before:
                os.kill(pid, signal.SIGKILL)
            kill.back = await until_so(lambda: set(fleet.control()) - set(before) != set(), "a control process")
        case "supervisor":
            kill = Kill(what, time.monotonic())
            os.kill(fleet.pid, signal.SIGKILL)
            await asyncio.to_thread(fleet.exit_code)
            await asyncio.to_thread(fleet.start)
            kill.back = time.monotonic()
        case _:
            kill = Kill(what, time.monotonic())
            await asyncio.to_thread(postgres.kill)
            await asyncio.sleep(chance.uniform(0.0, 1.0))
            await asyncio.to_thread(postgres.start)
            kill.back = time.monotonic()
    return kill


def _fresh(load: Load, since: float) -> bool:
    """Whether a worker answers that had not answered before `since`; its first may be one that waited in the queue."""
    old = {one.incarnation for one in load.asked if one.id and one.answered < since}
    return any(one.answered >= since and one.incarnation not in old for one in reversed(load.asked[-500:]))


def _check_streams(faults: list[str], asked: list[Asked], kills: list[Kill], entries: list[Entry]) -> None:
    """Only a killed worker's answers break, and around another process's death none does."""
    broken = [one for one in asked if one.end is End.BROKEN]
    workers = [kill for kill in kills if kill.what == "worker"]
    for one in broken:
        near = [kill for kill in kills if kill.at - 0.05 <= one.ended <= max(kill.back, kill.at + 1.0) + 0.5]
        if one.id:
            if not any(kill in workers for kill in near):
                faults.append(f"{one.id} broke at {one.ended:.3f} though no worker was killed then: {near}")
        elif not any(kill.what in ("worker", "supervisor") for kill in near):
            faults.append(f"{one.marker} had no answer at {one.ended:.3f}: {near}")
    for kill in workers:
        dead = {one.incarnation for one in broken if one.id and kill.at - 0.05 <= one.ended <= kill.at + 0.5}
        if len(dead) > 1:
            faults.append(f"the death of one worker at {kill.at:.3f} broke streams of {len(dead)}")
    for one in asked:
        if one.end is End.UNCONNECTED and not any(
            kill.what == "supervisor" and kill.at - 0.05 <= one.ended <= kill.back + 0.5 for kill in kills
        ):
            faults.append(f"{one.marker} found nobody listening at {one.ended:.3f}")


def _report(kills: list[Kill]) -> str:
    lines = []
    for what in sorted({kill.what for kill in kills}):
        took = sorted(kill.back - kill.at for kill in kills if kill.what == what)
        lines.append(f"{what}: {len(took)} times, back after {took[len(took) // 2]:.2f} s, at most {took[-1]:.2f} s")
    return "; ".join(lines)
