"""What was spent beyond what a starting worker finds on the disk: out of the journals, so that it needs no control
process and no database to know it.

    figures: what the ledger had of each budget, and how far of each journal that is
    behind that, in the journals of other workers: entries; of a dead one's open exchanges also what they had reached

It is read once, before the worker serves, in a thread.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from headrace.journal.place import Incarnation, Position, incarnations
from headrace.journal.reader import bytes_behind, read_batch
from headrace.link.figures import FIGURES_FILE, Figures, JournalPosition, by_purse, follow
from headrace.link.sealed_file import SealedFileError
from headrace.model.allowance import Spent
from headrace.model.estimate import Learned
from headrace.model.purses import Budgets

MOST_BYTES: Final = 256 * 1024 * 1024
"""Of journals that are read: some three seconds. So much lies there only after hours without a control process."""
TRIES: Final = 5
_NOT_TAKEN: Final = JournalPosition(1, 0)


@dataclass(frozen=True, slots=True)
class Start:
    """What a worker begins with."""

    spent: tuple[Spent, ...] = ()
    learned: dict[str, Learned] = field(default_factory=dict)


def read_start(directory: Path, secret: bytes, budgets: Budgets, now: float, report: Callable[[str], None]) -> Start:
    """The figures of a state directory, with what its journals hold beyond them; `now` in seconds since the epoch.

    The control process may take a journal and delete it meanwhile. It writes new figures before it does, so where they
    are the same at the end, nothing was missed.
    """
    found = Start()
    for _ in range(TRIES):
        stamp = FIGURES_FILE.stamp(directory)
        try:
            figures = FIGURES_FILE.read(directory, secret)
        except SealedFileError as error:
            report(str(error))
            return Start()
        if figures is None:
            return Start()
        found = Start(_with_rest(directory, figures, budgets, now, report), figures.learned)
        if FIGURES_FILE.stamp(directory) == stamp:
            break
    return found


def _with_rest(
    directory: Path, figures: Figures, budgets: Budgets, now: float, report: Callable[[str], None]
) -> tuple[Spent, ...]:
    sums = {one.purse: one for one in figures.spent}
    for purse, start in budgets.at(now).items():
        if purse not in sums and start > figures.at:
            sums[purse] = Spent(purse=purse)
    if not sums:
        return ()
    behind = [(one, figures.positions.get(one.name, _NOT_TAKEN)) for one in incarnations(directory)]
    size = sum(bytes_behind(one, Position(at.segment, at.offset)) for one, at in behind)
    if size > MOST_BYTES:
        report(f"{size} bytes of journal are not in the database; what they say of budgets is left out until they are")
        return tuple(sums.values())
    for one, at in behind:
        try:
            rest = _rest(one, at, budgets)
        except OSError as error:
            report(f"cannot read the journal {one.path}: {error.strerror or error}; what was spent may lack some")
            continue
        for purse, amount in rest.items():
            if amount and (before := sums.get(purse)) is not None:
                parts = {**before.parts, one.name: before.parts.get(one.name, 0) + amount}
                sums[purse] = msgspec.structs.replace(before, parts=parts)
    return tuple(sums.values())


def _rest(source: Incarnation, taken: JournalPosition, budgets: Budgets) -> Counter[str]:
    """What one journal adds to each purse behind what has been taken of it."""
    added: Counter[str] = Counter()
    running = {one.id: one for one in taken.open}
    position = Position(taken.segment, taken.offset)
    while True:
        batch = read_batch(source, position)
        added.update(by_purse(follow(running, batch.records), budgets))
        if batch.ended or batch.after == position:
            break
        position = batch.after
    if batch.ended:
        added.update(by_purse(running.values(), budgets))
    return added
