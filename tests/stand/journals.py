"""Journals without a gateway."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.journal.place import Incarnation
from headrace.journal.writer import Writer
from headrace.model.entry import Record


@pytest.fixture
def journal(tmp_path: Path) -> Callable[..., Path]:
    """Writes records as a worker would; returns the state directory."""

    async def write(directory: Path, records: tuple[Record, ...]) -> None:
        writer = Writer(Incarnation.of(directory, "local", 0, "0000"), asyncio.get_running_loop())
        for record in records:
            writer.append(record)
        writer.close()

    def written(*records: Record) -> Path:
        asyncio.run(write(tmp_path / "state", records))
        return tmp_path / "state"

    return written
