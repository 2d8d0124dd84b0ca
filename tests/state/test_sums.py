"""Sums to the unit, however large, whatever the sign."""

import asyncio

import pytest
from sqlalchemy import BigInteger, literal, select, union_all

from headrace.state.rows import MOST_COUNT
from headrace.state.sums import halves, whole
from tests.state.places import Place

NUMBERS = [
    [],
    [None],
    [0, None, 1],
    [1, 2**32 - 1, 2**32, 2**53 + 1],
    [MOST_COUNT, MOST_COUNT, MOST_COUNT],
    [-MOST_COUNT, -1, -(2**32), -5],
    [-1, 2**40, -(2**33) - 7],
]


@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
def test_a_sum(place: Place, numbers: list[int | None]) -> None:
    async def main() -> int:
        values = [select(literal(number, BigInteger).label("value")) for number in numbers]
        source = union_all(*values, select(literal(0, BigInteger).label("value")).where(literal(False))).subquery()
        async with place.open() as database, database.reading() as connection:
            row = (await connection.execute(select(*halves(source.c.value, "total")))).one()
            return whole(row, "total")

    assert asyncio.run(main()) == sum(number or 0 for number in numbers)
