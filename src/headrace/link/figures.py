"""What the ledger tells of money and of models, on the disk: apart from the snapshot, because it changes all the time.

A worker that starts takes it, and adds what the journals hold beyond it. So it is one state of both: `spent` has what
lies before `positions` in the journals of this state directory, and nothing behind. It is written before a journal, or
a segment of one, is deleted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from headrace.link.sealed_file import SealedFile
from headrace.model.allowance import Spent
from headrace.model.entry import Entry, Opened, Record
from headrace.model.estimate import Learned
from headrace.model.purses import Budgets

FORMAT: Final = 1


class OpenCharge(msgspec.Struct, frozen=True, array_like=True):
    """An exchange that has begun before its journal's position, and has no entry before it."""

    id: str
    key: str
    owner: str
    at: float
    counted: int = 0
    """Nano-units, as of its last checkpoint."""


class JournalPosition(msgspec.Struct, frozen=True, array_like=True):
    """How far one incarnation's journal has been taken."""

    segment: int
    offset: int
    open: tuple[OpenCharge, ...] = ()


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """The file's content."""

    format: int = FORMAT
    at: float
    """When this was so: seconds since the epoch. Of a window that has begun since then it has nothing."""
    spent: tuple[Spent, ...] = ()
    positions: dict[str, JournalPosition] = {}
    """By incarnation. One that is not here has not been taken from at all."""
    learned: dict[str, Learned] = {}
    """By model."""


FIGURES_FILE: Final = SealedFile("figures", Figures, FORMAT)


def follow(running: dict[str, OpenCharge], records: Iterable[Record]) -> Iterator[OpenCharge]:
    """The charges of the entries among a journal's records; `running`, its open exchanges by id, is kept in step."""
    for record in records:
        if isinstance(record, Entry):
            running.pop(record.id, None)
            yield OpenCharge(record.id, record.key, record.owner, record.at, record.money.counted)
        elif isinstance(record, Opened):
            running[record.id] = OpenCharge(record.id, record.key, record.owner, record.at)
        elif (one := running.get(record.id)) is not None:
            running[record.id] = OpenCharge(one.id, one.key, one.owner, one.at, record.money.counted)


def by_purse(charges: Iterable[OpenCharge], budgets: Budgets) -> Counter[str]:
    """What the charges come to in each budget that they count against. Nano-units."""
    added: Counter[str] = Counter()
    for charge in charges:
        if charge.counted:
            for purse in budgets.counting(charge.key, charge.owner, charge.at):
                added[purse] += charge.counted
    return added
