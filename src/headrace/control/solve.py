"""Solves small systems of linear equations."""

Matrix = list[list[float]]


def solve(matrix: Matrix, right: list[float]) -> list[float]:
    """x in `matrix` x = `right`, for a symmetric and positive definite matrix, by Cholesky's method. Neither changes,
    and of the matrix only the part up to the diagonal is read.

    Squares with a pull towards something are always of that kind.
    """
    size = len(right)
    lower: Matrix = [[0.0] * size for _ in range(size)]
    for row in range(size):
        for column in range(row + 1):
            rest = matrix[row][column] - sum(lower[row][at] * lower[column][at] for at in range(column))
            lower[row][column] = rest**0.5 if row == column else rest / lower[column][column]
    found = list(right)
    for row in range(size):
        found[row] = (found[row] - sum(lower[row][at] * found[at] for at in range(row))) / lower[row][row]
    for row in reversed(range(size)):
        below = sum(lower[at][row] * found[at] for at in range(row + 1, size))
        found[row] = (found[row] - below) / lower[row][row]
    return found
