"""An ingestion as a process of its own, to be killed: its log lines go to stdout.

python -m tests.chaos.ingesting DATABASE DIRECTORY BATCH_BYTES
"""

import asyncio
import sys
from pathlib import Path

from headrace.control.ingest import Ingest, Pace
from headrace.state.database import Database
from headrace.state.ledger import Ledger


def _log(lines: bytes) -> None:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")


async def main(url: str, directory: Path, batch_bytes: int) -> None:
    """Until it is killed."""
    database = Database.open(url, directory)
    pace = Pace(look_s=0.01)
    await Ingest(directory, Ledger(database), _report, _log, pace=pace, batch_bytes=batch_bytes).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
