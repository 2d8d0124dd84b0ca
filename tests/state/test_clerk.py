"""Orders at a database, in each kind of database."""

import asyncio
from pathlib import Path

import pytest

from headrace.journal.place import Position
from headrace.model.catalogue import ObjectKind, StoredObject
from headrace.model.channel import Model, Route
from headrace.model.price import Price, Rates
from headrace.state.clerk import Clerk, RefusedError
from headrace.state.database import FILE
from headrace.state.errands import (
    GROUPS,
    Amounts,
    Answer,
    AskUsage,
    CreateObject,
    ListObjects,
    Migrate,
    OneObject,
    Opening,
    Order,
    RateAgain,
    RatedAgain,
    RemoveObject,
    ReplaceObject,
    UsageLine,
    Words,
)
from headrace.state.errors import OtherVersionError, StateError
from headrace.state.ledger import Ledger
from headrace.state.usage import Group
from tests.state.journals import batch, entry, incarnation
from tests.state.places import Place

SECRET = bytes(range(32))
ONE = StoredObject(ObjectKind.KEY, "k", '{"digest":"x"}')
OTHER = StoredObject(ObjectKind.KEY, "k", '{"digest":"y"}')
CHANNEL = StoredObject(ObjectKind.CHANNEL, "c", '{"credentials":[{"name":"m","secret":"sk-up"}]}')
MODELS = (Model("*", (Route("c"),), prices=(Price(Rates(input=10**12, cached_input=0, output=2 * 10**12)),)),)


def told(place: Place, *orders: Order, secret: bytes = SECRET) -> list[Answer]:
    """All answers of one clerk."""

    async def main() -> list[Answer]:
        clerk = Clerk(Opening(database=place.url, directory=str(place.directory), secret=secret))
        try:
            return [answer for order in orders for answer in [one async for one in clerk.answers(order)]]
        finally:
            await clerk.close()

    return asyncio.run(main())


def fill(place: Place, *tokens: int) -> None:
    entries = [entry(str(number), at=float(number), tokens=count) for number, count in enumerate(tokens)]

    async def work(ledger: Ledger) -> None:
        await ledger.take(incarnation(), Position(), batch(*entries, after=1))

    place.run(work)


def test_objects_come_and_go(place: Place) -> None:
    answers = told(
        place,
        Migrate(),
        CreateObject(object=ONE),
        CreateObject(object=CHANNEL),
        ReplaceObject(object=OTHER, before=ONE),
        ListObjects(),
        RemoveObject(kind=ObjectKind.KEY, name="k"),
        ListObjects(),
    )
    assert answers[1:] == [OneObject(CHANNEL), OneObject(OTHER), OneObject(CHANNEL)]


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (CreateObject(object=OTHER), "the database has a key k already"),
        (ReplaceObject(object=ONE, before=OTHER), "someone else has changed key k"),
        (RemoveObject(kind=ObjectKind.OWNER, name="k"), "the database has no owner k"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(place: Place, order: Order, words: str) -> None:
    told(place, Migrate(), CreateObject(object=ONE))
    with pytest.raises(RefusedError, match=words):
        told(place, order)
    assert told(place, ListObjects()) == [OneObject(ONE)]


def test_an_object_of_another_secret_is_said(place: Place) -> None:
    told(place, Migrate(), CreateObject(object=ONE), CreateObject(object=CHANNEL))
    words, one = told(place, ListObjects(), secret=bytes(32))
    assert isinstance(words, Words) and words.text.startswith("channel c in the database cannot be read")
    assert one == OneObject(ONE)


def test_sqlite_is_made_by_what_is_put_alone(tmp_path: Path) -> None:
    place = Place("", tmp_path)
    asking: list[Order] = [ListObjects(), AskUsage(by=("key",)), RateAgain(models=(), reason="")]
    assert told(place, *asking) == []
    assert list(tmp_path.iterdir()) == []
    assert told(place, CreateObject(object=ONE), ListObjects()) == [OneObject(ONE)]


def test_postgresql_is_not(place: Place) -> None:
    if not place.url:
        (place.directory / FILE).touch(0o600)
    for order in (CreateObject(object=ONE), ListObjects(), AskUsage(by=("key",)), RateAgain(models=(), reason="")):
        with pytest.raises(OtherVersionError, match="run `headrace migrate`"):
            told(place, order)


def test_a_database_that_is_away(tmp_path: Path) -> None:
    place = Place(f"postgresql://me:pass-word@/x?host={tmp_path}", tmp_path)
    for order in (Migrate(), ListObjects(), CreateObject(object=ONE)):
        with pytest.raises(StateError, match=r"^cannot reach the database \(PostgreSQL\): ") as caught:
            told(place, order)
        assert "pass-word" not in str(caught.value)


def test_usage_is_exact_beyond_what_a_message_can_count(place: Place) -> None:
    fill(place, 2**55, 2**55, 2**55)
    (line,) = told(place, AskUsage(by=("key", "label:none")))
    assert isinstance(line, UsageLine)
    assert (line.groups, line.entries, line.output) == (("dev", ""), 3, str(3 * 2**55))
    assert int(line.charge) == 600 * 2**55 > 2**64


def test_usage_of_some(place: Place) -> None:
    fill(place, 1, 10, 100, 1000)
    answers = told(place, AskUsage(by=("day",), since=1.0, until=3.0), AskUsage(by=("day",), key="none"))
    assert [(one.groups, one.output) for one in answers if isinstance(one, UsageLine)] == [(("1970-01-01",), "110")]


def test_the_words_of_groups_are_those_of_the_database() -> None:
    assert set(GROUPS) == {group.value for group in Group}


def test_rating_again(place: Place) -> None:
    fill(place, 1, 10)
    order = RateAgain(models=MODELS, reason="because", dry_run=True, since=1.0)
    first, second, third, line = told(
        place, order, RateAgain(models=MODELS, reason="because", since=1.0), order, AskUsage(by=("key",), since=1.0)
    )
    assert isinstance(first, RatedAgain) and isinstance(third, RatedAgain) and isinstance(line, UsageLine)
    assert (first.entries, first.amended, second) == (1, 1, first)
    assert (third.entries, third.amended) == (1, 0)
    assert third.before == third.after == first.after == Amounts(cost=line.cost, charge=line.charge, unknown_cost=0)
