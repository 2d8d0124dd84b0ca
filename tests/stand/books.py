"""What the control process has put into an SQLite ledger."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec

from headrace.model.entry import Entry


def ledger_entries(state: Path) -> list[Entry]:
    """All entries, the oldest first; none where there is no ledger yet."""
    file = state / "headrace.sqlite"
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as connection:
        try:
            rows = connection.execute("SELECT record FROM entry ORDER BY at").fetchall()
        except sqlite3.OperationalError as error:  # it is being made
            assert "no such table" in str(error)
            return []
    return [msgspec.msgpack.decode(record, type=Entry) for (record,) in rows]
