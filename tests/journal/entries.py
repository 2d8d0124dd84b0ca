"""Entries as an exchange leaves them."""

from headrace.model.entry import AttemptLine, Entry, Opened, Wire
from headrace.model.usage import Usage


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
