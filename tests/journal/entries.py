"""Entries as an exchange leaves them, and segments that hold them."""

from collections.abc import Iterable
from pathlib import Path

from headrace.journal.place import Incarnation
from headrace.journal.record import frame, head, seed_of
from headrace.model.entry import AttemptLine, Checkpoint, Entry, Opened, Record, Wire
from headrace.model.usage import Usage

NAME = "01j2c3d4e5f6g7h8j9k0m1n2p3"
SEED = seed_of(NAME)


def entry(number: int, at: float | None = None, reason: str = "stop") -> Entry:
    """One entry, told apart by its number."""
    return Entry(
        id=f"hr_{number:026d}",
        at=float(number) if at is None else at,
        duration_s=1.5,
        protocol="chat",
        operation="chat.completions",
        key="dev",
        model="gpt-x",
        stream=True,
        end="completed",
        reason=reason,
        usage=Usage(input_total=9, output_total=number),
        attempts=(
            AttemptLine(channel="a", credential="main", upstream_model="m", started_s=0.0, ended_s=1.0, status=200),
        ),
        wire=Wire(received=10, released=10, events=2, hash_in="00", hash_out="00"),
    )


def opened(number: int) -> Opened:
    """Its beginning."""
    return Opened(id=f"hr_{number:026d}", at=float(number), protocol="chat", key="dev", model="gpt-x")


def checkpoint(number: int) -> Checkpoint:
    """How far it has come."""
    return Checkpoint(id=f"hr_{number:026d}", duration_s=0.5, wire=Wire(events=number))


def segment(records: Iterable[Record]) -> bytes:
    """A whole segment of the incarnation NAME."""
    return head(SEED) + b"".join(frame(record, SEED) for record in records)


def place(directory: Path, name: str = NAME) -> Incarnation:
    """The incarnation under a state directory."""
    return Incarnation.of(directory, "local", 0, name)


def lay(where: Incarnation, number: int, content: bytes) -> None:
    """Put a segment there, as a dead worker leaves it."""
    where.path.mkdir(parents=True, exist_ok=True)
    where.segment(number).write_bytes(content)
