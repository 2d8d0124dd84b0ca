"""A second reading of JSON that an upstream sent and msgspec refused: members of odd types are left out one by one.

The standard library reads lone surrogates, which are real traffic; numbers such as 1.0E+2 count as whole.
"""

import json
from typing import Any, TypeVar, get_args, get_origin

import msgspec

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")


def read_leniently(payload: bytes, kind: type[S]) -> S | None:
    """`payload` as a struct all of whose members have defaults; None where it is no JSON at all.

    JSON that is no object reads as an empty struct. Texts are UTF-8: half a surrogate pair becomes a question mark.
    """
    try:
        value = json.loads(payload.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return _struct(value, kind)


def _struct(value: object, kind: type[S]) -> S:
    made = kind()
    if isinstance(value, dict):
        for field in msgspec.structs.fields(kind):
            found = _member(value.get(field.encode_name), field.type)
            if found is not None:
                setattr(made, field.name, found)
    return made


def _member(value: object, kind: Any) -> object:
    """`value` as one of the types of `kind`; None where it is none of them."""
    for one in get_args(kind) if get_origin(kind) is not list else (kind,):
        if (found := _as(value, one)) is not None:
            return found
    return None if get_args(kind) else _as(value, kind)


def _as(value: object, kind: Any) -> object:
    if kind is Any:
        return value
    if kind is str:
        return word(value)
    if kind is int:
        return whole(value)
    if get_origin(kind) is list:
        (item,) = get_args(kind)
        return [found for one in value if (found := _as(one, item)) is not None] if isinstance(value, list) else None
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _struct(value, kind) if isinstance(value, dict) else None
    return None


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def whole(value: object) -> int | None:
    """A count, however it is spelled: 100, 1.0E+2."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def word(value: object) -> str | None:
    """A text that goes into records, which are UTF-8: half a surrogate pair becomes a question mark."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else None


def as_kind(value: object, kind: type[T]) -> T | None:
    """`value` as a `kind`, if msgspec takes it for one."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None
