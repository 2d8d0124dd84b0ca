"""`python -m headrace.supervisor --fd N`: what `headrace serve` goes on as, with the handover as descriptor N."""

import asyncio
import sys

from headrace.link.channel import adopted
from headrace.supervisor.handover import take_over
from headrace.supervisor.supervisor import Supervisor


async def _run(descriptor: int) -> int:
    handover, lock, sockets = take_over(descriptor)

    def announce() -> None:
        sys.stdout.write("".join(f"{line}\n" for line in handover.announcement))
        sys.stdout.flush()

    with adopted(handover.link) as link:
        try:
            return await Supervisor(handover.plan, sockets, link, _say, announce).run()
        finally:
            sockets.close()
            lock.close()


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main() -> int:
    """The exit code."""
    if len(sys.argv) != 3 or sys.argv[1] != "--fd":
        sys.stderr.write("the supervisor is what `headrace serve` goes on as\n")
        return 2
    return asyncio.run(_run(int(sys.argv[2])))


if __name__ == "__main__":
    sys.exit(main())
