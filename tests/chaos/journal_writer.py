"""A process that does nothing but write a journal, to be killed, or held up by a limit on the size of files.

`python -m tests.chaos.journal_writer DIRECTORY SEGMENT_BYTES LIMIT`. Records are numbered from 1; the number of the
last that is in the file goes to stdout now and then, a line each. With LIMIT no file may grow beyond so many bytes
until a line comes from stdin; then it ends in good order.
"""

import asyncio
import resource
import sys
from pathlib import Path

from headrace.journal.writer import RETRY_S, JournalError, Sizes, Writer
from tests.journal.entries import entry, opened, place

BATCH = 5


async def _write(directory: Path, segment_bytes: int, limit: int) -> None:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))

    def told() -> None:
        loop.remove_reader(sys.stdin.fileno())
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        ended.set_result(None)

    loop.add_reader(sys.stdin.fileno(), told)
    sizes = Sizes(segment=segment_bytes, reserve=64 * 1024, step=64 * 1024)
    writer = Writer(place(directory), loop, 0.05, sizes, _say, lambda: _say("full"))
    number = 0
    while not ended.done():
        for _ in range(BATCH):
            number += 1
            if number % 3 == 0:
                try:
                    writer.append(opened(number))
                except JournalError:
                    number -= 1
                    await asyncio.sleep(0.01)
            else:
                writer.append(entry(number))
        await asyncio.sleep(0.001)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
    await asyncio.sleep(1.5 * RETRY_S)
    writer.close()
    sys.stdout.write(f"{number}\n")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    asyncio.run(_write(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
