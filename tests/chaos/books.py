"""Compares three accounts of what happened: the clients', the simulator's, and the ledger."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headrace.model.entry import Entry
from headrace.simulator import Recorded
from tests.chaos.load import Asked, End

MARKER = re.compile(rb"[mqw]-\d{7}")


@dataclass(slots=True)
class Audit:
    """What is wrong, a sentence each; empty is what a test wants. And what was counted."""

    faults: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)

    def expect(self, holds: bool, sentence: str) -> None:
        """Note a fault unless it holds."""
        if not holds:
            self.faults.append(sentence)


def audit(asked: Sequence[Asked], calls: Iterable[Recorded], entries: Sequence[Entry]) -> Audit:
    """Every exchange that a client heard of, or that reached an upstream, has one entry, and it says the same."""
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
            _compare(found, one, by_id.get(one.id))
    known = {entry.client_request_id for entry in entries}
    for call in calls:
        if (marker := MARKER.search(call.body)) is not None:
            text = marker[0].decode()
            found.expect(text in known, f"{text} reached the upstream at {call.started_at:.3f} and has no entry")
    return found


def _compare(found: Audit, one: Asked, entry: Entry | None) -> None:
    if entry is None:
        found.expect(False, f"no entry of {one.id} ({one.marker}, {one.end.name})")
        return
    found.expect(entry.client_request_id == one.marker, f"{one.id} is an entry of another request")
    found.expect((entry.model, entry.protocol) == (one.model, one.protocol), f"{one.id}: {entry.model}")
    if one.end is End.WHOLE and not one.error:
        found.expect(entry.end == "completed", f"{one.id} came whole and is {entry.end}: {entry.reason}")
        if not entry.wire.inserted:
            found.expect(entry.wire.hash_out == one.sha256, f"{one.id}: other bytes than the entry says")
    elif one.end is End.WHOLE:
        found.expect(entry.end != "completed", f"{one.id} ended in an error and is completed")
    elif one.end is End.LEFT:
        found.expect(entry.end != "refused" or one.status >= 400, f"{one.id}: its client left, and it is {entry.end}")
    elif one.end is End.BROKEN:
        found.expect(entry.end in ("interrupted", "completed"), f"{one.id} was broken and is {entry.end}")
