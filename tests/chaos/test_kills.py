"""`kill -9` of every kind of process at random moments under load: nothing that may cost money is lost or doubled.

HEADRACE_KILLS=300 makes it long; HEADRACE_SEED=n repeats one run's choices.

A worker is back in under 2 s, not counting the rest that its seat takes by rule when it has died soon after its start
too often. A long run holds each return to that, less the time for which the new worker was ready to run and other
processes had the cores. A short one, beside other tests, holds them to what it takes on this machine, in the same
moments, to read a worker's modules: nothing else may take long.
"""

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.simulator import SimulatorThread
from tests.chaos.books import Death, audit
from tests.chaos.fleet import Fleet
from tests.chaos.gateway_file import write_config
from tests.chaos.ledger import entries_in, open_in
from tests.chaos.load import Asked, End, Load, until_so
from tests.chaos.returns import Return, returns
from tests.stand import procfs
from tests.stand.postgres import Postgres
from tests.stand.valkey import Valkey

KILLS = int(os.environ.get("HEADRACE_KILLS", "8"))
SEED = int(os.environ.get("HEADRACE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
CLIENTS = 24
LONG = 100
"""So many kills are a long run."""
BACK_S = 2.0
BACK_IN_READINGS = 3.0
"""As a multiple of reading the modules. Measured: 0.8 alone and beside other work, for both meet the same load."""

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180 + 6 * KILLS)]


@dataclass(slots=True)
class Kill:
    """What was killed, when, and when it was there again (monotonic seconds)."""

    what: str
    at: float
    back: float = 0.0
    """When a client saw that it was."""
    incarnation: int | None = None
    """A worker's."""
    followed: Return | None = None
    """A worker's, as the supervisor says it."""
    queued_s: float = 0.0
    """So long the new worker waited for a core until it served."""
    reading_s: float = 0.0
    """What it took meanwhile to read a worker's modules; 0 in long runs."""

    @property
    def served_s(self) -> float:
        """From the kill of a worker until its successor served, less the rest."""
        assert self.followed is not None
        return self.followed.served - self.at - self.followed.rest_s

    @property
    def back_s(self) -> float:
        """From the kill until a client saw it back, less the rest."""
        return self.back - self.at - (self.followed.rest_s if self.followed is not None else 0.0)


def test_kills_at_random_moments(tmp_path: Path, upstream: SimulatorThread, postgres: Postgres, valkey: Valkey) -> None:
    """Every exchange has one entry, other processes' streams are untouched, and what was killed comes back."""
    database = postgres.new_database()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = write_config(tmp_path / "headrace.yaml", upstream.origin, port=port, database=database, valkey=valkey.url)
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
    deaths = [Death(kill.incarnation, kill.at) for kill in kills if kill.incarnation is not None]
    assert len(deaths) == len([kill for kill in kills if kill.what == "worker"]), "who serves has a journal"
    found = audit(asked, upstream.requests, entries, deaths)
    _check_streams(found.faults, asked, kills)
    _check_returns(found.faults, [kill for kill in kills if kill.what == "worker"])
    print(f"seed {SEED}: {len(kills)} kills, {len(asked)} requests, {len(entries)} entries, ends {dict(found.ends)}")
    print(f"{found.behind_the_end} answers came whole whose worker was killed before it had written so")
    print(*_report(kills), sep="\n")
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
            victim = chance.choice(fleet.workers())
            known = {one.incarnation for one in load.asked if one.id}
            incarnation = fleet.incarnation(victim)
            kill = Kill(what, time.monotonic(), incarnation=incarnation)
            os.kill(victim, signal.SIGKILL)
            reading = asyncio.create_task(asyncio.to_thread(_read_modules)) if KILLS < LONG else None
            await until_so(lambda: _is_back(kill, fleet, load, known), "a new worker")
            kill.reading_s = await reading if reading is not None else 0.0
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


