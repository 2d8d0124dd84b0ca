"""Compares three accounts of what happened: the clients', the simulator's, and the ledger."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.model.entry import Entry
from headrace.simulator import Recorded
from tests.chaos.load import Asked, End

MARKER = re.compile(rb"[mqw]-\d{7}")
BEHIND_THE_END_S: Final = 0.5
"""How near to its worker's death an answer came whole that has no entry of its own. The entry follows the last byte by
some steps of the worker's loop, microseconds; but on a busy machine the worker may be put aside between them, and the
client and whoever kills note their times late, by a tenth of a second or two."""


@dataclass(frozen=True, slots=True)
class Death:
    """A worker that was killed."""

    incarnation: int
    """The 16 bits that its exchanges' ids have."""
    at: float
    """Monotonic seconds."""


@dataclass(slots=True)
class Audit:
    """What is wrong, a sentence each; empty is what a test wants. And what was counted."""

    faults: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)
    behind_the_end: int = 0
    """Answers that came whole, and whose worker was killed before it could say so."""

    def expect(self, holds: bool, sentence: str) -> None:
        """Note a fault unless it holds."""
        if not holds:
            self.faults.append(sentence)


def audit(
    asked: Sequence[Asked], calls: Iterable[Recorded], entries: Sequence[Entry], deaths: Sequence[Death] = ()
) -> Audit:
    """Every exchange that a client heard of, or that reached an upstream, has one entry, and it says the same.

    `deaths` are those of all workers that were killed.
    """
    found = Audit(ends=Counter(f"{entry.end}/{entry.reason}" for entry in entries))
    ids = Counter(entry.id for entry in entries)
    found.expect(max(ids.values(), default=1) == 1, f"doubled: {[id for id, count in ids.items() if count > 1][:5]}")
    by_marker = Counter(entry.client_request_id for entry in entries)
    doubled = [marker for marker, count in by_marker.items() if count > 1]
    found.expect(not doubled, f"two exchanges of one request: {doubled[:5]}")
    by_id = {entry.id: entry for entry in entries}
    for one in asked:
        found.expect(
            one.end is not End.LATE, f"{one.marker} ({one.id or 'no head'}) was left waiting since {one.began:.3f}"
        )
        if one.id:
            _compare(found, one, by_id.get(one.id), deaths)
    known = {entry.client_request_id for entry in entries}
    for call in calls:
        if (marker := MARKER.search(call.body)) is not None:
            text = marker[0].decode()
            found.expect(text in known, f"{text} reached the upstream at {call.started_at:.3f} and has no entry")
    return found


def _compare(found: Audit, one: Asked, entry: Entry | None, deaths: Sequence[Death]) -> None:
    if entry is None:
        found.expect(False, f"no entry of {one.id} ({one.marker}, {one.end.name})")
        return
    found.expect(entry.client_request_id == one.marker, f"{one.id} is an entry of another request")
    found.expect((entry.model, entry.protocol) == (one.model, one.protocol), f"{one.id}: {entry.model}")
    if one.end is End.WHOLE and not one.error:
        _compare_whole(found, one, entry, deaths)
    elif one.end is End.WHOLE:
        found.expect(entry.end != "completed", f"{one.id} ended in an error and is completed")
    elif one.end is End.LEFT:
        found.expect(entry.end != "refused" or one.status >= 400, f"{one.id}: its client left, and it is {entry.end}")
    elif one.end is End.BROKEN:
        found.expect(entry.end in ("interrupted", "completed"), f"{one.id} was broken and is {entry.end}")


def _compare_whole(found: Audit, one: Asked, entry: Entry, deaths: Sequence[Death]) -> None:
    """Completed, and the same bytes. Only where its worker was killed at that moment may the entry be lost."""
    if (entry.end, entry.reason) == ("interrupted", "worker_lost") and any(
        death.incarnation == one.incarnation and abs(one.ended - death.at) <= BEHIND_THE_END_S for death in deaths
    ):
        found.behind_the_end += 1
        found.expect(entry.wire.released <= one.length, f"{one.id}: more was noted than its client got")
        return
    found.expect(entry.end == "completed", f"{one.id} came whole and is {entry.end}: {entry.reason}")
    if not entry.wire.inserted:
        found.expect(entry.wire.hash_out == one.sha256, f"{one.id}: other bytes than the entry says")
