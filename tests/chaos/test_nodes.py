"""Two nodes on one Valkey and one database: limits, budgets and keys are one, whichever of the four workers is asked.

HEADRACE_RATE_S=150 asks on at the limit of a minute for so long; the suite asks once, which takes a few seconds.
"""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest

from headrace.model.limits import NANO
from headrace.simulator import SimulatorThread
from tests.chaos.load import Asked, End, Load
from tests.chaos.nodes import HOLD, SCENARIOS, Nodes, most_at_once, secret_of, word_in
from tests.stand.postgres import Postgres
from tests.stand.stand import until
from tests.stand.valkey import Valkey

RATE_S = float(os.environ.get("HEADRACE_RATE_S", "0"))
PLACES, RATE, CALLS = 10, 600, 50
LOAD_S = 3.0
FREED_WITHIN_S = 30.0
"""So soon a dead node's places and holds are given back: docs/explanation/limits.md."""
SLACK_S = 2.0
"""For seconds that a minute cuts, and for the time from where a request counts until the upstream hears of it."""
RECOVERY_S = 10.0
"""Far more than it takes to count in Valkey again: workers try twice a second."""


def _paid(calls: int) -> str:
    """A budget for so many calls."""
    return f"budget: {{amount: '{Decimal(calls * HOLD) / NANO}', window: total}}"


KEYS = {
    "busy": f"limits: {{concurrent: {PLACES}, requests_per_minute: {RATE}, wait: 20s}}",
    "minute": f"limits: {{requests_per_minute: {RATE}, wait: 0s}}",
    "held": f"limits: {{concurrent: {PLACES}, wait: 0s}}, {_paid(1000)}",
    "away": "limits: {requests_per_minute: 20, wait: 0s}",
    "back": "limits: {requests_per_minute: 20, wait: 0s}",
    "free": "multiplier: 1",
    "places-killed": f"limits: {{concurrent: {PLACES}, wait: 0s}}",
    "places-emptied": f"limits: {{concurrent: {PLACES}, wait: 0s}}",
    "money-killed": _paid(20),
    "money-emptied": _paid(20),
    "fifty-0": _paid(CALLS),
    "fifty-16": _paid(16 + CALLS),
    "tenths": _paid(10),
}
WORDS = {
    "chat": "insufficient_quota",
    "responses": "insufficient_quota",
    "messages": "billing_error",
    "gemini": "RESOURCE_EXHAUSTED",
}
"""What each dialect calls a budget that is spent."""

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180 + 2 * RATE_S)]


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, postgres_process: Postgres, valkey_process: Valkey
) -> Iterator[Nodes]:
    postgres_process.ensure()
    valkey_process.ensure()
    with (
        SimulatorThread({"record": 1_000_000, "scenarios": SCENARIOS}) as upstream,
        Nodes(tmp_path_factory.mktemp("nodes"), upstream, postgres_process, valkey_process, KEYS) as nodes,
    ):
        yield nodes


@pytest.fixture
def nodes(pair: Nodes) -> Iterator[Nodes]:
    """Both run, whatever an earlier test did to them. Each test has keys of its own."""
    pair.set_policy(0, "refuse")
    yield pair
    pair.leave()


@pytest.fixture
def allowing(pair: Nodes) -> Iterator[Nodes]:
    """The first of them goes on by itself where Valkey is away."""
    pair.set_policy(0, "allow")
    yield pair
    pair.leave()


# ---- places and minutes


def test_ten_at_once_under_load(nodes: Nodes) -> None:
    """Never more, and that many; by the upstream's records, and by what the key is told all the while."""
    loads = [
        Load(fleet.port, 20, seed, scenarios=("short", "cut", "failed"), weights=(8, 1, 1), leaving=0.0,
             prefix=f"busy-{seed}", secrets=(secret_of("busy"),))
        for seed, fleet in enumerate(nodes.fleets)
    ]  # fmt: skip
    running = nodes.start(_run(loads, LOAD_S))
    told = []
    while not running.done():
        told += [nodes.standing(node, "busy")["concurrent"]["used"] for node in (0, 1)]
    running.result()
    asked = [one for load in loads for one in load.asked]
    calls = [call for load in loads for call in nodes.calls(load.asked)]
    most = most_at_once(calls)
    print(f"places: {len(asked)} requests by {len(_workers(asked))} workers, {most} at once, told {max(told)} at most")
    assert most == PLACES
    assert max(told) == PLACES
    assert {one.end for one in asked} <= {End.WHOLE, End.BROKEN}
    assert not [one for one in asked if one.status not in (200, 400, 503)], "all found a place; 503: Valkey was late"
    assert len(_workers(asked)) == 4
    assert {nodes.standing(node, "busy")["concurrent"]["used"] for node in (0, 1)} == {0}


