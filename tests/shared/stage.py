"""What counters are tested on: a loop whose time jumps to what is due, or a real Valkey with the test's own clock."""

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import uvloop

from headrace.model.allowance import Balance, Claim, Counters, Denial, Lease, Spent
from headrace.model.limits import Budget, Limits, Window
from headrace.model.settings import SharedOutage
from headrace.shared.memory import MemoryCounters
from headrace.shared.seeding import Seed
from headrace.shared.session import Timing
from headrace.shared.valkey import Hooks, ValkeyCounters

T = TypeVar("T")
NOON = 4_000_000_000.0
"""To come, or Valkey would forget at once what it keeps for a day."""
HOUR = 3_999_999_600
"""Where the hour of NOON begins."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop for what needs no sockets: where it would wait, time jumps."""

    def __init__(self) -> None:
        self.now = NOON
        super().__init__(_Selector(self))
        self._clock_resolution = 1e-4  # floats of this size tell no finer times apart

    def time(self) -> float:
        """Seconds."""
        return self.now


class _Selector(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> "list[tuple[selectors.SelectorKey, int]]":
        assert timeout is not None, "everything waits, and nothing is due"
        self._loop.now += max(timeout, 0)
        return super().select(0)


class Stage(Protocol):
    """Where a scenario runs."""

    def run(self, scenario: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run it to its end."""

    async def counters(self, name: str = "w1", stopped: Callable[[str], None] = print) -> Counters:
        """Counters of a worker."""

    async def pass_time(self, seconds: float) -> None:
        """Let minutes and windows go by."""

    def now(self) -> float:
        """The time that minutes are counted by."""


class MemoryStage:
    """Counters in memory."""

    def __init__(self) -> None:
        self._loop = VirtualLoop()

    def run(self, scenario: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """See Stage."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            return runner.run(scenario())

    async def counters(self, name: str = "w1", stopped: Callable[[str], None] = print) -> Counters:
        """See Stage."""
        return MemoryCounters(name, self._loop.time, self._loop.time, stopped)

    async def pass_time(self, seconds: float) -> None:
        """See Stage."""
        await asyncio.sleep(seconds)

    def now(self) -> float:
        """See Stage."""
        return self._loop.now


@dataclass
class ValkeyStage:
    """Counters in Valkey. Timeouts are generous, as others share the processor; tests about outages set their own."""

    url: str
    timing: dict[str, float] = field(default_factory=dict)
    outage: SharedOutage = SharedOutage.REFUSE
    seed: Seed | None = None
    time: float = NOON
    said: list[str] = field(default_factory=list)
    made: list[ValkeyCounters] = field(default_factory=list)

    def run(self, scenario: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """See Stage."""

        async def with_an_end() -> T:
            try:
                return await scenario()
            finally:
                for counters in self.made:
                    counters.close()
                await asyncio.sleep(0)

        return uvloop.run(with_an_end())

    async def counters(self, name: str = "w1", stopped: Callable[[str], None] = print) -> ValkeyCounters:
        """See Stage."""
        return await self.counters_at(name, lambda: self.time, stopped)

    async def counters_at(
        self, name: str, time: Callable[[], float], stopped: Callable[[str], None] = print
    ) -> ValkeyCounters:
        """Counters of a worker with another clock."""
        hooks = Hooks(asyncio.get_running_loop().time, self.now, self.said.append, self.seed, stopped)
        usual = {"timeout_s": 10.0, "patience_s": 20.0, "probe_s": 0.05}
        timing = Timing(**{**usual, **self.timing}, time_ms=lambda: str(int(time() * 1000)))
        counters = await ValkeyCounters.connect(self.url, name, self.outage, hooks, timing)
        self.made.append(counters)
        return counters

    async def pass_time(self, seconds: float) -> None:
        """See Stage."""
        self.time += seconds

    def now(self) -> float:
        """See Stage."""
        return self.time


def claim(subject: str = "key:a", *, amount: int | None = None, tokens: int = 0, hold: int = 0, **limits: Any) -> Claim:
    """A claim; a budget is for the hour of NOON."""
    budget = Budget(amount, Window.HOUR) if amount is not None else None
    return Claim(subject, replace(Limits(wait=0.0), **limits), budget, tokens, hold, HOUR)


def nothing_spent(*claims: Claim) -> Sequence[Spent]:
    """What the ledger says of fresh budgets."""
    return [Spent(purse=one.purse) for one in claims]


def granted(found: Lease | Denial) -> Lease:
    """A lease."""
    assert not isinstance(found, Denial), found
    return found


def denied(found: object) -> Denial:
    """A denial."""
    assert isinstance(found, Denial), found
    return found


async def balance(counters: Counters, one: Claim) -> Balance:
    """How a claim's subject stands."""
    (found,) = await counters.balances([one])
    return found


async def eventually(found: Callable[[], Awaitable[bool]], wait_s: float = 20.0) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(wait_s):
        while not await found():  # noqa: ASYNC110 - what is waited for lies in another process
            await asyncio.sleep(0.005)
