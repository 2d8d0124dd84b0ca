"""Journals that need no disk: what a reader would return of them, and what the ledger must hold in the end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headrace.journal.place import Incarnation, Position
from headrace.journal.reader import Batch
from headrace.model.entry import AttemptLine, Checkpoint, Entry, Money, Opened, Record, Wire, lost_entry
from headrace.model.usage import Usage

SEGMENT = 5
"""Items that one segment holds: few, so that positions cross segments."""


def opened(id: str, at: float = 1.0) -> Opened:
    """The beginning of an exchange."""
    return Opened(id=id, at=at, protocol="chat", operation="chat.completions", key="dev", owner="ann", model="m")


def reached(id: str, tokens: int = 1) -> Checkpoint:
    """How far it has come: told apart by its tokens."""
    return Checkpoint(
        id=id,
        duration_s=float(tokens),
        status=200,
        usage=Usage(output_total=tokens),
        usage_origin="upstream_partial",
        money=money(tokens),
    )


def money(tokens: int = 1) -> Money:
    """What so many tokens cost, and what is charged for them: twice that."""
    return Money(cost=100 * tokens, charge=200 * tokens, counted=200 * tokens, price="v1", multiplier=2_000_000_000)


def entry(id: str, at: float = 1.0, tokens: int = 1, end: str = "completed") -> Entry:
    """Its end."""
    return Entry(
        id=id,
        at=at,
        duration_s=1.5,
        protocol="chat",
        operation="chat.completions",
        key="dev",
        owner="ann",
        model="m",
        stream=True,
        end=end,
        reason="stop",
        status=200,
        served_model="m-1",
        usage=Usage(input_total=9, cached_input=2, output_total=tokens, reasoning=0),
        usage_origin="upstream",
        money=money(tokens),
        labels=(("team", "red"),),
        attempts=(
            AttemptLine(channel="a", credential="x", upstream_model="m", started_s=0.0, ended_s=0.1, status=503),
            AttemptLine(channel="b", credential="y", upstream_model="m", started_s=0.1, ended_s=1.5, status=200),
        ),
        wire=Wire(received=10, released=10, events=2, first_event_s=0.25),
    )


def incarnation(name: str = "first", node: str = "node", slot: int = 0) -> Incarnation:
    """One life of a worker."""
    return Incarnation.of(Path("nowhere"), node, slot, name)


def batch(*records: Record, after: int = 0, ended: bool = False, damaged: int = 0) -> Batch:
    """A batch that ends at `after`, in its own numbering of positions."""
    return Batch(records, position(after), damaged, ended)


def position(number: int) -> Position:
    """The position behind so many items."""
    return Position(1 + number // SEGMENT, number % SEGMENT)


@dataclass
class Journal:
    """One incarnation's journal: records, and damage of so many bytes between them."""

    source: Incarnation
    items: list[Record | int] = field(default_factory=list)
    is_dead: bool = False

    def read(self, begins: Position, most: int) -> Batch:
        """What a reader returns from there on."""
        number = (begins.segment - 1) * SEGMENT + begins.offset
        taken = self.items[number : number + most]
        end = number + len(taken)
        return Batch(
            tuple(one for one in taken if not isinstance(one, int)),
            position(end),
            sum(one for one in taken if isinstance(one, int)),
            self.is_dead and end == len(self.items),
        )

    def expected(self) -> list[Entry]:
        """The ledger's entries of it once it is dead and all is taken."""
        running: dict[str, tuple[Opened, Checkpoint | None]] = {}
        done: list[Entry] = []
        for one in self.items:
            if isinstance(one, Opened):
                running[one.id] = (one, None)
            elif isinstance(one, Checkpoint) and one.id in running:
                running[one.id] = (running[one.id][0], one)
            elif isinstance(one, Entry):
                running.pop(one.id, None)
                done.append(one)
        is_damaged = any(isinstance(one, int) and one for one in self.items)
        reason = "journal_damaged" if is_damaged else "worker_lost"
        return done + [lost_entry(begun, at, reason) for begun, at in running.values()]


def tokens_of(entries: Iterable[Entry]) -> int:
    """What they cost, in output tokens."""
    return sum(one.usage.output_total or 0 for one in entries)


def by_id(entries: Sequence[Entry]) -> list[Entry]:
    """In the order of ids."""
    return sorted(entries, key=lambda one: one.id)
