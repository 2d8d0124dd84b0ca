"""Reports say what the entries say, to the unit, in both databases alike."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import pytest

from headrace.journal.place import Position
from headrace.model.entry import AttemptLine, Entry, Money
from headrace.model.usage import Usage
from headrace.state.amend import rerate
from headrace.state.database import Database
from headrace.state.ledger import Ledger
from headrace.state.lines import EVERY, EntryFilter
from headrace.state.migration import migrate
from headrace.state.rows import MOST_COUNT
from headrace.state.usage import Group, LabelGroup, UsageQuery, UsageRow, usage
from tests.state.journals import batch, entry, incarnation
from tests.state.places import Place

DAY_S = 86_400
ODD = 'o"d.d[0] $'


def made(number: int, chance: random.Random) -> Entry:
    """An entry of any kind, within three days."""
    channel = chance.choice(["a", "b"])
    tokens = [chance.choice([None, 0, 7, 2**40 + number]) for _ in range(5)]
    cost, charge = (chance.choice([None, 0, 3, 2**50 + number]) for _ in range(2))
    return Entry(
        id=f"{number:03d}",
        at=chance.choice([20_000 * DAY_S - 0.001, 20_000.0 * DAY_S, 20_000.5 * DAY_S, 20_001.75 * DAY_S]),
        duration_s=1.0,
        protocol=chance.choice(["chat", "messages"]),
        operation="x",
        key=chance.choice(["dev", "Prod", "über", "a.b"]),
        owner=chance.choice(["", "ann"]),
        model=chance.choice(["gpt", "claude-*"]),
        end=chance.choice(["completed", "failed"]),
        reason="stop",
        usage=Usage(
            input_total=tokens[0],
            cached_input=tokens[1],
            cache_write=tokens[2],
            output_total=tokens[3],
            reasoning=tokens[4],
        ),
        usage_origin=chance.choice(["upstream", "upstream_partial", "estimated", "none"]),
        money=Money(cost=cost, charge=charge, counted=charge or 0),
        labels=chance.choice([(), (("team", "red"),), (("team", "blue"), (ODD, "1"))]),
        attempts=chance.choice(
            [(), (AttemptLine(channel=channel, credential="x", upstream_model="m", started_s=0.0, ended_s=1.0),)]
        ),
    )


ENTRIES = [made(number, random.Random(number)) for number in range(150)]


def value_of(one: Entry, group: Group | LabelGroup) -> str:
    """What the entry stands under."""
    if isinstance(group, LabelGroup):
        return dict(one.labels).get(group.name, "")
    if group is Group.DAY:
        return datetime.fromtimestamp(one.at, UTC).date().isoformat()
    if group is Group.CHANNEL:
        return one.attempts[-1].channel if one.attempts else ""
    value = getattr(one, group.value)
    assert isinstance(value, str)
    return value


def expected(entries: Sequence[Entry], group_by: Sequence[Group | LabelGroup]) -> list[UsageRow]:
    """The report, made one by one."""
    divided: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
    for one in entries:
        divided[tuple(value_of(one, group) for group in group_by)].append(one)
    return [
        UsageRow(
            groups=groups,
            entries=len(found),
            estimated=sum(one.usage_origin in ("upstream_partial", "estimated") for one in found),
            unknown_cost=sum(one.money.cost is None for one in found),
            input=sum(one.usage.input_total or 0 for one in found),
            cached_input=sum(one.usage.cached_input or 0 for one in found),
            cache_write=sum(one.usage.cache_write or 0 for one in found),
            output=sum(one.usage.output_total or 0 for one in found),
            reasoning=sum(one.usage.reasoning or 0 for one in found),
            cost=sum(one.money.cost or 0 for one in found),
            charge=sum(one.money.charge or 0 for one in found),
        )
        for groups, found in sorted(divided.items())
    ]


async def filled(database: Database, entries: Sequence[Entry]) -> None:
    """A ledger with the entries."""
    await migrate(database)
    await Ledger(database).take(incarnation(), Position(), batch(*entries, after=len(entries)))


GROUPINGS: list[tuple[Group | LabelGroup, ...]] = [
    (),
    *((group,) for group in Group),
    (LabelGroup("team"),),
    (LabelGroup(ODD), LabelGroup("nothing")),
    (Group.DAY, Group.KEY, LabelGroup("team")),
    tuple(Group),
]


def test_every_grouping(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            await filled(database, ENTRIES)
            for group_by in GROUPINGS:
                assert list(await usage(database, UsageQuery(group_by))) == expected(ENTRIES, group_by), group_by

    asyncio.run(main())


def test_filters_and_a_limit(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            await filled(database, ENTRIES)
            by = (Group.MODEL, Group.DAY)
            where = EntryFilter(
                since=20_000.0 * DAY_S, until=20_001.0 * DAY_S, key="dev", owner="", labels=(("team", "red"),)
            )
            chosen = [
                one
                for one in ENTRIES
                if 20_000 * DAY_S <= one.at < 20_001 * DAY_S
                and (one.key, one.owner) == ("dev", "")
                and ("team", "red") in one.labels
            ]
            assert chosen
            assert list(await usage(database, UsageQuery(by, where))) == expected(chosen, by)
            assert list(await usage(database, UsageQuery(by, limit=3))) == expected(ENTRIES, by)[:3]
            nothing = EntryFilter(key="nobody")
            assert await usage(database, UsageQuery(by, nothing)) == ()
            assert await usage(database, UsageQuery((), nothing)) == ()

    asyncio.run(main())


def test_amendments_count(place: Place) -> None:
    """Once, twice, and where a cost is known or unknown only by them."""

    def turned(one: Entry) -> Money:
        return Money(cost=None if one.money.cost is not None else 5, charge=11)

    async def main() -> None:
        async with place.open() as database:
            await filled(database, ENTRIES)
            await rerate(database, EntryFilter(key="dev"), turned, "x", now=1.0)
            await rerate(database, EntryFilter(key="dev", owner="ann"), turned, "x", now=2.0)
            amended = [
                msgspec.structs.replace(one, money=turned(msgspec.structs.replace(one, money=turned(one))))
                if (one.key, one.owner) == ("dev", "ann")
                else msgspec.structs.replace(one, money=turned(one))
                if one.key == "dev"
                else one
                for one in ENTRIES
            ]
            for by in ((), (Group.KEY,), (Group.OWNER, Group.DAY)):
                assert list(await usage(database, UsageQuery(by))) == expected(amended, by)
            only = EntryFilter(has_unknown_cost=True)
            unknown = [one for one in amended if one.money.cost is None]
            assert list(await usage(database, UsageQuery((), only))) == expected(unknown, ())

    asyncio.run(main())


def test_sums_past_63_bits(place: Place) -> None:
    """What an upstream claims in a few entries must not stop reports."""
    much = Usage(input_total=MOST_COUNT, output_total=MOST_COUNT - 1)
    entries = [
        msgspec.structs.replace(entry(str(number)), usage=much, money=Money(cost=MOST_COUNT, charge=2**62 + number))
        for number in range(5)
    ]

    async def main() -> None:
        async with place.open() as database:
            await filled(database, entries)
            (row,) = await usage(database, UsageQuery((), EVERY))
            assert [row] == expected(entries, ())
            assert row.cost == 5 * MOST_COUNT

    asyncio.run(main())


@pytest.mark.parametrize("at", [0.0, 86_399.999_999, 86_400.0, 253_402_300_799.0, -1.0, float("inf")])
def test_days_at_their_edges(place: Place, at: float) -> None:
    """A moment that is none stands as the first."""
    shown = datetime.fromtimestamp(at if 0.0 <= at < float("inf") else 0.0, UTC).date().isoformat()

    async def main() -> None:
        async with place.open() as database:
            await filled(database, [entry("a", at=at)])
            (row,) = await usage(database, UsageQuery((Group.DAY,)))
            assert row.groups == (shown,)

    asyncio.run(main())
