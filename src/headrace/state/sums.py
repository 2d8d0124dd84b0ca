"""Exact sums of columns that have 63 bits each: the sum may have more.

SQLite refuses a sum that passes 63 bits, PostgreSQL makes it a decimal. So both are asked for the sum of the upper and
the sum of the lower halves, and those are put together here.
"""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, func, literal_column

_BITS = 32
_LOW = literal_column(str((1 << _BITS) - 1), BigInteger)
_SHIFT = literal_column(str(_BITS), Integer)


def halves(value: ColumnElement[Any], name: str) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """The two sums of a whole number, as columns of a query."""
    high = func.sum(value.bitwise_rshift(_SHIFT)).label(f"{name}_high")
    return high, func.sum(value.bitwise_and(_LOW)).label(f"{name}_low")


def whole(row: Any, name: str) -> int:
    """The sum out of a row of such a query; 0 where nothing was there to add."""
    return (int(getattr(row, f"{name}_high") or 0) << _BITS) + int(getattr(row, f"{name}_low") or 0)
