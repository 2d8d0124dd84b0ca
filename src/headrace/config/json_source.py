"""Reads a JSON document into the same plain values as the file's YAML: texts that know nothing of their type yet.

A number stays the text that it was written as, so that money never becomes a binary fraction. A member that is null is
one that is not there.
"""

import json
from decimal import Decimal
from typing import NoReturn

from headrace.config.source import MAX_DEPTH, Block, Items, Value

MAX_DIGITS = 40
"""On either side of the point: no option takes a number of more."""


def read_document(text: str) -> Block:
    """The document's object. Raises ValueError with words about what it is instead."""
    try:
        value = json.loads(
            text, parse_float=_plain, parse_int=str, parse_constant=_refuse_constant, object_pairs_hook=_block
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError(f"is nested deeper than {MAX_DEPTH} levels") from None
    if not isinstance(value, Block):
        raise ValueError("must be an object")
    _refuse_depth(value, MAX_DEPTH)
    return value


def _plain(text: str) -> str:
    """The number without an exponent, as the file would have it; who wrote the document may have had no choice."""
    number = Decimal(text)
    return f"{number:f}" if abs(number.adjusted()) <= MAX_DIGITS else text


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _block(pairs: list[tuple[str, object]]) -> Block:
    block = Block()
    for name, value in pairs:
        if name in block:
            raise ValueError("has a member twice")
        if value is not None:
            block[name] = _value(value)
    return block


def _value(value: object) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        items = Items(1)
        items += map(_value, value)
        items.lines = [1] * len(items)
        return items
    assert value is None or isinstance(value, str | Block)
    return value


def _refuse_depth(value: Value, left: int) -> None:
    if left == 0:
        raise ValueError(f"is nested deeper than {MAX_DEPTH} levels")
    inner = value.values() if isinstance(value, Block) else value if isinstance(value, Items) else ()
    for one in inner:
        _refuse_depth(one, left - 1)
