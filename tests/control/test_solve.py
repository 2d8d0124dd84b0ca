import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.control.solve import solve

SMALL = st.floats(-10, 10)


def test_one_equation() -> None:
    assert solve([[4.0]], [2.0]) == [0.5]


@given(st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=1, max_size=5), st.tuples(SMALL, SMALL, SMALL))
def test_the_solution_solves(rows: list[tuple[float, float, float]], wanted: tuple[float, float, float]) -> None:
    matrix = [[sum(row[a] * row[b] for row in rows) + (1.0 if a == b else 0.0) for a in range(3)] for b in range(3)]
    right = [sum(value * x for value, x in zip(line, wanted, strict=True)) for line in matrix]
    assert solve(matrix, right) == pytest.approx(list(wanted), abs=1e-6)
