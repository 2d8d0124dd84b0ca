"""Counters in Valkey: what the contract says, and what happens when it is slow, dead, empty, or shared."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from headrace.model.allowance import Claim, Denial, Lease, Limit, Spent
from headrace.model.settings import SharedOutage
from headrace.shared.valkey import ValkeyCounters
from tests.shared.contract import Contract, admitted, waiting
from tests.shared.stage import NOON, ValkeyStage, balance, claim, denied, eventually, granted, nothing_spent
from tests.stand.valkey import Valkey

ROOT = Path(__file__).resolve().parents[2]
QUICK = {"timeout_s": 0.05, "patience_s": 0.5, "beat_s": 0.05}


@pytest.fixture
def stage(valkey: Valkey) -> ValkeyStage:
    return ValkeyStage(valkey.url)


class TestValkey(Contract):
    """All that the contract says."""


def at_once(counters: ValkeyCounters, asked: Sequence[Claim]) -> Lease | Denial:
    """What a claim comes to that waits for nothing at all."""
    coroutine = counters.claim(asked)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        found: Lease | Denial = stop.value
        return found
    coroutine.close()
    raise AssertionError("it waits")


async def answers_alone(counters: ValkeyCounters, asked: Sequence[Claim]) -> list[Lease]:
    """Claim until Valkey is not asked any more; the leases from it and from the worker itself."""
    leases = []
    async with asyncio.timeout(20):
        while True:
            leases.append(granted(await counters.claim(asked)))
            coroutine = counters.claim(asked)
            try:
                coroutine.send(None)
            except StopIteration as stop:
                leases.append(granted(stop.value))
                return leases
            coroutine.close()


# ---- outages


@pytest.mark.parametrize("end", ["freeze", "kill"])
def test_in_an_outage_a_worker_goes_on_alone_and_what_it_gave_counts_afterwards(valkey: Valkey, end: str) -> None:
    """Case B117: frozen or dead, nobody waits once it is noticed, and all is exact again when it is back."""
    stage = ValkeyStage(valkey.url, QUICK, SharedOutage.ALLOW)
    asked = claim(concurrent=100, amount=10**6, hold=10)

    async def scenario() -> None:
        one, other = await stage.counters("w1"), await stage.counters("w2")
        for counters in (one, other):
            counters.cover(nothing_spent(asked))
        leases = [await admitted(one, asked), await admitted(other, asked)]
        leases[1].settle(0, 7)
        getattr(valkey, end)()
        alone = await answers_alone(one, [asked])
        for _ in range(3):
            granted(at_once(one, [asked]))
        taken = 1 + len(alone) + 3
        alone[0].settle(0, 100)
        await eventually(lambda: is_said(stage, "counts limits by itself"))
        valkey.thaw() if end == "freeze" else valkey.start()

        async def is_exact() -> bool:
            standing = await balance(other, asked)
            return (standing.running, standing.spent, standing.held) == (taken - 1, 107, 10 * (taken - 1))

        await eventually(is_exact)

    stage.run(scenario)
    assert any(line.endswith("is back: limits are counted there again.") for line in stage.said)


def test_a_short_stall_is_bridged_and_late_replies_leave_nothing(valkey: Valkey) -> None:
    stage = ValkeyStage(valkey.url, {**QUICK, "patience_s": 20.0, "beat_s": 60.0}, SharedOutage.ALLOW)
    asked = claim(concurrent=100)

    async def scenario() -> None:
        counters = await stage.counters()
        granted(await counters.claim([asked]))
        valkey.freeze()
        alone = await answers_alone(counters, [asked])
        valkey.thaw()
        other = await stage.counters("w2")

        async def is_exact() -> bool:
            return (await balance(other, asked)).running == 1 + len(alone)

        await eventually(is_exact)
        for lease in alone:
            lease.settle(0, 0)
        assert (await balance(counters, asked)).running == 1

    stage.run(scenario)
    assert stage.said == []


def test_what_is_granted_too_late_for_its_request_counts_for_no_minute(valkey: Valkey) -> None:
    """Three requests are refused while Valkey is silent; its late grants take nothing of what is left."""
    stage = ValkeyStage(valkey.url, {**QUICK, "patience_s": 20.0, "beat_s": 60.0}, SharedOutage.REFUSE)
    asked = claim(requests_per_minute=5, concurrent=100, tokens=7)

    async def scenario() -> None:
        counters = await stage.counters()
        granted(await counters.claim([asked]))
        valkey.freeze()
        late = await asyncio.gather(*(counters.claim([asked]) for _ in range(3)))
        assert {denied(one).limit for one in late} == {Limit.UNKNOWN}
        valkey.thaw()

        async def is_heard() -> bool:
            return not isinstance(await counters.peek([asked]), Denial)

        await eventually(is_heard)
        standing = await balance(counters, asked)
        assert (standing.requests, standing.tokens, standing.running) == (1, 7, 1)

    stage.run(scenario)


def test_the_policy_may_refuse(valkey: Valkey) -> None:
    stage = ValkeyStage(valkey.url, QUICK, SharedOutage.REFUSE)
    asked = claim(concurrent=5, wait=20.0)

    async def scenario() -> None:
        counters = await stage.counters()
        lease = granted(await counters.claim([asked]))
        valkey.kill()

        async def is_refused() -> bool:
            found = await counters.claim([asked])
            return isinstance(found, Denial) and found.limit is Limit.UNKNOWN

        await eventually(is_refused)
        assert denied(at_once(counters, [asked])).limit is Limit.UNKNOWN
        lease.settle(0, 0)
        valkey.start()

        async def is_back() -> bool:
            return not isinstance(await counters.claim([asked]), Denial)

        await eventually(is_back)
        assert (await balance(counters, asked)).running == 1

    stage.run(scenario)
    assert "refused" in stage.said[0]


def test_a_worker_starts_without_valkey(valkey: Valkey) -> None:
    stage = ValkeyStage(valkey.url, QUICK, SharedOutage.ALLOW)

    async def scenario() -> None:
        valkey.kill()
        counters = await stage.counters()
        granted(at_once(counters, [claim(concurrent=1)]))
        denied(await counters.claim([claim(concurrent=1)]))
        valkey.start()
        await eventually(lambda: is_said(stage, "is back"))
        assert denied(await counters.claim([claim(concurrent=1)])).limit is Limit.CONCURRENT

    stage.run(scenario)


async def is_said(stage: ValkeyStage, words: str) -> bool:
    """Whether a line has the words."""
    return any(words in line for line in stage.said)


# ---- what Valkey loses


def test_what_is_open_and_spent_survives_an_emptied_valkey(stage: ValkeyStage, valkey: Valkey) -> None:
    asked = claim(concurrent=3, amount=1000, hold=10)

    async def scenario() -> None:
        one, other = await stage.counters("w1"), await stage.counters("w2")
        for counters in (one, other):
            counters.cover(nothing_spent(asked))
        (await admitted(one, asked)).settle(0, 500)
        leases = [await admitted(one, asked), await admitted(other, asked)]
        valkey.execute("FLUSHALL")
        leases.append(await admitted(one, asked))

        async def is_whole() -> bool:
            return not isinstance(await other.claim([asked]), Denial) or (await balance(other, asked)).running == 3

        await eventually(is_whole)
        standing = await balance(one, asked)
        assert (standing.running, standing.spent, standing.held) == (3, 500, 30)

    stage.run(scenario)


def test_a_purse_that_was_lost_is_seeded_once_and_holds_come_back(stage: ValkeyStage, valkey: Valkey) -> None:
    asked = claim(amount=1000, hold=10)
    sought: list[str] = []

    async def seed(purses: Sequence[str]) -> Sequence[Spent]:
        sought.extend(purses)
        await asyncio.sleep(0.01)
        return [Spent(purse=purse, settled=30, parts={"gone": 100}) for purse in purses]

    stage.seed = seed

    async def scenario() -> None:
        one, other = await stage.counters("w1"), await stage.counters("w2")
        found = await asyncio.gather(*(counters.claim([asked]) for counters in (one, other) for _ in range(5)))
        assert sought == [asked.purse]
        granted(found[0]).settle(0, 7)
        assert (await balance(one, asked)).held == 90
        valkey.execute("DEL", f"headrace:purse:{asked.purse}")
        for counters in (one, other):
            granted(await counters.claim([asked]))
        standing = await balance(one, asked)
        assert (standing.spent, standing.held) == (137, 110)
        assert len(sought) == 2

    stage.run(scenario)


def test_a_seed_without_an_answer_is_unknown_spending(stage: ValkeyStage) -> None:
    async def seed(purses: Sequence[str]) -> None:
        return None

    stage.seed = seed

    async def scenario() -> None:
        counters = await stage.counters()
        assert denied(await counters.claim([claim(amount=5)])).limit is Limit.UNKNOWN
        assert (await balance(counters, claim(amount=5))).spent is None

    stage.run(scenario)


def test_parts_of_the_dead_are_counted_once_when_the_ledger_folds_them(stage: ValkeyStage) -> None:
    asked = claim(amount=10**6)
    purse = asked.purse

    async def scenario() -> None:
        one, gone = await stage.counters("w1"), await stage.counters("w2")
        for counters in (one, gone):
            counters.cover(nothing_spent(asked))
        (await admitted(one, asked)).settle(0, 5)
        (await admitted(gone, asked)).settle(0, 70)
        await balance(gone, asked)  # behind the settlement, on its own connection
        assert (await balance(one, asked)).spent == 75
        gone.close()
        told = [
            (Spent(purse=purse, parts={"w1": 5, "w2": 60}), 75),  # behind what is known
            (Spent(purse=purse, parts={"w1": 5, "w2": 72}), 77),
            (Spent(purse=purse, settled=3, parts={"w1": 5}), 77),  # of before it knew of w2
            (Spent(purse=purse, settled=72, parts={"w1": 5}), 77),
            (Spent(purse=purse, settled=80, parts={"w1": 6}), 86),
        ]
        for spent, total in told:
            one.cover([spent])
            await waiting(one, asked)
            assert (await balance(one, asked)).spent == total

    stage.run(scenario)


# ---- several workers


def test_limits_hold_over_all_workers(stage: ValkeyStage) -> None:
    asked = claim(concurrent=3, requests_per_minute=100, amount=1000, hold=10)

    async def scenario() -> None:
        workers = [await stage.counters(f"w{number}") for number in range(3)]
        for counters in workers:
            counters.cover(nothing_spent(asked))
        leases = [await admitted(counters, asked) for counters in workers]
        for counters in workers:
            assert denied(await counters.claim([asked])).limit is Limit.CONCURRENT
        leases[0].settle(0, 995)
        for counters in workers:
            assert denied(await counters.claim([asked])).limit is Limit.BUDGET
        assert await asyncio.gather(*(balance(counters, asked) for counters in workers)) == 3 * [
            await balance(workers[0], asked)
        ]

    stage.run(scenario)


def test_a_place_that_another_worker_gives_back_is_found(stage: ValkeyStage) -> None:
    asked = claim(concurrent=1, wait=20.0)

    async def scenario() -> None:
        one, other = await stage.counters("w1"), await stage.counters("w2")
        lease = granted(await one.claim([asked]))
        waiter = asyncio.create_task(other.claim([asked]))
        await balance(other, asked)
        lease.settle(0, 0)
        granted(await waiter)

    stage.run(scenario)


def test_what_the_dead_held_comes_back_and_who_was_taken_for_dead_counts_again(valkey: Valkey) -> None:
    stage = ValkeyStage(valkey.url, {"beat_s": 0.02})
    asked = claim(concurrent=2, amount=100, hold=60)

    async def scenario() -> None:
        slow = await stage.counters_at("w1", lambda: NOON)  # its beats stay behind
        slow.cover(nothing_spent(asked))
        lease = await admitted(slow, asked)
        other = await stage.counters("w2")
        other.cover(nothing_spent(asked))
        assert (await balance(other, asked)).running == 1
        await stage.pass_time(20)

        async def is_free() -> bool:
            standing = await balance(other, asked)
            return (standing.running, standing.held) == (0, 0)

        await eventually(is_free)
        stage.time = NOON  # so that it is alive from now on
        lease.settle(0, 1)
        await admitted(slow, asked)

        async def is_known() -> bool:
            standing = await balance(other, asked)
            return (standing.running, standing.spent, standing.held) == (1, 1, 60)

        await eventually(is_known)

    stage.run(scenario)


def test_who_leaves_gives_back_at_once(stage: ValkeyStage) -> None:
    asked = claim(concurrent=1)

    async def scenario() -> None:
        one, other = await stage.counters("w1"), await stage.counters("w2")
        lease = granted(await one.claim([asked]))
        one.close()
        lease.settle(0, 0)

        async def is_free() -> bool:
            return not isinstance(await other.claim([asked]), Denial)

        await eventually(is_free)

    stage.run(scenario)


# ---- several processes


@contextmanager
def process(valkey: Valkey, name: str, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A worker of its own: `tests/shared/hammer.py`."""
    command = [sys.executable, "-m", "tests.shared.hammer", valkey.url, name, *words]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield running
    finally:
        running.kill()
        running.wait()
        assert running.stdout is not None
        running.stdout.close()


