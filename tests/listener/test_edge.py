"""What connections share: the budget, the sweep, and the wait for the last one."""

import asyncio
from dataclasses import replace
from math import inf

import pytest

from headrace.listener.edge import SWEEP_MAX_S, SWEEP_MIN_S, Budget, Client, Edge, Wait
from headrace.model.settings import ServerSettings
from tests.listener.stand import refuse


class Waiter(Client):
    """A client of the sweep."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.enrolled = True
        self.wait = Wait.HEAD
        self.expired: list[float] = []

    def expire(self, now: float) -> None:
        self.expired.append(now)


def edge(settings: ServerSettings | None = None) -> Edge:
    return Edge(
        settings or ServerSettings(), lambda _: None, refuse, lambda *_: None, asyncio.get_running_loop(), strict=True
    )


def test_budget() -> None:
    budget = Budget(10)
    assert budget.has_room(10)
    budget.used = 4
    assert budget.has_room(6)
    assert not budget.has_room(7)


async def test_the_sweep_tells_those_that_are_due_and_forgets_those_that_wait_no_longer() -> None:
    shared = edge()
    due, later, done = Waiter(5.0), Waiter(6.0), Waiter(inf)
    shared.waiting.update((due, later, done))
    shared.sweep(5.0)
    assert (due.expired, later.expired, done.expired) == ([5.0], [], [])
    assert shared.waiting == {due, later}
    assert not done.enrolled


@pytest.mark.parametrize(("limit", "period"), [(0.001, SWEEP_MIN_S), (0.8, 0.1), (60.0, SWEEP_MAX_S)])
async def test_the_sweep_scales_with_the_smallest_limit(limit: float, period: float) -> None:
    for name in ("head_timeout", "body_timeout", "idle_timeout"):
        limits = {"head_timeout": 99.0, "body_timeout": 99.0, "idle_timeout": 99.0, name: limit}
        settings = replace(ServerSettings(), **limits)  # type: ignore[arg-type]
        assert edge(settings).sweep_s == pytest.approx(period)


async def test_emptied_waits_for_the_last_and_by_many() -> None:
    shared = edge()
    await shared.emptied()
    one, two = Waiter(inf), Waiter(inf)
    shared.clients.update((one, two))
    given_up = asyncio.ensure_future(shared.emptied())
    waits = [asyncio.ensure_future(shared.emptied()) for _ in range(2)]
    await asyncio.sleep(0)
    given_up.cancel()
    shared.forget(one)
    await asyncio.sleep(0)
    assert not waits[0].done()
    shared.forget(two)
    await asyncio.gather(*waits)


def test_a_client_has_to_be_one() -> None:
    client = Client()
    with pytest.raises(NotImplementedError):
        client.expire(0.0)
    with pytest.raises(NotImplementedError):
        client.drain()
    with pytest.raises(NotImplementedError):
        client.reset()
