"""Declared objects: kept in the file's shape, their secrets sealed and bound to them."""

import asyncio
from functools import partial

import msgspec
import pytest

from headrace.model.catalogue import ObjectKind, StoredObject
from headrace.sealing import seal, unseal
from headrace.state.database import Database
from headrace.state.migration import migrate
from headrace.state.objects import Found, Objects
from tests.state.places import Place, rows

SECRET, OTHER = b"s" * 32, b"t" * 32
CHANNEL = StoredObject(
    ObjectKind.CHANNEL,
    "openai-a",
    msgspec.json.encode(
        {
            "base_url": "https://api.example.com/v1",
            "proxy": "http://me:pass-word-1@proxy:3128",
            "headers": {"x-team": "pass-word-2"},
            "query": {"key": "pass-word-3"},
            "credentials": [{"name": "main", "secret": "pass-word-4"}, {"name": "spare", "secret": None}],
            "priority": 3,
        }
    ).decode(),
)
KEY = StoredObject(ObjectKind.KEY, "dev", '{"secret":"pass-word-5","models":["gpt-*"]}')
MODEL = StoredObject(ObjectKind.MODEL, "gpt-*", '{"routes":[{"channel":"openai-a"}]}')


def objects_of(database: Database, secret: bytes = SECRET) -> Objects:
    return Objects(database, partial(seal, secret), partial(unseal, secret))


def same(one: StoredObject, other: StoredObject) -> bool:
    """Equal but for the spaces in the document."""
    return (one.kind, one.name) == (other.kind, other.name) and msgspec.json.decode(
        one.document
    ) == msgspec.json.decode(other.document)