def test_ten_at_a_time_and_600_a_minute_hold_exactly_over_processes(valkey: Valkey) -> None:
    names = ["node-a/0", "node-a/1", "node-b/0", "node-b/1"]
    with ExitStack() as stack:
        running = [stack.enter_context(process(valkey, name, "hammer", str(len(names)))) for name in names]
        results = [json.loads(one.communicate()[0]) for one in running]
    assert sum(one["granted"] for one in results) == 600
    assert max(one["most"] for one in results) == 10
    assert all(one["granted"] for one in results)


def test_a_killed_process_gives_back_what_it_held(valkey: Valkey) -> None:
    stage = ValkeyStage(valkey.url, {"beat_s": 0.05})
    asked = claim(concurrent=10)

    async def scenario() -> None:
        with process(valkey, "node-a/0", "hold") as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            counters = await stage.counters("node-b/0")
            assert denied(await counters.claim([asked])).limit is Limit.CONCURRENT
            holder.kill()
            holder.wait()
            await stage.pass_time(16)
            leases = []

            async def is_free() -> bool:
                leases.append(await counters.claim([asked]))
                return (await balance(counters, asked)).running == 10

            await eventually(is_free)

    stage.run(scenario)


# ---- Valkey's clock


def test_a_clock_that_goes_back_a_little_is_waited_for_and_one_that_goes_far_begins_anew(stage: ValkeyStage) -> None:
    asked = claim(requests_per_minute=2, tokens=3)

    async def scenario() -> None:
        counters = await stage.counters()
        granted(await counters.claim([asked]))
        await stage.pass_time(-30)
        granted(await counters.claim([asked])).settle(9, 0)
        assert denied(await counters.claim([asked])).retry_after_s == 60
        assert (await balance(counters, asked)).tokens == 12
        await stage.pass_time(30 + 60)
        granted(await counters.claim([asked]))
        await stage.pass_time(-500)
        granted(await counters.claim([asked]))
        assert (await balance(counters, asked)).requests == 1

    stage.run(scenario)
