"""A worker in a process of its own: `python -m tests.shared.hammer URL NAME hammer NUMBER`, or `… hold`.

`hammer` waits until NUMBER of them are there, claims one key until its minute is used up, and prints what it was given
and how many places were taken at most. `hold` takes all places, says so and stays.
"""

import asyncio
import json
import sys

from headrace.model.allowance import Denial, Limit
from headrace.shared.address import address_from_url
from headrace.shared.pipeline import Pipeline, connect, number_from_reply
from tests.shared.stage import ValkeyStage, claim, granted

PLACES, A_MINUTE, TASKS = 10, 600, 16


class Deaf:
    """One who does not care for its connection."""

    def lost(self, reason: str) -> None:
        """See Watcher."""

    def slow(self) -> None:
        """See Watcher."""

    def caught_up(self) -> None:
        """See Watcher."""


async def hammer(stage: ValkeyStage, name: str, number: int) -> None:
    """Claim until the minute, which does not pass, is used up."""
    counters = await stage.counters(name)
    watch = await connect(address_from_url(stage.url), 60.0, Deaf())
    asked = [claim(concurrent=PLACES, requests_per_minute=A_MINUTE, wait=30.0)]
    given, most = 0, 0

    async def work() -> None:
        nonlocal given, most
        while not isinstance(found := await counters.claim(asked), Denial):
            given += 1
            most = max(most, await counted(watch, "within", 1))
            await counted(watch, "within", -1)
            found.settle(0, 0)
        assert found.limit is Limit.REQUESTS, found

    here = await counted(watch, "there", 1)
    while here < number:
        here = await counted(watch, "there", 0)
    await asyncio.gather(*(work() for _ in range(TASKS)))
    watch.close()
    sys.stdout.write(json.dumps({"granted": given, "most": most}))


async def counted(watch: Pipeline, what: str, more: int) -> int:
    """A count beside the limits, after more of it."""
    return number_from_reply(await watch.ask("INCRBY", what, more))


async def hold(stage: ValkeyStage, name: str) -> None:
    """Take all places and stay."""
    counters = await stage.counters(name)
    leases = [granted(await counters.claim([claim(concurrent=PLACES)])) for _ in range(PLACES)]
    sys.stdout.write("held\n")
    sys.stdout.flush()
    await asyncio.sleep(3600)
    assert leases


if __name__ == "__main__":
    _, url, worker, what, *rest = sys.argv
    here = ValkeyStage(url)
    here.run(lambda: hammer(here, worker, int(rest[0])) if what == "hammer" else hold(here, worker))