def test_put_all_replace_remove(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            objects = objects_of(database)
            assert await objects.all() == Found(()) and await objects.stamp() == 0
            for one in (MODEL, KEY, CHANNEL):
                await objects.put(one, now=1.0)
            found = await objects.all()
            assert found.faults == ()
            assert all(same(*pair) for pair in zip(found.objects, (CHANNEL, KEY, MODEL), strict=True))
            newer = StoredObject(ObjectKind.MODEL, "gpt-*", '{"routes":[]}')
            await objects.put(newer, now=2.0)
            assert (await objects.all()).objects[2] == newer
            assert await rows(database, "SELECT name, updated_at FROM object ORDER BY updated_at DESC LIMIT 1") == [
                ("gpt-*", 2.0)
            ]
            assert await objects.stamp() == 4
            assert await objects.remove(ObjectKind.KEY, "dev") is True
            assert await objects.stamp() == 5
            assert await objects.remove(ObjectKind.KEY, "dev") is False
            assert [one.name for one in (await objects.all()).objects] == ["openai-a", "gpt-*"]

    asyncio.run(main())


def test_no_secret_stands_open(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            for one in (CHANNEL, KEY):
                await objects_of(database).put(one, now=1.0)
            stored = await rows(database, "SELECT document FROM object")
            assert len(stored) == 2 and "pass-word" not in str(stored)
            assert "https://api.example.com/v1" in str(stored) and "gpt-*" in str(stored)

    asyncio.run(main())


def test_one_that_does_not_open_takes_no_other_with_it(place: Place) -> None:
    """Another secret, a sealed value from another row, an open one, a broken document, a kind of another version."""

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            await objects_of(database).put(MODEL, now=1.0)
            await objects_of(database, OTHER).put(KEY, now=1.0)
            await objects_of(database).put(StoredObject(ObjectKind.OWNER, "a", '{"secret":"pass-word"}'), now=1.0)
            async with database.writing() as connection:
                for statement in (
                    "INSERT INTO object SELECT kind, 'b', document, updated_at FROM object WHERE name = 'a'",
                    "INSERT INTO object VALUES ('key', 'open', '{\"secret\": \"pass-word\"}', 1.0)",
                    "INSERT INTO object VALUES ('key', 'broken', '[', 1.0)",
                    "INSERT INTO object VALUES ('planet', 'x', '{}', 1.0)",
                ):
                    await connection.exec_driver_sql(statement)
            found = await objects_of(database).all()
            assert [one.name for one in found.objects] == ["gpt-*", "a"]
            assert [fault.partition(" in the database")[0] for fault in found.faults] == [
                "key broken",
                "key dev",
                "key open",
                "owner b",
                "planet x",
            ]
            assert "sealed under another secret" in found.faults[1] and "pass-word" not in str(found.faults)

    asyncio.run(main())


@pytest.mark.parametrize("document", ["", "[]", "null", '"x"', "{"])
def test_a_document_is_an_object(place: Place, document: str) -> None:
    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            with pytest.raises(ValueError, match="no JSON object"):
                await objects_of(database).put(StoredObject(ObjectKind.KEY, "dev", document), now=1.0)
            assert await objects_of(database).all() == Found(())

    asyncio.run(main())


def test_create_and_replace_say_whether_they_did(place: Place) -> None:
    """Neither does the other's work, and an object that somebody has changed meanwhile is not overwritten."""
    red, blue = (StoredObject(ObjectKind.KEY, "dev", f'{{"secret":"{word}"}}') for word in ("red", "blue"))

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            objects = objects_of(database)
            assert await objects.replace(red, now=1.0) is False and await objects.all() == Found(())
            assert await objects.create(red, now=1.0) is True
            assert await objects.create(blue, now=2.0) is False
            assert await objects.one(ObjectKind.KEY, "dev") == red
            assert await objects.replace(blue, now=3.0, before=red) is True
            assert await objects.replace(red, now=4.0, before=red) is False
            assert await objects.one(ObjectKind.KEY, "dev") == blue
            assert await objects.replace(red, now=5.0) is True
            assert await objects.remove(ObjectKind.KEY, "dev") is True
            assert await objects.replace(red, now=6.0, before=red) is False
            assert await objects.one(ObjectKind.KEY, "dev") is None

    asyncio.run(main())


def test_one_and_names(place: Place) -> None:
    """By kind; a name is told even where its secrets cannot be opened, and asking for that one says why."""

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            objects = objects_of(database)
            for name in ("b", "a.b", "B"):
                await objects.put(StoredObject(ObjectKind.KEY, name, "{}"), now=1.0)
            await objects.put(StoredObject(ObjectKind.OWNER, "a", "{}"), now=1.0)
            await objects_of(database, OTHER).put(KEY, now=1.0)
            assert await objects.names(ObjectKind.KEY) == ("B", "a.b", "b", "dev")
            assert await objects.names(ObjectKind.CHANNEL) == ()
            assert await objects.one(ObjectKind.OWNER, "b") is None
            with pytest.raises(ValueError, match="sealed under another secret"):
                await objects.one(ObjectKind.KEY, "dev")

    asyncio.run(main())


def test_two_that_create_at_once(place: Place) -> None:
    """One is told that it did; the object is that one's."""

    async def main() -> None:
        async with place.open() as one, place.open() as other:
            await migrate(one)
            for name in map(str, range(5)):
                made = [StoredObject(ObjectKind.KEY, name, f'{{"owner":"{word}"}}') for word in ("ann", "bob")]
                done = await asyncio.gather(
                    *(objects_of(at).create(key, now=1.0) for at, key in zip((one, other), made, strict=True))
                )
                assert sorted(done) == [False, True]
                assert await objects_of(one).one(ObjectKind.KEY, name) == made[done.index(True)]

    asyncio.run(main())


def test_the_stamp_sees_every_change(place: Place) -> None:
    """Two within one second, one that is taken back by another, and what another process did."""

    async def main() -> None:
        async with place.open() as database, place.open() as other:
            await migrate(database)
            objects = objects_of(database)
            seen = [await objects.stamp()]
            changed = StoredObject(ObjectKind.KEY, "dev", '{"models":[]}')
            for change in (
                objects.put(KEY, now=1.0),
                objects.put(changed, now=1.0),
                objects.remove(ObjectKind.KEY, "dev"),
                objects.create(KEY, now=1.0),
                objects_of(other).replace(changed, now=0.0),
                objects_of(other).put(KEY, now=1.0),
            ):
                await change
                seen.append(await objects.stamp())
            assert seen == sorted(set(seen))
            assert await objects.stamp() == seen[-1]

    asyncio.run(main())


@pytest.mark.parametrize("number", ["0.1", "1.10", "0.30000000000000000001", "1e-9", "12345678901234567890123", "-0.0"])
def test_a_number_stays_as_it_was_written(place: Place, number: str) -> None:
    """Where it stands open, and where it is sealed."""
    written = f'{{"price":{{"input":{number}}},"models":[{number}],"secret":{{"of":{number}}}}}'

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            objects = objects_of(database)
            await objects.put(StoredObject(ObjectKind.MODEL, "m", written), now=1.0)
            found = await objects.one(ObjectKind.MODEL, "m")
            assert found is not None and found.document == written
            assert (await objects.all()).objects == (found,)
            assert number in str(await rows(database, "SELECT document FROM object"))

    asyncio.run(main())
