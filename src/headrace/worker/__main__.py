"""`python -m headrace.worker --fd N`: started by the supervisor, with its end of the pair as descriptor N."""

import asyncio
import signal
import sys

import uvloop

from headrace.worker.process import serve


def main() -> int:
    """The exit code."""
    if len(sys.argv) != 3 or sys.argv[1] != "--fd":
        sys.stderr.write("a worker is started by `headrace serve`\n")
        return 2
    for number in (signal.SIGHUP, signal.SIGUSR2):  # the supervisor's; sent to all by name they would end it
        signal.signal(number, signal.SIG_IGN)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(int(sys.argv[2])))


if __name__ == "__main__":
    sys.exit(main())
