"""What the control process spends on an entry: from the journal's bytes to the database, the log line, and the space
given back.

A round is 1,000 exchanges, each with its `opened` and its entry, timed by the processor time of the whole process; so
milliseconds per round are microseconds per entry. The database grows from round to round, as one does.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from headrace.control.ingest import Ingest
from headrace.journal.place import Incarnation
from headrace.journal.record import frame, head, seed_of
from headrace.model.entry import AttemptLine, Entry, Opened, Wire
from headrace.model.usage import Usage
from headrace.state.database import Database
from headrace.state.ledger import Ledger
from headrace.state.migration import migrate
from tests.stand.postgres import Postgres, postgres, postgres_process

__all__ = ["postgres", "postgres_process"]

EXCHANGES = 1000
ROUNDS = 30
HASH = "ab" * 32
SHORT = Wire(received=900, released=900, events=1, first_event_s=0.35, last_event_s=0.35, hash_in=HASH, hash_out=HASH)
STREAM = Wire(
    received=40_000,
    released=40_000,
    events=80,
    first_event_s=0.35,
    last_event_s=1.4,
    gaps=(0, 10, 20, 40, 9, 0, 0, 0, 0, 0, 0, 0),
    longest_gaps=tuple((number, 0.05) for number in range(8)),
    first_marks=tuple((0.35 + 0.01 * number, number * 250) for number in range(64)),
    last_marks=tuple((1.2 + 0.01 * number, number * 250) for number in range(16)),
    hash_in=HASH,
    hash_out=HASH,
)


def exchange(number: int, wire: Wire) -> tuple[Opened, Entry]:
    """As one with an official SDK leaves it."""
    opened = Opened(
        id=f"hr_{number:026d}",
        at=1.7e9 + number * 0.001,
        protocol="chat",
        operation="chat.completions",
        key=f"key-{number % 50}",
        model="gpt-5.6-sol",
        stream=wire.events > 1,
    )
    attempt = AttemptLine(
        channel="openai-a",
        credential="main",
        upstream_model="gpt-5.6-sol",
        started_s=0.001,
        ended_s=1.5,
        status=200,
        verdict="completed",
        upstream_request_id="req_0123456789abcdef0123456789abcdef",
        reused=True,
    )
    entry = Entry(
        **msgspec.structs.asdict(opened),
        duration_s=1.5,
        end="completed",
        reason="stop",
        status=200,
        served_model="gpt-5.6-sol-2026-05-01",
        finish_reasons=("stop",),
        usage=Usage(input_total=900, cached_input=100, output_total=300, reasoning=10),
        usage_origin="upstream",
        attempts=(attempt,),
        wire=wire,
    )
    return opened, entry


class Work:
    """Journals of dead workers, one a round, and the ingestion that takes them."""

    def __init__(self, database: Database, directory: Path, wire: Wire) -> None:
        self.directory = directory
        self.database = database
        self.wire = wire
        self.turns = count()
        self.lines = 0

    def lay(self) -> None:
        """Another 1,000 exchanges wait, in the order in which 20 at a time write them."""
        turn = next(self.turns)
        where = Incarnation.of(self.directory, "node", 0, f"{turn:04d}")
        where.path.mkdir(parents=True)
        seed = seed_of(where.name)
        pairs = [exchange(turn * EXCHANGES + number, self.wire) for number in range(EXCHANGES)]
        groups = [pairs[begin : begin + 20] for begin in range(0, EXCHANGES, 20)]
        records = [record for group in groups for part in (0, 1) for record in (pair[part] for pair in group)]
        where.segment(1).write_bytes(head(seed) + b"".join(frame(record, seed) for record in records))

    def log(self, lines: bytes) -> None:
        """Count them: where a log goes is not ours."""
        self.lines += lines.count(b"\n")

    async def take(self) -> None:
        """All that is there."""
        ingest = Ingest(self.directory, Ledger(self.database), pytest.fail, self.log)
        running = asyncio.ensure_future(ingest.run())
        await ingest.settled()
        running.cancel()
        await asyncio.wait([running])


@pytest.fixture
def run() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """One loop for all rounds, as in the process."""
    with asyncio.Runner() as runner:
        yield runner.run


def measure(
    benchmark: BenchmarkFixture, run: Callable[[Coroutine[Any, Any, Any]], Any], url: str, directory: Path, wire: Wire
) -> None:
    database = Database.open(url, directory)
    work = Work(database, directory, wire)
    run(migrate(database))
    benchmark.pedantic(lambda: run(work.take()), setup=work.lay, rounds=ROUNDS, warmup_rounds=2)  # type: ignore[no-untyped-call]
    assert work.lines == next(work.turns) * EXCHANGES, "an entry is missing"
    run(database.close())


@pytest.mark.benchmark(group="ingest", timer=time.process_time)
@pytest.mark.parametrize("wire", [SHORT, STREAM], ids=["short", "stream"])
def test_sqlite(
    benchmark: BenchmarkFixture, run: Callable[[Coroutine[Any, Any, Any]], Any], tmp_path: Path, wire: Wire
) -> None:
    measure(benchmark, run, "", tmp_path, wire)


@pytest.mark.benchmark(group="ingest", timer=time.process_time)
@pytest.mark.parametrize("wire", [SHORT, STREAM], ids=["short", "stream"])
def test_postgresql(
    benchmark: BenchmarkFixture,
    run: Callable[[Coroutine[Any, Any, Any]], Any],
    tmp_path: Path,
    wire: Wire,
    postgres: Postgres,
) -> None:
    measure(benchmark, run, postgres.new_database(), tmp_path, wire)
