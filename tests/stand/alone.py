"""A worker alone in a process, to be killed: `python -m tests.stand.alone CONFIG CHECKPOINT_S` prints its port."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from headrace.config.draft import load
from headrace.worker import Worker, run
from tests.stand.gateway import SECRET

ROOT = Path(__file__).resolve().parent.parent.parent


@contextmanager
def worker_alone(config: Path, checkpoint_s: float) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process and its port. It is killed in the end, where it still runs."""
    command = [sys.executable, "-m", "tests.stand.alone", str(config), str(checkpoint_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def _report(line: str) -> None:
    sys.stderr.write(f"{line}\n")


async def _serve(config: Path, checkpoint_s: float) -> None:
    loaded = load(config).resolve(SECRET)
    settings = replace(loaded.settings, state=replace(loaded.settings.state, checkpoint=checkpoint_s))
    worker = Worker(settings, loaded.catalogue, _report)
    await worker.start()
    sys.stdout.write(f"{worker.addresses[0].port}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    run(_serve(Path(sys.argv[1]), float(sys.argv[2])))
