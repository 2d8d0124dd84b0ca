"""An object's document, changed member by member: what a command does not name stays as it is."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from headrace.model.catalogue import ObjectKind, StoredObject

Member = str | bool | Sequence[str] | Sequence[Mapping[str, str]] | Mapping[str, Any]
"""Numbers are texts: money must not become a binary fraction on its way."""

_decode = msgspec.json.Decoder(dict[str, Any], float_hook=lambda number: msgspec.Raw(number.encode())).decode


class ObjectDocument:
    """The members of one object, in the shape that the file has for it."""

    def __init__(self, stored: StoredObject | None = None) -> None:
        """Those of `stored`, which is a JSON object; without it none."""
        self._members: dict[str, Any] = _decode(stored.document) if stored is not None else {}

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, in whatever order and spacing."""
        return isinstance(other, ObjectDocument) and self._members == other._members

    __hash__ = None  # type: ignore[assignment]  # it changes

    def put(self, path: str, value: Member) -> None:
        """Set a member; `limits.wait` is one of a group."""
        group, name = self._place(path)
        group[name] = value

    def drop(self, path: str) -> None:
        """Remove a member, where it is there, and the group that is empty then."""
        outer, _, _ = path.rpartition(".")
        group, name = self._place(path)
        group.pop(name, None)
        if outer and not group:
            self.drop(outer)

    def member(self, path: str) -> Any:
        """What stands there; None where nothing does."""
        value: Any = self._members
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def stored(self, kind: ObjectKind, name: str) -> StoredObject:
        """The object with these members."""
        return StoredObject(kind, name, msgspec.json.encode(self._members).decode())

    def _place(self, path: str) -> tuple[dict[str, Any], str]:
        *groups, name = path.split(".")
        here = self._members
        for group in groups:
            inner = here.get(group)
            if not isinstance(inner, dict):
                here[group] = inner = {}
            here = inner
        return here, name
