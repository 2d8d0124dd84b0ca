"""Channels, models, keys and owners that are not declared in the file: JSON documents in the file's own shape.

What may be a secret is sealed before it goes to the database: every member called `secret` or `proxy`, and every value
under `headers` and `query`, at any depth. A sealed value stands as `{"sealed": "base64"}` and is bound to its object:
copied to another row it opens no more.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite

from headrace.state import schema
from headrace.state.database import Database

Cipher = Callable[[str, bytes], bytes]
"""(purpose, data) → data. Unsealing raises ValueError for what was not sealed so."""

KINDS = ("channel", "model", "key", "owner")
SECRET_MEMBERS = frozenset({"secret", "proxy"})
SECRET_GROUPS = frozenset({"headers", "query"})
_SEALED = "sealed"


@dataclass(frozen=True, slots=True)
class Stored:
    """One object. `document` is JSON with its secrets open; empty where they cannot be opened: `fault` says why."""

    kind: str
    name: str
    document: bytes = field(repr=False)
    updated_at: float
    fault: str = ""


class Objects:
    """The declared objects in one database. Every method raises DatabaseAwayError where that cannot be asked."""

    def __init__(self, database: Database, seal: Cipher, unseal: Cipher) -> None:
        self._database = database
        self._seal = seal
        self._unseal = unseal
        self._insert = sqlite.insert if database.is_sqlite else postgresql.insert

    async def all(self) -> tuple[Stored, ...]:
        """Every object, by kind and name."""
        table = schema.object.c
        async with self._database.reading() as connection:
            rows = (await connection.execute(select(schema.object).order_by(table.kind, table.name))).all()
        return tuple(self._opened(row.kind, row.name, row.document, row.updated_at) for row in rows)

    async def put(self, kind: str, name: str, document: bytes, now: float) -> None:
        """Add an object, or replace it. `document` is a JSON object; `now` in seconds since the epoch.

        ValueError for another kind, or for what is not a JSON object.
        """
        if kind not in KINDS:
            raise ValueError(f"there is no kind {kind!r}; it is one of {', '.join(KINDS)}")
        try:
            parsed = msgspec.json.decode(document, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise ValueError(f"the document of a {kind} is a JSON object: {error}") from None
        sealed = _mapped(parsed, lambda value: self._sealed(kind, name, value))
        values = {"document": msgspec.json.encode(sealed).decode(), "updated_at": now}
        statement: Any = self._insert(schema.object).values(kind=kind, name=name, **values)
        async with self._database.writing() as connection:
            await connection.execute(statement.on_conflict_do_update(index_elements=["kind", "name"], set_=values))

    async def remove(self, kind: str, name: str) -> bool:
        """Remove an object. Whether it was there."""
        table = schema.object.c
        async with self._database.writing() as connection:
            result = await connection.execute(
                delete(schema.object).where(table.kind == kind, table.name == name).returning(table.name)
            )
            return result.first() is not None

    def _opened(self, kind: str, name: str, document: str, updated_at: float) -> Stored:
        try:
            parsed = msgspec.json.decode(document, type=dict[str, Any])
            opened = _mapped(parsed, lambda value: self._unsealed(kind, name, value))
        except (ValueError, binascii.Error):
            # One object's fault is not the others': each stands for itself.
            fault = f"{kind} {name}: what is sealed in it does not open; was it sealed under another state.secret?"
            return Stored(kind, name, b"", updated_at, fault)
        return Stored(kind, name, msgspec.json.encode(opened), updated_at)

    def _sealed(self, kind: str, name: str, value: Any) -> Any:
        if value is None:
            return None
        data = self._seal(_purpose(kind, name), msgspec.json.encode(value))
        return {_SEALED: base64.b64encode(data).decode("ascii")}

    def _unsealed(self, kind: str, name: str, value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict) or not isinstance(value.get(_SEALED), str):
            raise ValueError("stands open in the database")
        data = self._unseal(_purpose(kind, name), base64.b64decode(value[_SEALED], validate=True))
        return msgspec.json.decode(data)


def _purpose(kind: str, name: str) -> str:
    return f"object {kind} {name}"


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
