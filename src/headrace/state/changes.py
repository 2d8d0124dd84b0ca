"""What a batch of journal records changes in the tables: pure, so that every mixture of records is a plain test.

    opened ──▶ open ──checkpoint──▶ open ──entry──▶ entry        an exchange that runs over several batches
    opened … entry within one batch ──▶ entry                    the usual case: the open table is not touched
    open when its process has ended ──▶ lost entry

The last is the ledger's: what earlier batches have left open stands in the table alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.model.entry import Checkpoint, Entry, Opened, Record

WORKER_LOST = "worker_lost"
"""The reason of an exchange whose worker died before it could write the entry."""
JOURNAL_DAMAGED = "journal_damaged"
"""The same where the journal was damaged too: the entry may have been written, and not be readable."""


@dataclass(slots=True)
class Changes:
    """What has to be done, in any order within one transaction."""

    entries: list[Entry] = field(default_factory=list)
    opened: dict[str, tuple[Opened, Checkpoint | None]] = field(default_factory=dict)
    """Begun in this batch and still running at its end, by id."""
    reached: dict[str, Checkpoint] = field(default_factory=dict)
    """The last checkpoint of each exchange that an earlier batch has opened."""
    closed: list[str] = field(default_factory=list)
    """Ids of entries whose exchange this batch has not opened: an earlier one may have."""


def changes_from_records(records: Iterable[Record]) -> Changes:
    """The records of one incarnation in the order of its journal."""
    changes = Changes()
    opened, reached = changes.opened, changes.reached
    ended: set[str] = set()
    for record in records:
        if isinstance(record, Entry):
            changes.entries.append(record)
            ended.add(record.id)
            if opened.pop(record.id, None) is None:
                reached.pop(record.id, None)
                changes.closed.append(record.id)
        elif isinstance(record, Opened):
            if record.id not in ended:
                opened[record.id] = (record, None)
        elif (one := opened.get(record.id)) is not None:
            opened[record.id] = (one[0], record)
        elif record.id not in ended:
            reached[record.id] = record
    return changes