def test_six_hundred_a_minute(nodes: Nodes) -> None:
    """Of more at once exactly so many pass, and the upstream hears of no other. With HEADRACE_RATE_S: nor do more pass
    in any minute of a long time, in which the limit is always asked for and always used."""
    began = time.monotonic()
    asked = nodes.requests("minute", "short", RATE + 200, stream=False)
    for at in range(0, len(asked), 100):
        some = asked[at : at + 100]
        nodes.ask_until_told(some)
        asked[at : at + 100] = some
    took_s = time.monotonic() - began
    assert took_s < 60 - SLACK_S, "the machine is too slow for this test"
    passed, refused = _passed(asked), [one for one in asked if one.status == 429]
    print(f"a minute: {len(passed)} of {len(asked)} passed in {took_s:.1f} s, by {len(_workers(asked))} workers")
    assert (len(passed), len(refused), len(nodes.calls(asked))) == (RATE, 200, RATE)
    assert all(1 <= int(one.retry_after) <= 60 for one in refused)
    assert {word_in(one) for one in refused if one.protocol == "chat"} == {"rate_limit_exceeded"}
    assert len(_workers(asked)) == 4
    while time.monotonic() < began + RATE_S:
        more = nodes.requests("minute", "short", 8, stream=False)
        asked += more
        nodes.ask(more)
    times = sorted(call.started_at for call in nodes.calls(asked))
    most = max(_within(times, at, 60 - SLACK_S) for at in times)
    assert most <= RATE
    if RATE_S > 120 + SLACK_S:
        least = min(_within(times, at, 60 + SLACK_S) for at in times if at < times[-1] - 60 - SLACK_S)
        print(f"  {len(times)} passed in {RATE_S:g} s; {most} at most in a minute, {least} at least")
        assert least >= RATE


# ---- budgets


@pytest.mark.parametrize("before", [0, 16], ids=["nobody", "each worker"])
def test_a_budget_for_fifty_calls(nodes: Nodes, before: int) -> None:
    """Case B121, over two nodes of two workers: of 200 at once, in equal parts of the four protocols, exactly 50 pass,
    the others are told in their dialects, and the upstream hears of none of those. Whoever knows the budget before."""
    key = f"fifty-{before}"
    earlier, asked = nodes.requests(key, "call", before), nodes.requests(key, "call", 200)
    nodes.ask_until_told(earlier)
    nodes.ask_until_told(asked)
    passed, refused = _passed(asked), [one for one in asked if one.status == 402]
    print(
        f"fifty: {len(passed)} passed in {len(_workers(passed))} workers, {len(refused)} were refused in"
        f" {len(_workers(refused))}: {dict(Counter(one.protocol for one in refused))}"
    )
    assert (len(passed), len(refused), len(nodes.calls(asked))) == (CALLS, 150, CALLS)
    assert {(one.protocol, word_in(one)) for one in refused} == set(WORDS.items())
    assert len(_workers(asked)) == 4
    spent = (before + CALLS) * HOLD
    until(lambda: all(_money(nodes, node, key) == (spent, 0) for node in (0, 1)), "the sum")
    assert {nodes.standing(node, key)["budget"]["remaining"] for node in (0, 1)} == {"0"}
    until(lambda: len(nodes.entries(asked)) == 200, "the entries")
    assert sum(entry.money.counted for entry in nodes.entries(asked)) == CALLS * HOLD


