"""One event says what the standard says it does."""

import pytest

from headrace.sse.event import Event, missing_end, parse
from tests.wire.reference import boundaries


@pytest.mark.parametrize(
    ("block", "event"),
    [
        (b"data: x\n\n", Event(b"", b"x", False, True)),
        (b"data:x\n\n", Event(b"", b"x", False, True)),
        (b"data:  x\n\n", Event(b"", b" x", False, True)),
        (b"data\n\n", Event(b"", b"", False, True)),
        (b"data:\n\n", Event(b"", b"", False, True)),
        (b"data: a\ndata: b\n\n", Event(b"", b"a\nb", False, True)),
        (b"data: a\r\ndata: b\rdata: c\n\r\n", Event(b"", b"a\nb\nc", False, True)),
        (b"event: ping\ndata: {}\n\n", Event(b"ping", b"{}", False, True)),
        (b"event: a\nevent: b\n\n", Event(b"b", None, False, True)),
        (b"id: 7\ndata: x\n\n", Event(b"", b"x", True, True)),
        (b"id\n\n", Event(b"", None, True, True)),
        (b"retry: 3000\n\n", Event(b"", None, False, True)),
        (b": comment\n\n", Event(b"", None, False, False)),
        (b":\ndata: x\n: y\n\n", Event(b"", b"x", False, True)),
        (b"\n", Event(b"", None, False, False)),
        (b"datax: 1\n Data: 2\n\n", Event(b"", None, False, True)),
        ("data: \u2028\u0085\x0b\x0c\n\n".encode(), Event(b"", "\u2028\u0085\x0b\x0c".encode(), False, True)),
    ],
)
def test_parse(block: bytes, event: Event) -> None:
    assert parse(block) == event


@pytest.mark.parametrize(
    ("rest", "end"),
    [
        (b"data: x", b"\n\n"),
        (b"data: x\n", b"\n"),
        (b"data: x\r\n", b"\r\n"),
        (b"data: x\r", b"\r"),
        (b"event: y\r\ndata: x", b"\r\n\r\n"),
        (b"event: y\rdata: x", b"\r\r"),
        (b"event: y\ndata: x", b"\n\n"),
    ],
)
def test_missing_end(rest: bytes, end: bytes) -> None:
    assert missing_end(rest) == end
    assert boundaries(rest + end) == [len(rest + end)]