def _is_back(kill: Kill, fleet: Fleet, load: Load, known: set[int]) -> bool:
    """Whether the supervisor says so and a client has seen it; notes when."""
    if kill.followed is None and (found := _return_of(fleet, kill.at)) is not None:
        kill.followed, kill.queued_s = found, procfs.queued_s(found.successor)
    if not kill.back and _is_answered(load, kill.at, known):
        kill.back = time.monotonic()
    return kill.followed is not None and kill.back > 0


def _is_answered(load: Load, since: float, known: set[int]) -> bool:
    """Whether a worker answers that is not `known`; its first may be a request that waited in the queue."""
    return any(one.answered >= since and one.incarnation not in known for one in reversed(load.asked[-500:]))


def _return_of(fleet: Fleet, killed: float) -> Return | None:
    """What the supervisor says of the worker that was killed last."""
    return next(iter(returns([(at, line) for at, line in fleet.said if at >= killed])), None)


def _read_modules() -> float:
    """Start a worker that ends once it has its modules, as nobody gives it a boot; how long that took."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "headrace.worker"], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert b"headrace serve" in done.stderr, done.stderr
    return time.monotonic() - began


def _check_streams(faults: list[str], asked: list[Asked], kills: list[Kill]) -> None:
    """Only a killed worker's answers break, and around another process's death none does."""
    for one in asked:
        if one.end is not End.BROKEN:
            continue
        near = [kill for kill in kills if kill.at - 0.05 <= one.ended <= max(kill.back, kill.at + 1.0) + 0.5]
        if one.id:
            if one.incarnation not in {kill.incarnation for kill in near}:
                faults.append(f"{one.id} broke at {one.ended:.3f} though its worker was not killed then: {near}")
        elif not any(kill.what in ("worker", "supervisor") for kill in near):
            faults.append(f"{one.marker} had no answer at {one.ended:.3f}: {near}")
    for one in asked:
        if one.end is End.UNCONNECTED and not any(
            kill.what == "supervisor" and kill.at - 0.05 <= one.ended <= kill.back + 0.5 for kill in kills
        ):
            faults.append(f"{one.marker} found nobody listening at {one.ended:.3f}")


def _check_returns(faults: list[str], workers: list[Kill]) -> None:
    """Workers were back in time, whatever else ran."""
    if KILLS >= LONG:
        faults += [
            f"the worker killed at {one.at:.3f} was back after {one.served_s:.2f} s, {one.queued_s:.2f} s in queue, "
            f"rests not counted: {one.followed}"
            for one in workers
            if one.served_s - one.queued_s >= BACK_S
        ]
        return
    took, reading = sum(one.served_s for one in workers), sum(one.reading_s for one in workers)
    if took > BACK_IN_READINGS * reading:
        faults.append(f"{len(workers)} returns took {took:.2f} s; to read the modules takes {reading:.2f} s")


def _report(kills: list[Kill]) -> list[str]:
    lines = []
    for what in sorted({kill.what for kill in kills}):
        lines.append(f"{what}: {_times([kill.back - kill.at for kill in kills if kill.what == what], 'seen back')}")
    workers = [kill for kill in kills if kill.followed is not None]
    for name, some in (
        ("without a rest", [kill for kill in workers if kill.followed and not kill.followed.rest_s]),
        ("after a rest, which is not counted", [kill for kill in workers if kill.followed and kill.followed.rest_s]),
    ):
        if some:
            lines.append(f"worker {name}: {_times([kill.served_s for kill in some], 'served')}")
            lines.append(f"  seen by a client: {_times([kill.back_s for kill in some], 'seen')}")
            own = [kill.served_s - kill.queued_s for kill in some]
            lines.append(f"  less what the new worker waited for a core: {_times(own, 'served')}")
    rests = [kill.followed.rest_s for kill in workers if kill.followed and kill.followed.rest_s]
    if rests:
        lines.append(f"rests: {_times(rests, 'rested')}")
    if reading := [kill.reading_s for kill in workers if kill.reading_s]:
        lines.append(f"reading a worker's modules: {_times(reading, 'read')}")
    return lines


def _times(took: list[float], word: str) -> str:
    took = sorted(took)
    return f"{len(took)} times, {word} after {took[len(took) // 2]:.2f} s, at most {took[-1]:.2f} s"
