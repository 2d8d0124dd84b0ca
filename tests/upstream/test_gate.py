import asyncio
from contextlib import suppress

from headrace.upstream.gate import Gate
from tests.upstream.wire import run


def test_places_are_bounded_and_passed_on_in_order() -> None:
    async def main() -> None:
        gate = Gate(2)
        assert gate.try_enter() and gate.try_enter() and not gate.try_enter()
        order: list[int] = []

        async def waiting(number: int) -> None:
            assert await gate.enter(5)
            order.append(number)

        tasks = [asyncio.ensure_future(waiting(number)) for number in range(3)]
        await asyncio.sleep(0)
        for _ in range(3):
            gate.leave()
            assert not gate.try_enter(), "those who wait come first"
            await asyncio.sleep(0.001)
        assert order == [0, 1, 2]
        await asyncio.gather(*tasks)
        gate.leave()
        gate.leave()
        assert gate.in_use == 0

    run(main())


def test_waiting_ends_in_time() -> None:
    async def main() -> None:
        gate = Gate(1)
        assert await gate.enter(1)
        assert not await gate.enter(0.01)
        gate.leave()
        assert gate.in_use == 0 and await gate.enter(0.01)

    run(main())


def test_a_place_that_comes_to_one_who_has_left_is_passed_on() -> None:
    async def main() -> None:
        gate = Gate(1)
        assert gate.try_enter()
        first, second = (asyncio.ensure_future(gate.enter(5)) for _ in range(2))
        await asyncio.sleep(0)
        gate.leave()
        first.cancel()  # in the same turn as its place came
        with suppress(asyncio.CancelledError):
            await first
        assert await second
        third = asyncio.ensure_future(gate.enter(5))
        await asyncio.sleep(0)
        third.cancel()
        gate.leave()  # passes over one that is about to go
        with suppress(asyncio.CancelledError):
            await third
        assert gate.in_use == 0

    run(main())


def test_a_larger_limit_lets_the_next_ones_in() -> None:
    async def main() -> None:
        gate = Gate(1)
        assert gate.try_enter() and not gate.try_enter()
        gate.limit = 2
        assert gate.try_enter()

    run(main())
