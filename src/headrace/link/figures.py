"""What the ledger tells of money and of models, on the disk: apart from the snapshot, because it changes all the time.

A worker that starts takes it, and adds what the journals hold beyond it. So it is one state of both: `spent` has what
lies before `positions` in the journals of this state directory, and nothing behind. It is written before a journal, or
a segment of one, is deleted.
"""

from typing import Final

import msgspec

from headrace.link.sealed_file import SealedFile
from headrace.model.allowance import Spent
from headrace.model.estimate import Learned

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
