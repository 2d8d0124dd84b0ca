"""Who waits for room: when, for how long, and in which order. Time jumps."""

import asyncio

from headrace.model.allowance import Claim, Denial, Limit
from headrace.shared.memory import MemoryCounters
from tests.shared.stage import NOON, MemoryStage, claim, denied, granted


def test_a_bucket_that_leaves_in_time_is_waited_for() -> None:
    stage = MemoryStage()

    async def scenario() -> None:
        counters = await stage.counters()
        asked = [claim(requests_per_minute=1, wait=5.0)]
        granted(await counters.claim(asked))
        await stage.pass_time(54.5)
        denied(await counters.claim(asked))
        assert stage.now() == NOON + 54.5
        await stage.pass_time(1)
        granted(await counters.claim(asked))
        assert NOON + 60 <= stage.now() < NOON + 60.1

    stage.run(scenario)


def test_a_place_that_does_not_come_is_waited_for_until_the_wait_is_over() -> None:
    stage = MemoryStage()

    async def scenario() -> None:
        counters = await stage.counters()
        granted(await counters.claim([claim(concurrent=1)]))
        denial = denied(await counters.claim([claim(concurrent=1, wait=5.0)]))
        assert (denial.limit, round(stage.now() - NOON, 3)) == (Limit.CONCURRENT, 5)

    stage.run(scenario)


def test_the_wait_is_that_of_what_denies() -> None:
    stage = MemoryStage()

    async def scenario() -> None:
        counters = await stage.counters()
        both = [claim(concurrent=9, wait=9.0), claim("owner:o", concurrent=1, wait=2.0)]
        granted(await counters.claim(both))
        assert denied(await counters.claim(both)).subject == "owner:o"
        assert round(stage.now() - NOON, 3) == 2

    stage.run(scenario)


def test_the_next_in_line_learns_at_once_that_its_room_comes_too_late() -> None:
    stage = MemoryStage()

    async def scenario() -> None:
        counters = await stage.counters()
        asked = [claim(requests_per_minute=1, wait=8.0)]
        granted(await counters.claim(asked))
        await stage.pass_time(55)
        found = await asyncio.gather(*(counters.claim(asked) for _ in range(3)))
        assert [isinstance(one, Denial) for one in found] == [False, True, True]
        assert NOON + 60 <= stage.now() < NOON + 60.1

    stage.run(scenario)


def test_who_is_denied_by_another_subject_keeps_its_place_by_arrival() -> None:
    stage = MemoryStage()

    async def scenario() -> None:
        counters = await stage.counters()
        key, owner = claim(concurrent=1, wait=20.0), claim("owner:o", concurrent=1, wait=20.0)
        of_key, of_owner = granted(await counters.claim([key])), granted(await counters.claim([owner]))
        order: list[str] = []

        async def wait(name: str, asked: list[Claim]) -> None:
            lease = granted(await counters.claim(asked))
            order.append(name)
            await asyncio.sleep(1)
            lease.settle(0, 0)

        first = asyncio.create_task(wait("both", [key, owner]))
        await asyncio.sleep(1)
        second = asyncio.create_task(wait("owner", [owner]))
        await asyncio.sleep(1)
        of_key.settle(0, 0)  # now the first one waits for the owner, and came before the second
        await asyncio.sleep(1)
        of_owner.settle(0, 0)
        await asyncio.gather(first, second)
        assert order == ["both", "owner"]

    stage.run(scenario)


def test_credentials_are_waited_for_as_long_as_the_request_may() -> None:
    stage = MemoryStage()

    async def scenario() -> None:
        counters = await stage.counters()
        options = [claim(f"credential:c/{name}", concurrent=1) for name in "ab"]
        leases = [await counters.claim_one(options, 0.0) for _ in options]
        asked = asyncio.create_task(counters.claim_one(options, 30.0))
        others = [asyncio.create_task(counters.claim_one(options, 10.0)) for _ in range(2)]
        await asyncio.sleep(1)
        assert not isinstance(leases[1], Denial)
        leases[1][1].settle(0, 0)
        found = await asked
        assert not isinstance(found, Denial)
        assert (found[0], stage.now()) == (1, NOON + 1)
        assert [denied(await one).limit for one in others] == [Limit.CONCURRENT] * 2
        assert round(stage.now() - NOON, 3) == 10

    stage.run(scenario)


def test_nobody_in_line_is_remembered_after_all_have_gone() -> None:
    stage = MemoryStage()

    async def scenario() -> None:
        counters = await stage.counters()
        assert isinstance(counters, MemoryCounters)
        one = [claim(concurrent=1, wait=3.0)]
        granted(await counters.claim(one))
        tasks = [asyncio.create_task(counters.claim(one)) for _ in range(20)]
        await asyncio.sleep(1)
        assert len(counters.lines) == 1
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(counters.lines) == 0

    stage.run(scenario)
