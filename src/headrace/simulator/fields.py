"""Strict reading of a script's fields: errors name the field and what is allowed there."""

import base64
import binascii
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec

T = TypeVar("T")
D = TypeVar("D")
E = TypeVar("E", bound=StrEnum)

MAX_SECONDS = 86_400.0
MAX_REPEAT = 10**9
# A bytes value is made whole in memory, so its repetition is bounded; a scenario's `repeat` is lazy and is not.
MAX_BYTES = 256 << 20
BYTES_KEYS = frozenset({"text", "base64", "json", "file"})


class ScriptError(ValueError):
    """A script that cannot be played. The message begins with the dotted path of the field at fault."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: its dotted path, and the folder that `file:` is relative to (None: files are refused)."""

    path: str = ""
    folder: Path | None = None

    def at(self, name: object) -> "Place":
        return replace(self, path=f"{self.path}.{name}" if self.path else str(name))

    def error(self, message: str) -> ScriptError:
        return ScriptError(f"{self.path or 'script'}: {message}")


Reader: TypeAlias = Callable[[object, Place], T]


class Fields:
    """One mapping being read: `take` each known field, then `end`, which refuses what is left."""

    def __init__(self, value: object, place: Place) -> None:
        if not isinstance(value, Mapping):
            raise place.error(f"expected a mapping of fields, not {_shown(value)}")
        self.place = place
        self._left: dict[str, object] = {str(name): item for name, item in value.items()}
        self._known: list[str] = []

    def take(self, name: str, read: Reader[T], default: D) -> T | D:
        """The field's value, or `default` when it is absent or null."""
        self._known.append(name)
        value = self._left.pop(name, None)
        return default if value is None else read(value, self.place.at(name))

    def has(self, name: str) -> bool:
        return self._left.get(name) is not None

    def end(self) -> None:
        for name in self._left:
            close = difflib.get_close_matches(name, self._known, 1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise self.place.at(name).error(f"unknown field; {hint}allowed here: {', '.join(sorted(self._known))}")


def boolean(value: object, place: Place) -> bool:
    if isinstance(value, bool):
        return value
    raise place.error(f"expected true or false, not {_shown(value)}")


def string(value: object, place: Place) -> str:
    """Text that can be UTF-8. Escaped surrogate pairs, which YAML leaves apart, are put together."""
    if isinstance(value, str):
        if value.isascii():
            return value
        try:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise place.error("holds half of a surrogate pair, which no UTF-8 can") from None
    raise place.error(f"expected a string, not {_shown(value)}")


def seconds(value: object, place: Place) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MAX_SECONDS:
        return float(value)
    raise place.error(f"expected seconds (a number from 0 to {MAX_SECONDS:.0f}), not {_shown(value)}")


def whole(least: int, most: int) -> Reader[int]:
    """A reader of whole numbers in [least, most]."""

    def read(value: object, place: Place) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        raise place.error(f"expected a whole number from {least} to {most}, not {_shown(value)}")

    return read


natural = whole(0, 10**12)
positive = whole(1, 1 << 30)


def choice(kind: type[E]) -> Reader[E]:
    """A reader of one of an enum's values."""

    def read(value: object, place: Place) -> E:
        for member in kind:
            if member.value == value:
                return member
        raise place.error(f"{_shown(value)} is not one of {', '.join(member.value for member in kind)}")

    return read


def list_of(read: Reader[T]) -> Reader[tuple[T, ...]]:
    """A reader of lists; a single value that is no list is a list of one."""

    def read_all(value: object, place: Place) -> tuple[T, ...]:
        if not isinstance(value, list):
            return (read(value, place),)
        return tuple(read(item, place.at(index)) for index, item in enumerate(value))

    return read_all


def mapping_of(read: Reader[T]) -> Reader[dict[str, T]]:
    """A reader of mappings from any name to one kind of value; a null value is an error."""

    def read_all(value: object, place: Place) -> dict[str, T]:
        if not isinstance(value, Mapping):
            raise place.error(f"expected a mapping, not {_shown(value)}")
        return {str(name): read(item, place.at(name)) for name, item in value.items()}

    return read_all


def json_bytes(value: object, place: Place) -> bytes:
    """Any YAML value as compact JSON in UTF-8."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise place.error(f"not representable as JSON: {error}") from None


def raw_bytes(value: object, place: Place) -> bytes:
    """Bytes: a string (UTF-8), `{text|base64|json|file: …, repeat: n}`, or a list of these, joined."""
    if isinstance(value, str):
        return string(value, place).encode()
    if isinstance(value, list):
        return b"".join(raw_bytes(item, place.at(index)) for index, item in enumerate(value))
    fields = Fields(value, place)
    readers: tuple[tuple[str, Reader[bytes]], ...] = (
        ("text", _text),
        ("base64", _base64),
        ("json", json_bytes),
        ("file", _file),
    )
    given = [found for name, read in readers if (found := fields.take(name, read, None)) is not None]
    times = fields.take("repeat", whole(0, MAX_REPEAT), 1)
    fields.end()
    if len(given) != 1:
        raise place.error("expected a string or exactly one of text, base64, json, file")
    if len(given[0]) * times > MAX_BYTES:
        raise place.error(f"{len(given[0]) * times} bytes; at most {MAX_BYTES} are kept in memory")
    return given[0] * times


def body_bytes(value: object, place: Place) -> bytes:
    """As `raw_bytes`, but a mapping with none of its keys is a JSON document."""
    if isinstance(value, Mapping) and not BYTES_KEYS & {str(name) for name in value}:
        return json_bytes(value, place)
    return raw_bytes(value, place)


def file_bytes(value: object, place: Place) -> bytes:
    """The bytes of a file named in a script, relative to the script's folder."""
    return _file(value, place)


def _text(value: object, place: Place) -> bytes:
    return string(value, place).encode()


def _base64(value: object, place: Place) -> bytes:
    try:
        return base64.b64decode(string(value, place), validate=True)
    except binascii.Error as error:
        raise place.error(f"not base64: {error}") from None


def _file(value: object, place: Place) -> bytes:
    if place.folder is None:
        raise place.error("files can only be named in a script, not in a request")
    try:
        return (place.folder / string(value, place)).read_bytes()
    except OSError as error:
        raise place.error(f"cannot be read: {error.strerror}") from None


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
