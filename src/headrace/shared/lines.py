"""Who waits for room: a line for each subject, first come, first served.

        ┌── behind another ──┐
claim ──┤                    ├─▶ in line ── first, and room may have come ──▶ asks ──┬──▶ granted, or refused for good
        └── asked, denied ───┘      ▲                                                │
                                    └──────────── denied by the same or another ─────┘

* A waiter stands in the line of what denied it; whoever comes later and wants of the same subject stands behind it.
* Only the first of a line asks again: when a place was given back, when a bucket leaves the minute, or, where others
  can give back unseen, now and then.
* What cannot come in time is not waited for, nor is a budget.
* Whoever leaves a line, on whatever way, lets the next one ask.
"""

import asyncio
import random
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Protocol

from headrace.model.allowance import Claim, Denial, Lease, Limit

POLL_FIRST_S, POLL_LAST_S = 0.01, 0.25
"""How often what others may give back unseen is asked for: often at first, then less."""
_WAITED_FOR = {Limit.REQUESTS, Limit.TOKENS, Limit.CONCURRENT}
_SLACK_S = 0.002
"""Behind a bucket's end, so that it has surely left."""


class Source(Protocol):
    """Where leases come from."""

    async def ask(self, claims: Sequence[Claim]) -> Lease | Denial:
        """All of the claims now, or none."""

    async def peek(self, claims: Sequence[Claim]) -> Denial | None:
        """What stands against them now; nothing is taken."""


class _Waiter:
    """One that waits. `number` is its place in the order of arrival."""

    __slots__ = ("_future", "_woken", "denial", "lines", "number", "polls")

    def __init__(self, number: int) -> None:
        self.number = number
        self.lines: tuple[str, ...] = ()
        """The subjects in whose lines it stands."""
        self.denial = Denial(Limit.CONCURRENT, "")
        """The last that it heard."""
        self.polls = 0
        self._future: asyncio.Future[None] | None = None
        self._woken = False

    def wake(self) -> None:
        """Let it ask soon, also if it is just asking."""
        self._woken = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def sleep(self, seconds: float) -> None:
        """Until it is woken; `seconds` at most."""
        if not self._woken:
            loop = asyncio.get_running_loop()
            self._future = loop.create_future()
            timer = loop.call_later(seconds, self.wake)
            try:
                await self._future
            finally:
                timer.cancel()
                self._future = None
        self._woken = False


class Lines:
    """All lines of a worker. `remote` says that places may come free without `wake` being called."""

    def __init__(self, loop_time: Callable[[], float], *, remote: bool = False) -> None:
        self._loop_time = loop_time
        self._remote = remote
        self._lines: dict[str, list[_Waiter]] = {}
        self._number = 0

    def __len__(self) -> int:
        """How many lines there are: none is the usual case, and then nothing here is to be asked."""
        return len(self._lines)

    def wake(self, claims: Iterable[Claim]) -> None:
        """Something was given back: let the first in line ask."""
        if self._lines:
            for claim in claims:
                if line := self._lines.get(claim.subject):
                    line[0].wake()

    async def claim(self, claims: Sequence[Claim], source: Source, heard: Denial | None = None) -> Lease | Denial:
        """See `Counters.claim`; `heard` is what a newcomer was told that had nobody before it."""
        begun, waiter = self._loop_time(), self._newcomer()
        waits = {claim.subject: claim.limits.wait for claim in claims}
        try:
            while True:
                before = self._line_before(waiter, claims)
                found = heard or await (source.ask(claims) if before is None else source.peek(claims))
                heard = None
                if found is not None and not isinstance(found, Denial):
                    return found
                if found is None and (before := self._line_before(waiter, claims)) is None:
                    continue  # those before have gone meanwhile
                waiter.denial = found or self._lines[before or ""][0].denial
                subject = before or waiter.denial.subject
                left_s = waits[subject] - (self._loop_time() - begun)
                if not _may_come(found, left_s):
                    return waiter.denial
                self._stand(waiter, (subject,))
                await waiter.sleep(self._pause_s(waiter, found, left_s) if before is None else left_s)
        finally:
            self._stand(waiter, ())

    async def claim_one(self, options: Sequence[Claim], wait_s: float, source: Source) -> tuple[int, Lease] | Denial:
        """See `Counters.claim_one`."""
        begun, waiter = self._loop_time(), self._newcomer()
        try:
            while True:
                denials: list[Denial] = []
                behind: list[str] = []
                for place, option in enumerate(options):
                    if self._is_behind(waiter, option.subject):
                        behind.append(option.subject)
                        continue
                    found = await source.ask((option,))
                    if not isinstance(found, Denial):
                        return place, found
                    denials.append(found)
                left_s = wait_s - (self._loop_time() - begun)
                worth = [denial for denial in denials if _may_come(denial, left_s)]
                if denials:
                    waiter.denial = min(worth or denials, key=_soonest)
                if left_s <= 0 or not (worth or behind):
                    return waiter.denial
                self._stand(waiter, (*behind, *(denial.subject for denial in worth)))
                await waiter.sleep(min((self._pause_s(waiter, one, left_s) for one in worth), default=left_s))
        finally:
            self._stand(waiter, ())

    def _newcomer(self) -> _Waiter:
        self._number += 1
        return _Waiter(self._number)

    def _line_before(self, waiter: _Waiter, claims: Sequence[Claim]) -> str | None:
        """The first of the claims' subjects that somebody waits for who came before."""
        return next((claim.subject for claim in claims if self._is_behind(waiter, claim.subject)), None)

    def _is_behind(self, waiter: _Waiter, subject: str) -> bool:
        line = self._lines.get(subject)
        return line is not None and line[0].number < waiter.number

    def _stand(self, waiter: _Waiter, subjects: tuple[str, ...]) -> None:
        """Stand in these lines and in no other. Where the waiter was first, the next one is woken."""
        for subject in waiter.lines:
            if subject not in subjects:
                line = self._lines[subject]
                was_first = line[0] is waiter
                line.remove(waiter)
                if not line:
                    del self._lines[subject]
                elif was_first:
                    line[0].wake()
        for subject in subjects:
            if subject not in waiter.lines:
                insort(self._lines.setdefault(subject, []), waiter, key=attrgetter("number"))
        waiter.lines = subjects

    def _pause_s(self, waiter: _Waiter, denial: Denial | None, left_s: float) -> float:
        """How long a first one sleeps if nothing wakes it."""
        if denial is None or denial.retry_after_s is None:
            if not self._remote:
                return left_s
            waiter.polls += 1
            pause_s = min(POLL_FIRST_S * (1 << min(waiter.polls, 10)), POLL_LAST_S) * random.uniform(0.5, 1.0)
        else:
            pause_s = max(denial.retry_after_s, 0.0) + _SLACK_S
        return min(pause_s, left_s)


def _may_come(denial: Denial | None, left_s: float) -> bool:
    """Whether room can still come; None: it is there, for others who came before."""
    if denial is None:
        return left_s > 0
    return left_s > 0 and denial.limit in _WAITED_FOR and (denial.retry_after_s or 0.0) <= left_s


def _soonest(denial: Denial) -> float:
    return denial.retry_after_s or 0.0
