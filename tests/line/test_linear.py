"""The relay's work grows as a stream does and no faster, whatever the pieces in which it comes."""

import time
from collections.abc import Callable

from tests.relay.driver import Client, data

PIECE = 1024
TRIES = 3


def work(run: Callable[[int], None], size: int) -> float:
    """Seconds of the processor that it takes; the least of some tries, since others disturb it."""
    found = []
    for _ in range(TRIES):
        began = time.process_time()
        run(size)
        found.append(time.process_time() - began)
    return min(found)


def one_long_line(pieces: int) -> None:
    """One event, a kilobyte at a time."""
    client = Client().attempt()
    client.feed(b'data: {"choices":[{"index":0,"delta":{"content":"')
    piece = b"x" * PIECE
    for _ in range(pieces):
        client.feed(piece)
    client.feed(b'"},"finish_reason":null}]}\n\n')
    assert client.trace.events == 1


def many_events(count: int) -> None:
    """Events of some 200 bytes, ten in a read."""
    client = Client().attempt()
    event = data("x" * 120)
    for _ in range(count // 10):
        client.feed(event * 10)
    assert client.trace.events == count


def test_a_line_of_many_pieces_is_read_in_linear_time() -> None:
    """Case B077: where everything is looked at again for each piece, eight times the size is 64 times the work."""
    assert work(one_long_line, 16_000) <= 24 * work(one_long_line, 2_000)


def test_many_events_are_read_in_linear_time() -> None:
    """Case B077."""
    assert work(many_events, 16_000) <= 24 * work(many_events, 2_000)
