"""What holds wherever limits are kept. `TestMemory` and `TestValkey` run it."""

import asyncio
from contextlib import suppress

import pytest

from headrace.model.allowance import CORRECTIONS, Claim, Counters, Denial, Lease, Limit, Spent
from headrace.model.limits import Budget, Exceeded, Limits, Window
from tests.shared.stage import HOUR, Stage, balance, claim, denied, eventually, granted, nothing_spent


class Contract:
    """Scenarios on a stage."""

    def test_a_minute_is_any_60_whole_seconds(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            two = [claim(requests_per_minute=2)]
            granted(await counters.claim(two))
            await stage.pass_time(30)
            granted(await counters.claim(two))
            denial = denied(await counters.claim(two))
            assert (denial.limit, denial.subject) == (Limit.REQUESTS, "key:a")
            assert denial.retry_after_s is not None
            await stage.pass_time(denial.retry_after_s - 0.5)
            denied(await counters.claim(two))
            await stage.pass_time(0.5)
            granted(await counters.claim(two))
            assert denied(await counters.claim(two)).retry_after_s == pytest.approx(30, abs=1)
            await stage.pass_time(300)
            assert (await balance(counters, two[0])).requests == 0

        stage.run(scenario)

    def test_tokens_are_refused_once_the_sum_has_reached_the_limit(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            asked = [claim(tokens_per_minute=100, tokens=99)]
            granted(await counters.claim(asked)).settle(99, 0)
            await stage.pass_time(10)
            second = granted(await counters.claim(asked))
            assert (await balance(counters, asked[0])).tokens == 198
            assert denied(await counters.claim(asked)).limit is Limit.TOKENS
            second.settle(500, 0)
            await stage.pass_time(50)  # the first 99 have left, and of the others none
            assert (await balance(counters, asked[0])).tokens == 500
            denial = denied(await counters.claim(asked))
            assert denial.retry_after_s == pytest.approx(10, abs=1)
            await stage.pass_time(10)
            granted(await counters.claim(asked))

        stage.run(scenario)

    def test_what_was_estimated_too_high_is_taken_back_where_it_was_counted(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            asked = [claim(tokens_per_minute=1000, tokens=300)]
            lease = granted(await counters.claim(asked))
            await stage.pass_time(20)
            granted(await counters.claim(asked))
            lease.settle(100, 0)
            assert (await balance(counters, asked[0])).tokens == 400
            await stage.pass_time(40)
            assert (await balance(counters, asked[0])).tokens == 300
            late = granted(await counters.claim(asked))
            await stage.pass_time(70)
            late.settle(0, 0)
            assert (await balance(counters, asked[0])).tokens == 0

        stage.run(scenario)

    def test_rooms_are_what_is_left_behind_the_claim(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            asked = [claim(requests_per_minute=5, tokens_per_minute=100, tokens=30), claim("owner:o", concurrent=9)]
            granted(await counters.claim(asked))
            await stage.pass_time(5)
            lease = granted(await counters.claim(asked))
            key, owner = lease.room(0), lease.room(1)
            assert (key.requests_left, key.tokens_left) == (3, 40)
            assert 59 <= key.requests_reset_s <= 60
            assert 59 <= key.tokens_reset_s <= 60
            assert (owner.requests_left, owner.tokens_left) == (None, None)

        stage.run(scenario)

    def test_places_come_back_exactly_once(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            one = [claim(concurrent=2)]
            first, _ = granted(await counters.claim(one)), granted(await counters.claim(one))
            denial = denied(await counters.claim(one))
            assert (denial.limit, denial.retry_after_s) == (Limit.CONCURRENT, None)
            first.settle(0, 0)
            first.settle(0, 0)
            granted(await counters.claim(one))
            denied(await counters.claim(one))
            assert (await balance(counters, one[0])).running == 2

        stage.run(scenario)

    def test_all_claims_or_none(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            key, owner = claim(concurrent=5, tokens=7), claim("owner:o", concurrent=1, tokens=7)
            lease = granted(await counters.claim([key, owner]))
            assert denied(await counters.claim([key, owner])).subject == "owner:o"
            standing = await balance(counters, key)
            assert (standing.running, standing.requests, standing.tokens) == (1, 1, 7)
            lease.settle(7, 0)
            granted(await counters.claim([key, owner]))

        stage.run(scenario)

    def test_a_budget_admits_while_something_is_left(self, stage: Stage) -> None:
        """B121: 0.45 pays for two calls of 0.30 at once, and for no third."""

        async def scenario() -> None:
            counters = await stage.counters()
            asked = claim(amount=45, hold=30)
            counters.cover(nothing_spent(asked))
            first, second = await admitted(counters, asked), await admitted(counters, asked)
            denial = denied(await counters.claim([asked]))
            assert (denial.limit, denial.retry_after_s) == (Limit.BUDGET, None)
            first.settle(0, 10)
            second.settle(0, 10)
            standing = await balance(counters, asked)
            assert (standing.spent, standing.held) == (20, 0)
            (await admitted(counters, asked)).settle(0, 25)
            denial = denied(await counters.claim([asked]))
            assert denial.limit is Limit.BUDGET
            assert denial.retry_after_s == HOUR + 3600 - stage.now()

        stage.run(scenario)

    def test_a_budget_of_50_calls_admits_50_of_200_at_once(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            key, owner = claim(amount=50 * 30, hold=30, wait=5.0), claim("owner:o", concurrent=500)
            counters.cover(nothing_spent(key))
            (await admitted(counters, key)).settle(0, 0)
            found = await asyncio.gather(*(counters.claim([key, owner]) for _ in range(200)))
            leases = [one for one in found if not isinstance(one, Denial)]
            assert len(leases) == 50
            assert {one.limit for one in found if isinstance(one, Denial)} == {Limit.BUDGET}
            for lease in leases:
                lease.settle(0, 30)
            standing = await balance(counters, key)
            assert (standing.spent, standing.held, standing.running) == (1500, 0, 0)
            assert denied(await counters.claim([key])).limit is Limit.BUDGET

        stage.run(scenario)

    def test_nothing_can_be_spent_of_nothing(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            asked = claim(amount=0, requests_per_minute=0, wait=5.0)
            counters.cover(nothing_spent(asked))
            denial = await spoken(counters, asked)
            assert (denial.limit, denial.retry_after_s) == (Limit.BUDGET, None)

        stage.run(scenario)

    def test_amounts_are_exact_where_floats_are_not(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            asked = claim(amount=2**60 + 2, hold=2**55)
            counters.cover(nothing_spent(asked))
            (await admitted(counters, asked)).settle(0, 2**60)
            (await admitted(counters, asked)).settle(0, 1)
            assert (await balance(counters, asked)).spent == 2**60 + 1
            (await admitted(counters, asked)).settle(0, 1)
            denied(await counters.claim([asked]))

        stage.run(scenario)

    def test_what_was_spent_has_to_be_known(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            asked = claim(amount=100)
            assert denied(await counters.claim([asked])).limit is Limit.UNKNOWN
            counters.cover(nothing_spent(asked))
            await admitted(counters, asked)
            later = Claim("key:a", Limits(), Budget(100, Window.HOUR), window=HOUR + 3600)
            granted(await counters.claim([later]))
            daily = Claim("key:a", Limits(), Budget(100, Window.DAY), window=HOUR)
            assert denied(await counters.claim([daily])).limit is Limit.UNKNOWN

        stage.run(scenario)

    def test_the_ledger_never_takes_back_what_is_known(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters("w1")
            asked = claim(amount=1000)
            purse = asked.purse
            counters.cover(nothing_spent(asked))
            (await admitted(counters, asked)).settle(0, 50)
            told = [
                (Spent(purse=purse, settled=10, parts={"w1": 20, "gone": 5}), 65),
                (Spent(purse=purse, settled=10, parts={"w1": 80, "gone": 5}), 95),
                (Spent(purse=purse, settled=10, parts={"w1": 20, "gone": 1}), 95),
                (Spent(purse=purse, settled=16, parts={"w1": 80}), 96),
                (Spent(purse=purse), 96),
            ]
            for spent, total in told:
                counters.cover([spent])
                await waiting(counters, asked)
                assert (await balance(counters, asked)).spent == total

        stage.run(scenario)

    def test_corrections_go_up_and_down(self, stage: Stage) -> None:
        """Entries that were rated again may have become cheaper: then there is room again."""

        async def scenario() -> None:
            counters = await stage.counters("w1")
            asked = claim(amount=100)
            purse = asked.purse
            counters.cover(nothing_spent(asked))
            (await admitted(counters, asked)).settle(0, 100)
            for corrected, total in ((5, 105), (-40, 60), (-30, 70), (0, 100), (-1, 99)):
                counters.cover([Spent(purse=purse, parts={"w1": 100, CORRECTIONS: corrected})])
                await waiting(counters, asked)
                assert (await balance(counters, asked)).spent == total
            await admitted(counters, asked)

        stage.run(scenario)

    def test_whoever_runs_on_a_spent_budget_is_told_once(self, stage: Stage) -> None:
        async def scenario() -> None:
            told: list[str] = []
            counters = await stage.counters(stopped=told.append)
            asked = Claim("key:a", Limits(), Budget(100, Window.HOUR, Exceeded.STOP), hold=1, window=HOUR)
            counters.cover(nothing_spent(asked))
            leases = [await admitted(counters, asked) for _ in range(3)]
            leases[0].settle(0, 99)
            await balance(counters, asked)
            assert told == []
            leases[1].settle(0, 1)
            leases[2].settle(0, 1)
            await balance(counters, asked)
            assert told == [asked.purse]

        stage.run(scenario)

    def test_a_request_waits_for_a_place_first_come_first_served(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            one = [claim(concurrent=1, wait=20.0)]
            order: list[int] = []

            async def wait(number: int) -> None:
                lease = granted(await counters.claim(one))
                order.append(number)
                await asyncio.sleep(0)
                lease.settle(0, 0)

            lease = granted(await counters.claim(one))
            tasks = []
            for number in range(5):
                tasks.append(asyncio.create_task(wait(number)))
                await waiting(counters, one[0])
            lease.settle(0, 0)
            await asyncio.gather(*tasks)
            assert order == [0, 1, 2, 3, 4]
            assert (await balance(counters, one[0])).running == 0

        stage.run(scenario)

    def test_a_newcomer_overtakes_nobody(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            patient, hasty = [claim(concurrent=1, wait=20.0)], [claim(concurrent=1)]
            lease = granted(await counters.claim(patient))
            waiter = asyncio.create_task(counters.claim(patient))
            await waiting(counters, patient[0])
            lease.settle(0, 0)  # free, and promised to the waiter
            denial = denied(await counters.claim(hasty))
            assert denial.limit is Limit.CONCURRENT
            granted(await waiter)

        stage.run(scenario)

    def test_one_key_at_its_limit_keeps_nobody_else_of_its_owner_waiting(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            owner = claim("owner:o", concurrent=9)
            full, free = claim(concurrent=1, wait=20.0), claim("key:b")
            lease = granted(await counters.claim([full, owner]))
            waiter = asyncio.create_task(counters.claim([full, owner]))
            await waiting(counters, full)
            granted(await counters.claim([free, owner]))
            lease.settle(0, 0)
            granted(await waiter)

        stage.run(scenario)

    def test_what_cannot_come_in_time_is_not_waited_for(self, stage: Stage) -> None:
        """B124: of 30 at once, 10 pass and 20 are told at once."""

        async def scenario() -> None:
            counters = await stage.counters()
            asked = [claim(requests_per_minute=10, wait=5.0)]
            found = await asyncio.gather(*(counters.claim(asked) for _ in range(30)))
            denials = [one for one in found if isinstance(one, Denial)]
            assert len(denials) == 20
            assert {one.limit for one in denials} == {Limit.REQUESTS}
            assert all(one.retry_after_s is not None and 58 < one.retry_after_s <= 60 for one in denials)

        before = stage.now()
        stage.run(scenario)
        assert stage.now() == before  # nothing slept

    def test_a_budget_is_not_waited_for_behind_others(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            poor = claim(concurrent=1, amount=10, hold=10, wait=20.0)
            counters.cover(nothing_spent(poor))
            lease = await admitted(counters, poor)
            assert denied(await counters.claim([poor])).limit is Limit.BUDGET
            rich = claim(concurrent=1, wait=20.0)
            waiter = asyncio.create_task(counters.claim([rich]))
            await waiting(counters, rich)
            assert denied(await counters.claim([poor])).limit is Limit.BUDGET
            lease.settle(0, 0)
            granted(await waiter)

        stage.run(scenario)

    def test_who_stops_waiting_leaves_nothing_behind(self, stage: Stage) -> None:
        """B061, of those that wait."""

        async def scenario() -> None:
            counters = await stage.counters()
            asked = claim(concurrent=1, requests_per_minute=100, tokens=5, wait=20.0)
            lease = granted(await counters.claim([asked]))
            waiters = [asyncio.create_task(counters.claim([asked])) for _ in range(3)]
            await waiting(counters, asked)
            waiters[0].cancel()  # the first in line
            waiters[1].cancel()
            lease.settle(5, 0)
            last = granted(await waiters[2])
            for one in waiters[:2]:
                with suppress(asyncio.CancelledError):
                    await one
            standing = await balance(counters, asked)
            assert (standing.running, standing.requests, standing.tokens) == (1, 2, 10)
            last.settle(5, 0)
            granted(await counters.claim([asked]))

        stage.run(scenario)

    def test_cancelled_at_any_moment_a_claim_is_whole_or_nothing(self, stage: Stage) -> None:
        """B061, of those that ask."""

        async def scenario() -> None:
            counters = await stage.counters()
            asked = claim(concurrent=1, requests_per_minute=1000, amount=1000, hold=9, wait=20.0)
            counters.cover(nothing_spent(asked))
            (await admitted(counters, asked)).settle(0, 0)
            for turns in range(12):
                task = asyncio.create_task(counters.claim([asked]))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    granted(await task).settle(0, 0)
                lease = granted(await counters.claim([asked]))
                lease.settle(0, 0)
                standing = await balance(counters, asked)
                assert (standing.running, standing.held, standing.spent) == (0, 0, 0)

        stage.run(scenario)

    def test_of_several_credentials_the_first_with_room(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            options = [claim("credential:c/a", concurrent=1), claim("credential:c/b", requests_per_minute=1)]
            found = [await counters.claim_one(options, 0.0) for _ in range(3)]
            assert [one[0] for one in found[:2] if not isinstance(one, Denial)] == [0, 1]
            assert denied(found[2]).subject == "credential:c/a"  # a place may come sooner than a minute's end
            assert not isinstance(found[0], Denial)
            waiter = asyncio.create_task(counters.claim_one(options, 20.0))
            await waiting(counters, options[0])
            found[0][1].settle(0, 0)
            last = await waiter
            assert not isinstance(last, Denial)
            assert last[0] == 0

        stage.run(scenario)

    def test_credentials_that_are_full_for_longer_are_not_waited_for(self, stage: Stage) -> None:
        async def scenario() -> None:
            counters = await stage.counters()
            options = [claim(f"credential:c/{name}", requests_per_minute=1) for name in "ab"]
            for _ in options:
                assert not isinstance(await counters.claim_one(options, 0.0), Denial)
            assert denied(await counters.claim_one(options, 20.0)).limit is Limit.REQUESTS

        before = stage.now()
        stage.run(scenario)
        assert stage.now() == before


async def admitted(counters: Counters, asked: Claim) -> Lease:
    """A lease on a budget, as soon as its spending is known."""
    found: list[Lease | Denial] = []

    async def is_known() -> bool:
        found.append(await counters.claim([asked]))
        return not isinstance(last := found[-1], Denial) or last.limit is not Limit.UNKNOWN

    await eventually(is_known)
    return granted(found[-1])


async def spoken(counters: Counters, asked: Claim) -> Denial:
    """A denial that is not for want of knowledge."""

    async def is_known() -> bool:
        return (await balance(counters, asked)).spent is not None

    await eventually(is_known)
    return denied(await counters.claim([asked]))


async def waiting(counters: Counters, asked: Claim) -> None:
    """Once what was just asked for is in line, or told to Valkey: some round trips later."""
    for _ in range(4):
        await counters.balances([asked])
        await asyncio.sleep(0)
