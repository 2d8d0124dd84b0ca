"""Does errands at a database, as a process of its own: what it is told and what it answers stands in `errands`."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from headrace.link.frame import Unframer, frame
from headrace.state.clerk import Clerk
from headrace.state.errands import Answer, Done, Failed, Opening, Order
from headrace.state.errors import StateError

PIECE: Final = 1 << 16
_DECODER: Final[msgspec.msgpack.Decoder[Opening | Order]] = msgspec.msgpack.Decoder(Opening | Order)

Tell = Callable[[Answer], None]


def main() -> None:
    """Do what comes in on stdin, to its end."""
    # Ctrl-C is for the asker, who then closes stdin; this process has nothing to say about it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    messages = _messages()
    opening = next(messages)
    assert isinstance(opening, Opening)
    with asyncio.Runner() as runner:
        clerk = Clerk(opening)
        try:
            for order in messages:
                assert not isinstance(order, Opening)
                _tell(runner.run(_done(clerk, order, _tell)))
        finally:
            with suppress(StateError):
                runner.run(clerk.close())


async def _done(clerk: Clerk, order: Order, tell: Tell) -> Done | Failed:
    """Do the order, tell its answers as they come; the last of them."""
    try:
        async for answer in clerk.answers(order):
            tell(answer)
    except StateError as error:
        return Failed(str(error))
    return Done()


def _messages() -> Iterator[Opening | Order]:
    unframer = Unframer(_DECODER)
    while data := os.read(sys.stdin.fileno(), PIECE):
        yield from unframer.feed(data)


def _tell(answer: Answer) -> None:
    sys.stdout.buffer.write(frame(answer))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
