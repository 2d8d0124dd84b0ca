"""A configuration file in a folder of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file that only its owner may read."""

    def write_file(text: str) -> Path:
        path = tmp_path / "headrace.yaml"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    return write_file
