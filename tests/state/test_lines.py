"""Which entries a filter means, and what money they come with."""

import asyncio

import msgspec
import pytest

from headrace.journal.place import Position
from headrace.model.entry import AttemptLine, Entry, Money
from headrace.state.amend import rerate
from headrace.state.ledger import Ledger
from headrace.state.lines import EntryFilter, LedgerLine, lines
from headrace.state.migration import migrate
from tests.state.journals import batch, entry, incarnation
from tests.state.places import Place

ODD = 'o"d.d[0] $'


def made(id: str, **changed: object) -> Entry:
    return msgspec.structs.replace(entry(id, at=float(id)), **changed)


ATTEMPT = AttemptLine(channel="c", credential="x", upstream_model="m", started_s=0.0, ended_s=0.1)
ENTRIES = [
    made("1", key="a", owner="", model="gpt", protocol="chat"),
    made("2", key="a", owner="ann", model="gpt", protocol="messages", end="failed"),
    made("3", key="b", owner="ann", model="claude", protocol="messages", money=Money()),
    made("4", key="b", owner="bob", model="claude", protocol="messages", attempts=(ATTEMPT,)),
    made("5", labels=(("team", "red"), (ODD, "yes"))),
    made("6", labels=(("team", "blue"), (ODD, "yes"))),
    made("7", labels=()),
]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (EntryFilter(), "1234567"),
        (EntryFilter(since=2.0, until=4.0), "23"),
        (EntryFilter(id="4"), "4"),
        (EntryFilter(id="8"), ""),
        (EntryFilter(key="a"), "12"),
        (EntryFilter(owner="ann", since=0.0, until=5.0), "23"),
        (EntryFilter(owner="", until=7.0), "1"),
        (EntryFilter(model="claude"), "34"),
        (EntryFilter(channel="c"), "4"),
        (EntryFilter(protocol="messages", end="completed"), "34"),
        (EntryFilter(end="failed"), "2"),
        (EntryFilter(labels=(("team", "red"),)), "12345"),
        (EntryFilter(labels=((ODD, "yes"),)), "56"),
        (EntryFilter(labels=((ODD, "yes"), ("team", "blue"))), "6"),
        (EntryFilter(labels=(("team", ""),)), ""),
        (EntryFilter(has_unknown_cost=True), "3"),
    ],
    ids=str,
)
def test_a_filter(place: Place, where: EntryFilter, ids: str) -> None:
    async def main() -> str:
        async with place.open() as database:
            await migrate(database)
            await Ledger(database).take(incarnation(), Position(), batch(*ENTRIES, after=7))
            return "".join([line.entry.id async for line in lines(database, where)])

    assert asyncio.run(main()) == ids


def test_an_entry_as_it_counts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rated again twice: the newest counts, wherever an entry is read; pages do not show."""
    monkeypatch.setattr("headrace.state.lines.PAGE", 2)
    first, second = Money(cost=1, counted=1, price="v2"), Money(cost=None, price="v3", unpriced=("input",))

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            ledger = Ledger(database)
            await ledger.take(incarnation(), Position(), batch(*ENTRIES, after=7))
            await rerate(database, EntryFilter(until=5.0), lambda _: first, "too dear", now=100.0)
            await rerate(database, EntryFilter(id="2"), lambda _: second, "no price", now=200.0)
            assert await ledger.line("2") == LedgerLine(
                msgspec.structs.replace(ENTRIES[1], money=second), ENTRIES[1].money, 2, 200.0, "no price"
            )
            assert await ledger.line("6") == LedgerLine(ENTRIES[5], ENTRIES[5].money)
            assert await ledger.line("8") is None
            found = [line async for line in lines(database, EntryFilter())]
            assert [line.revision for line in found] == [1, 2, 1, 1, 0, 0, 0]
            assert [line.original for line in found] == [one.money for one in ENTRIES]
            assert [one async for one in ledger.entries()] == [line.entry for line in found]
            assert await ledger.entry("1") == found[0].entry and found[0].entry.money == first
            unknown = [line.entry.id async for line in lines(database, EntryFilter(has_unknown_cost=True))]
            assert unknown == ["2"], "that of 3 is known now"

    asyncio.run(main())
