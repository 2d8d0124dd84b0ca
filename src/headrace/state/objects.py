"""Channels, models, keys and owners that are not declared in the file: JSON documents in the file's own shape.

What may be a secret is sealed before it goes to the database: every member called `secret` or `proxy`, and every value
under `headers` and `query`, at any depth. A sealed value stands as `{"sealed": "base64"}` and is bound to its object:
copied to another row it opens no more.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from headrace.model.catalogue import ObjectKind, StoredObject
from headrace.state import schema
from headrace.state.database import Database

Cipher = Callable[[str, bytes], bytes]
"""(purpose, data) → data. Unsealing raises ValueError for what was not sealed so; its text holds nothing of it."""

SECRET_MEMBERS = frozenset({"secret", "proxy"})
SECRET_GROUPS = frozenset({"headers", "query"})
_SEALED = "sealed"


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

    async def stamp(self) -> tuple[int, float]:
        """Another one whenever objects were put or removed: how many there are, and when the last was put."""
        table = schema.object.c
        query = select(func.count(), func.coalesce(func.max(table.updated_at), 0.0)).select_from(schema.object)
        async with self._database.reading() as connection:
            count, last = (await connection.execute(query)).one()
        return count, last

    async def put(self, one: StoredObject, now: float) -> None:
        """Add an object, or replace the one of its kind and name; `now` in seconds since the epoch.

        ValueError where the document is not a JSON object.
        """
        kind, name = one.kind.value, one.name
        sealed = _mapped(_document(one.document), lambda value: self._sealed(_purpose(one.kind, name), value))
        values = {"document": msgspec.json.encode(sealed).decode(), "updated_at": now}
        statement = self._insert(schema.object).values(kind=kind, name=name, **values)
        async with self._database.writing() as connection:
            await connection.execute(statement.on_conflict_do_update(index_elements=["kind", "name"], set_=values))

    async def remove(self, kind: ObjectKind, name: str) -> bool:
        """Remove an object. Whether it was there."""
        table = schema.object.c
        statement = delete(schema.object).where(table.kind == kind.value, table.name == name).returning(table.name)
        async with self._database.writing() as connection:
            return (await connection.execute(statement)).first() is not None

    def _opened(self, kind: ObjectKind, name: str, document: str) -> StoredObject:
        opened = _mapped(_document(document), lambda value: self._unsealed(_purpose(kind, name), value))
        return StoredObject(kind, name, msgspec.json.encode(opened).decode())

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
        return msgspec.json.decode(self._unseal(purpose, base64.b64decode(value[_SEALED], validate=True)))


def _purpose(kind: ObjectKind, name: str) -> str:
    return f"object {kind.value} {name}"


def _document(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
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
