"""`python -m headrace.control --fd N`: started by the supervisor, with its end of the pair as descriptor N."""

import asyncio
import signal
import sys

from headrace.control.process import serve


def main() -> int:
    """The exit code."""
    if len(sys.argv) != 3 or sys.argv[1] != "--fd":
        sys.stderr.write("the control process is started by `headrace serve`\n")
        return 2
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # the supervisor's; sent to all by name it would end this one
    return asyncio.run(serve(int(sys.argv[2])))


if __name__ == "__main__":
    sys.exit(main())
