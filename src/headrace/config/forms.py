"""How an option's text is read and how its default is shown: durations, sizes, numbers, choices.

A form is the metadata of an option's type: pydantic validates with it, `explain` documents with it. Readers raise
ValueError with a message that says what is allowed and does not repeat the text, which may be a misplaced secret.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from headrace.model.settings import GIB, KIB, MIB

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_UNITS_B = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}
_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)(ms|s|m|h)")
_SIZE = re.compile(r"([0-9]{1,15})(B|KiB|MiB|GiB)")
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")

MAX_DURATION_S = 365 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading needs besides the text: the folder that relative paths begin at, and the environment."""

    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    references: bool = True
    """Whether a text may refer to the environment or a file. What comes from outside this machine may not: it could
    send any file that the gateway can read to an address of its own."""
    secrets: bool = True
    """Whether the gateway's own secret is wanted; without, what it refers to need not be there."""

    def path(self, text: str) -> Path:
        """A path as the file means it."""
        return self.folder / text


@dataclass(frozen=True, slots=True)
class Form(Generic[T]):
    """One form of text: its name in documentation and messages, its reader, and the way back for defaults."""

    name: str
    read: Callable[[str, Reading], T]
    show: Callable[[T], str] = str

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self._validate)

    def _validate(self, value: object, info: ValidationInfo[Any]) -> T:
        if not isinstance(value, str):
            raise ValueError(f"{wrong_shape(value)}; it takes {self.name}")
        return self.read(value, info.context)


@dataclass(frozen=True, slots=True)
class DefaultText:
    """What documentation says of a default that is no plain value."""

    text: str


def wrong_shape(value: object) -> str:
    """What stands there instead of a text."""
    if value is None:
        return "has no value (leave the option out for its default)"
    return "must not be a mapping" if isinstance(value, Mapping) else "must not be a list"


def closest(name: str, allowed: Iterable[str]) -> str:
    """` (did you mean x?)`, or nothing."""
    near = difflib.get_close_matches(name, list(allowed), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


# ------------------------------------------------------------------------------------------------------- durations


def read_duration(text: str, minimum_s: float = 0.0) -> float:
    """`200ms`, `10s`, `2m`, `1h` → seconds. A bare number is refused: its unit would be a guess."""
    if match := _DURATION.fullmatch(text):
        seconds = float(match[1]) * _UNITS_S[match[2]]
        if seconds < minimum_s:
            raise ValueError(f"must be at least {show_duration(minimum_s)}")
        if seconds > MAX_DURATION_S:
            raise ValueError(f"must be at most {show_duration(MAX_DURATION_S)}")
        return seconds
    if _NUMBER.fullmatch(text):
        raise ValueError(f"needs a unit: {text}ms, {text}s, {text}m or {text}h")
    if text == "never":
        raise ValueError("cannot be never; it takes a duration such as 200ms, 10s, 2m or 1h")
    raise ValueError("must be a duration such as 200ms, 10s, 2m or 1h")


def show_duration(seconds: float | None) -> str:
    """Seconds → the shortest text that reads back as the same, to the millisecond; None is `never`."""
    if seconds is None:
        return "never"
    ms = round(seconds * 1000)
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if ms % size == 0 and (ms or unit == "s"):
            return f"{ms // size}{unit}"
    return f"{ms}ms"


def _read_duration(text: str, reading: Reading) -> float:
    return read_duration(text)


def _read_positive_duration(text: str, reading: Reading) -> float:
    return read_duration(text, minimum_s=0.001)


def _read_duration_or_never(text: str, reading: Reading) -> float | None:
    return None if text == "never" else read_duration(text, minimum_s=0.001)


DURATION = Form("a duration", _read_positive_duration, show_duration)
DURATION_OR_ZERO = Form("a duration, 0s allowed", _read_duration, show_duration)
DURATION_OR_NEVER = Form("a duration or never", _read_duration_or_never, show_duration)

Duration = Annotated[float, DURATION]
DurationOrZero = Annotated[float, DURATION_OR_ZERO]
DurationOrNever = Annotated[float | None, DURATION_OR_NEVER]


# ----------------------------------------------------------------------------------------------------------- sizes


def read_size(text: str) -> int:
    """`64KiB`, `1MiB`, `2GiB` → bytes, at least 1."""
    if match := _SIZE.fullmatch(text):
        if not (size := int(match[1]) * _UNITS_B[match[2]]):
            raise ValueError("must be at least 1B")
        return size
    if re.fullmatch(r"[0-9]{1,15}", text):
        raise ValueError(f"needs a unit: {text}B, {text}KiB, {text}MiB or {text}GiB")
    if re.fullmatch(r"[0-9]+ ?[kKmMgG][bB]?", text):
        raise ValueError("must be a size in KiB, MiB or GiB (powers of 1024), such as 64MiB")
    raise ValueError("must be a size such as 64KiB, 1MiB or 2GiB")


def show_size(size: int) -> str:
    """Bytes → the shortest exact text."""
    for unit in ("GiB", "MiB", "KiB"):
        if size and size % _UNITS_B[unit] == 0:
            return f"{size // _UNITS_B[unit]}{unit}"
    return f"{size}B"


def _read_size(text: str, reading: Reading) -> int:
    return read_size(text)


SIZE = Form("a size", _read_size, show_size)
Size = Annotated[int, SIZE]


# ---------------------------------------------------------------------------------------- numbers, switches, choices


def whole(minimum: int, maximum: int) -> Form[int]:
    """A whole number in a range."""
    name = f"a whole number from {minimum} to {maximum}"

    def read(text: str, reading: Reading) -> int:
        if not _WHOLE.fullmatch(text) or not minimum <= int(text) <= maximum:
            raise ValueError(f"must be {name}")
        return int(text)

    return Form(name, read)


def choice(kind: type[E], noun: str) -> Form[E]:
    """One of an enum's values."""
    allowed = [str(member.value) for member in kind]

    def read(text: str, reading: Reading) -> E:
        if text not in allowed:
            raise ValueError(f"unknown {noun}{closest(text, allowed)}; allowed: {', '.join(allowed)}")
        return kind(text)

    name = " or ".join(allowed) if len(allowed) < 4 else f"a {noun}"
    return Form(name, read, lambda member: str(member.value))


def one_of(*numbers: int) -> Form[int]:
    """One of a few whole numbers."""
    allowed = [str(number) for number in numbers]

    def read(text: str, reading: Reading) -> int:
        if text not in allowed:
            raise ValueError(f"must be {' or '.join(allowed)}")
        return int(text)

    return Form(" or ".join(allowed), read)


def _read_switch(text: str, reading: Reading) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("must be true or false")
    return text == "true"


Switch = Annotated[bool, Form("true or false", _read_switch, lambda on: str(on).lower())]


def _many_from_one(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _many_from_one_group(value: object) -> object:
    shape = "a mapping of options, or a list of them"
    if value is None:
        raise ValueError(f"{wrong_shape(value)}; it takes {shape}")
    if not isinstance(value, Mapping | list):
        raise ValueError(f"must be {shape}")
    return [value] if isinstance(value, Mapping) else value


ONE_OR_MANY = BeforeValidator(_many_from_one)
"""A list of one may be written without the brackets."""
ONE_OR_MANY_GROUPS = BeforeValidator(_many_from_one_group)
"""The same where the items are mappings."""