def test_calls_that_cost_less_than_their_holds(nodes: Nodes) -> None:
    """Case B121 with calls of a tenth of what they hold, asked for until all is spent: at most one hold more is."""
    amount = 10 * HOLD
    rounds: list[list[Asked]] = []
    while _money(nodes, 0, "tenths")[0] < amount:
        assert len(rounds) < 100, "it is never spent"
        rounds.append(nodes.requests("tenths", "tenth", 40))
        nodes.ask_until_told(rounds[-1])
        until(lambda: _money(nodes, 0, "tenths")[1] == 0, "the end of what is held")
    asked = [one for some in rounds for one in some]
    spent, held = _money(nodes, 1, "tenths")
    passed = len(_passed(asked))
    print(f"tenths: {passed} of {len(asked)} passed in {len(rounds)} rounds, {len(_passed(rounds[0]))} in the first;"
          f" {spent} of {amount} nano-units spent")  # fmt: skip
    assert Counter(one.status for one in asked) == {200: passed, 402: len(asked) - passed}
    assert len(_passed(rounds[0])) >= 10, "so many holds fill it, and some may have ended meanwhile"
    assert (spent, held) == (passed * HOLD // 10, 0)
    assert amount <= spent <= amount + HOLD
    assert len(nodes.calls(asked)) == passed


# ---- keys


def test_keys_by_command(nodes: Nodes) -> None:
    """Made and revoked on one node's machine, while both run: each worker of both has it soon."""
    secret = json.loads(nodes.run("keys", "create", "made", "--json"))["secret"]
    told = time.monotonic()
    workers = {pid for fleet in nodes.fleets for pid in fleet.workers()}
    usable_s = _wait_for_status(nodes, secret, 200, workers) - told
    streams = nodes.requests("made", "endless", 64)
    for one in streams:
        one.secret = secret
    nodes.open(streams)
    assert {one.status for one in streams} == {200}
    assert len(_workers(streams)) == 4
    nodes.run("keys", "revoke", "made", "--now")
    told = time.monotonic()
    refused_s = _wait_for_status(nodes, secret, 403, workers) - told
    until(lambda: all(one.end is not End.OPEN for one in streams), "the end of its streams", RECOVERY_S)
    ended_s = max(one.ended for one in streams) - nodes.changed_at("made")
    print(
        f"a key by command: used by four workers {usable_s:.2f} s after it was shown, refused {refused_s:.2f} s"
        f" after it was revoked; {len(streams)} streams ended {ended_s:.2f} s after that stood in the database"
    )
    assert {(one.end, one.error) for one in streams} == {(End.WHOLE, True)}
    until(lambda: len(nodes.entries(streams)) == len(streams), "the entries")
    assert {(entry.end, entry.reason, entry.key) for entry in nodes.entries(streams)} == {
        ("stopped", "revoked", "made")
    }


def _wait_for_status(nodes: Nodes, secret: str, status: int, workers: set[int]) -> float:
    """Ask until each worker has answered so; when (monotonic seconds) the last one first did."""
    left, last = set(workers), 0.0

    def all_did() -> bool:
        nonlocal last
        for node in (0, 1):
            found, pid = nodes.status_by(node, secret)
            if found == status and pid in left:
                left.discard(pid)
                last = time.monotonic()
        return not left

    until(all_did, f"{status} from all workers", RECOVERY_S)
    return last


# ---- a node that dies: the first, which is started with another policy for the next test


def test_a_killed_node_gives_back_its_places_and_holds(nodes: Nodes) -> None:
    streams = nodes.requests("held", "endless", PLACES)
    survivors, dying = streams[: PLACES // 2], streams[PLACES // 2 :]
    nodes.open(survivors, 1)
    nodes.open(dying, 0)
    more = nodes.requests("held", "endless", 20)
    nodes.ask_until_told(more)
    assert {one.status for one in streams} == {200}
    assert {one.status for one in more} == {429}
    assert all(int(one.retry_after) >= 1 for one in more)
    assert {word_in(one) for one in more if one.protocol == "chat"} == {"concurrency_limit_exceeded"}
    assert not nodes.calls(more)
    assert _standing(nodes, 1, "held") == (PLACES, PLACES * HOLD)
    nodes.fleets[0].kill()
    killed = time.monotonic()
    until(lambda: all(one.end is End.BROKEN for one in dying), "the end of its streams")
    left = len(survivors)
    until(lambda: _standing(nodes, 1, "held") == (left, left * HOLD), "what the dead held", FREED_WITHIN_S)
    print(f"a node's {len(dying)} places and holds were free {time.monotonic() - killed:.1f} s after its death")
    again = nodes.requests("held", "endless", 20)
    nodes.open(again, 1)
    assert Counter(one.status for one in again) == {200: PLACES - left, 429: 20 - (PLACES - left)}


# ---- Valkey away, and empty


def test_valkey_away(allowing: Nodes) -> None:
    """Case B117. `allow` goes on with each worker's own counts, `refuse` says that it cannot tell: it takes no key for
    unknown, and no limit for reached."""
    nodes = allowing
    nodes.ask(nodes.requests("away", "short", 8))
    before = _said_back(nodes)
    nodes.valkey.kill()
    try:
        at_first, at_second = nodes.requests("away", "short", 100), nodes.requests("away", "short", 20)
        nodes.ask(at_first, 0)
        nodes.ask(at_second, 1)
        unlimited = nodes.requests("free", "short", 16)
        nodes.ask(unlimited)
    finally:
        nodes.valkey.start()
    back = time.monotonic()
    passed = Counter(one.incarnation for one in _passed(at_first))
    print(f"Valkey away: {len(_passed(at_first))} of {len(at_first)} passed, {sorted(passed.values())} by worker")
    assert Counter(one.status for one in at_first).keys() == {200, 429}
    assert len(passed) == 2
    assert max(passed.values()) <= 20
    assert len(_passed(at_first)) >= 2 * 20 - 8, "only what the worker itself had counted before"
    assert Counter(one.status for one in at_second) == {503: 20}
    assert {word_in(one) for one in at_second if one.protocol == "chat"} == {"overloaded"}
    assert all(int(one.retry_after) >= 1 for one in at_second)
    assert {one.status for one in unlimited} == {200}
    assert not nodes.calls(at_second)
    until(lambda: _said_back(nodes) == before + 4, "the return of each worker", RECOVERY_S)
    print(f"all four workers count in Valkey again {time.monotonic() - back:.1f} s after its start")
    asked = nodes.requests("back", "short", 100)
    nodes.ask(asked)
    assert Counter(one.status for one in asked) == {200: 20, 429: 80}


@pytest.mark.parametrize("how", ["killed", "emptied"])
def test_what_valkey_lost_is_right_again(allowing: Nodes, how: str) -> None:
    """Places that are taken, also those that were given while it was away; money that is held and that is spent, before
    and meanwhile. Then exactly what is left of either is given."""
    nodes = allowing
    places, money = f"places-{how}", f"money-{how}"
    streams = nodes.requests(places, "endless", 6)
    nodes.open(streams[:3], 0)
    nodes.open(streams[3:], 1)
    calls = nodes.requests(money, "call", 8)
    nodes.ask(calls)
    payers = nodes.requests(money, "endless", 4)
    nodes.open(payers[:2], 0)
    nodes.open(payers[2:], 1)
    before = _said_back(nodes)
    if how == "emptied":
        nodes.valkey.execute("FLUSHALL")
    else:
        nodes.valkey.kill()
        meanwhile, spent = nodes.requests(places, "endless", 2), nodes.requests(money, "call", 2)
        nodes.open(meanwhile, 0)
        nodes.ask(spent, 0)
        nodes.valkey.start()
        streams, calls = streams + meanwhile, calls + spent
    lost = time.monotonic()
    assert {one.status for one in streams + calls + payers} == {200}
    taken, paid = len(streams), (len(calls) * HOLD, len(payers) * HOLD)
    until(lambda: _said_back(nodes) == before + 4, "the return of each worker", RECOVERY_S)
    for node in (0, 1):
        until(lambda node=node: _standing(nodes, node, places)[0] == taken, "the places", RECOVERY_S)  # type: ignore[misc]
        until(lambda node=node: _money(nodes, node, money) == paid, "the money", RECOVERY_S)  # type: ignore[misc]
    print(f"what Valkey lost ({how}) stands there again after {time.monotonic() - lost:.1f} s")
    more = nodes.requests(places, "endless", 24)
    nodes.open(more)
    assert Counter(one.status for one in more) == {200: PLACES - taken, 429: 24 - (PLACES - taken)}
    buyers = nodes.requests(money, "call", 40)
    nodes.ask(buyers)
    affordable = 20 - len(calls) - len(payers)
    assert Counter(one.status for one in buyers) == {200: affordable, 402: 40 - affordable}


# ---- parts


async def _run(loads: Sequence[Load], length_s: float) -> None:
    for load in loads:
        load.start()
    await asyncio.sleep(length_s)
    await asyncio.gather(*(load.stop() for load in loads))


def _passed(asked: Sequence[Asked]) -> list[Asked]:
    return [one for one in asked if one.status == 200]


def _workers(asked: Sequence[Asked]) -> set[int]:
    """The incarnations of those who answered."""
    return {one.incarnation for one in asked if one.id}


def _within(times: Sequence[float], begin: float, length_s: float) -> int:
    return sum(begin <= at < begin + length_s for at in times)


def _standing(nodes: Nodes, node: int, key: str) -> tuple[int, int]:
    """Places that are taken, and nano-units that are held."""
    page = nodes.standing(node, key)
    return page["concurrent"]["used"], _nano(page["budget"]["held"]) if page["budget"] else 0


def _money(nodes: Nodes, node: int, key: str) -> tuple[int, int]:
    """Nano-units: spent, and held."""
    budget = nodes.standing(node, key)["budget"]
    return _nano(budget["spent"]), _nano(budget["held"])


def _nano(amount: Any) -> int:
    """Nano-units; -1 where it is not known."""
    return int(Decimal(amount) * NANO) if amount is not None else -1


def _said_back(nodes: Nodes) -> int:
    """How many workers have said that they count in Valkey again."""
    return sum("is back: limits are counted" in line for fleet in nodes.fleets for line in fleet.words())
