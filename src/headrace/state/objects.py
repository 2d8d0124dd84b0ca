"""Channels, models, keys and owners that are not declared in the file: JSON documents in the file's own shape.

Their numbers stay as they were written. What may be a secret is sealed before it goes to the database: every member
called `secret` or `proxy`, and every value under `headers` and `query`, at any depth. A sealed value stands as
`{"sealed": "base64"}` and is bound to its object: copied to another row it opens no more.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, and_, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace.model.catalogue import ObjectKind, StoredObject
from headrace.state import schema
from headrace.state.database import Database

Cipher = Callable[[str, bytes], bytes]
"""(purpose, data) → data. Unsealing raises ValueError for what was not sealed so; its text holds nothing of it."""

SECRET_MEMBERS = frozenset({"secret", "proxy"})
SECRET_GROUPS = frozenset({"headers", "query"})
_SEALED = "sealed"


def _as_written(number: str) -> msgspec.Raw:
    return msgspec.Raw(number.encode())


_any = msgspec.json.Decoder(float_hook=_as_written).decode
_object = msgspec.json.Decoder(dict[str, Any], float_hook=_as_written).decode
"""Numbers stay as they were written, digit for digit: money must not become a binary fraction on its way."""


def _encode(document: object) -> str:
    return msgspec.json.encode(document).decode()


@dataclass(frozen=True, slots=True)
class Found:
    """What is stored. `faults`, one line each, tell of objects whose secrets cannot be opened; they are left out."""

    objects: tuple[StoredObject, ...]
    faults: tuple[str, ...] = ()


class Objects:
    """The declared objects in one database. Every method raises DatabaseAwayError where that cannot be asked."""

    def __init__(self, database: Database, seal: Cipher, unseal: Cipher) -> None:
        self._database = database
        self._seal = seal
        self._unseal = unseal
        self._insert = sqlite.insert if database.is_sqlite else postgresql.insert

    async def all(self) -> Found:
        """Every object, by kind and name."""
        table = schema.object.c
        query = select(table.kind, table.name, table.document).order_by(table.kind, table.name)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query)).all()
        found: list[StoredObject] = []
        faults: list[str] = []
        for row in rows:
            # One object's fault is not the others': each stands for itself.
            try:
                found.append(self._opened(ObjectKind(row.kind), row.name, row.document))
            except ValueError as error:
                faults.append(f"{row.kind} {row.name} in the database cannot be read: {error}")
        return Found(tuple(found), tuple(faults))

    async def one(self, kind: ObjectKind, name: str) -> StoredObject | None:
        """The object of that name; None where there is none. ValueError where its secrets cannot be opened."""
        async with self._database.reading() as connection:
            document = (await connection.execute(select(schema.object.c.document).where(_is(kind, name)))).scalar()
        return self._opened(kind, name, document) if document is not None else None

    async def names(self, kind: ObjectKind) -> tuple[str, ...]:
        """The names of all of one kind, those too that cannot be opened; in order."""
        table = schema.object.c
        async with self._database.reading() as connection:
            found = await connection.execute(select(table.name).where(table.kind == kind.value))
            return tuple(sorted(found.scalars()))

    async def stamp(self) -> int:
        """How often objects were put or removed: another one whenever something has changed."""
        async with self._database.reading() as connection:
            number: int = (await connection.execute(select(schema.object_change.c.number))).scalar_one()
        return number

    async def put(self, one: StoredObject, now: float) -> None:
        """Add an object, or replace the one of its kind and name; `now` in seconds since the epoch.

        ValueError where the document is not a JSON object, here as in `create` and `replace`.
        """
        values = self._values(one, now)
        statement = self._insert(schema.object).values(kind=one.kind.value, name=one.name, **values)
        async with self._database.writing() as connection:
            await _count_change(connection)
            await connection.execute(statement.on_conflict_do_update(index_elements=["kind", "name"], set_=values))

    async def create(self, one: StoredObject, now: float) -> bool:
        """Add an object. False where one of its kind and name is there: then nothing has changed."""
        table = schema.object.c
        statement = self._insert(schema.object).values(kind=one.kind.value, name=one.name, **self._values(one, now))
        statement = statement.on_conflict_do_nothing()
        async with self._database.writing() as connection:
            await _count_change(connection)
            return (await connection.execute(statement.returning(table.name))).first() is not None

    async def replace(self, one: StoredObject, now: float, before: StoredObject | None = None) -> bool:
        """Replace the object of its kind and name. False where there is none, or where `before` is given and it is
        another by now: then nothing has changed."""
        table = schema.object.c
        statement = update(schema.object).where(_is(one.kind, one.name)).values(**self._values(one, now))
        async with self._database.writing() as connection:
            await _count_change(connection)
            if before is not None:
                stored = (await connection.execute(select(table.document).where(_is(one.kind, one.name)))).scalar()
                if stored is None or self._opened(one.kind, one.name, stored) != before:
                    return False
            return (await connection.execute(statement.returning(table.name))).first() is not None

    async def remove(self, kind: ObjectKind, name: str) -> bool:
        """Remove an object. Whether it was there."""
        statement = delete(schema.object).where(_is(kind, name)).returning(schema.object.c.name)
        async with self._database.writing() as connection:
            await _count_change(connection)
            return (await connection.execute(statement)).first() is not None

    def _values(self, one: StoredObject, now: float) -> dict[str, Any]:
        sealed = _mapped(_document(one.document), lambda value: self._sealed(_purpose(one.kind, one.name), value))
        return {"document": _encode(sealed), "updated_at": now}

    def _opened(self, kind: ObjectKind, name: str, document: str) -> StoredObject:
        opened = _mapped(_document(document), lambda value: self._unsealed(_purpose(kind, name), value))
        return StoredObject(kind, name, _encode(opened))

    def _sealed(self, purpose: str, value: Any) -> Any:
        if value is None:
            return None
        data = self._seal(purpose, msgspec.json.encode(value))
        return {_SEALED: base64.b64encode(data).decode("ascii")}

    def _unsealed(self, purpose: str, value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict) or not isinstance(value.get(_SEALED), str):
            raise ValueError("a secret stands open in it; put it again")
        return _any(self._unseal(purpose, base64.b64decode(value[_SEALED], validate=True)))


async def _count_change(connection: AsyncConnection) -> None:
    """First in a transaction that changes objects, so that such transactions come one after the other. Where it then
    changes nothing, somebody reads them once more."""
    table = schema.object_change
    await connection.execute(update(table).values(number=table.c.number + 1))


def _is(kind: ObjectKind, name: str) -> ColumnElement[bool]:
    table = schema.object.c
    return and_(table.kind == kind.value, table.name == name)


def _purpose(kind: ObjectKind, name: str) -> str:
    return f"object {kind.value} {name}"


def _document(text: str) -> dict[str, Any]:
    try:
        return _object(text)
    except msgspec.MsgspecError:
        raise ValueError("its document is no JSON object") from None


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The document with `change` done to each secret place."""
    if isinstance(value, list):
        return [_mapped(one, change) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: _member(name, one, change) for name, one in value.items()}


def _member(name: str, value: Any, change: Callable[[Any], Any]) -> Any:
    if name in SECRET_MEMBERS:
        return change(value)
    if name in SECRET_GROUPS and isinstance(value, dict):
        return {key: change(one) for key, one in value.items()}
    return _mapped(value, change)
