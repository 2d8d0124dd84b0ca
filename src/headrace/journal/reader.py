"""Reads journals: all records of a directory, and the entry of one exchange."""

from collections.abc import Iterator
from pathlib import Path

from headrace.journal.record import records
from headrace.model.entry import Entry, Record


def read_all(directory: Path) -> Iterator[Record]:
    """Every record under `directory`, incarnation by incarnation, oldest segment first. A missing directory holds
    none."""
    for folder in sorted(directory.glob("journal/*")):
        for segment in sorted(folder.glob("*.segment"), key=lambda path: int(path.stem)):
            yield from records(segment.read_bytes())


def find_entry(directory: Path, exchange_id: str) -> Entry | None:
    """The entry of one exchange; `last` means the newest. None where there is none."""
    found: Entry | None = None
    for record in read_all(directory):
        if (
            isinstance(record, Entry)
            and exchange_id in (record.id, "last")
            and (found is None or record.at >= found.at)
        ):
            found = record
    return found
