"""Fixtures for a `conftest.py` to import: the stand that most tests share, one a test process."""

from collections.abc import Iterator

import pytest

from tests.stand.stand import Stand


@pytest.fixture(scope="session")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """The shared stand. Take a fresh model name for each exchange (`stand.model`)."""
    with Stand(tmp_path_factory.mktemp("stand")) as one:
        yield one
