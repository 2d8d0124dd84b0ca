"""Chunk frames, as an independent reader sees them."""

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.http.chunk import FRAME, LAST, frame, frame_parts


def test_the_wire_form() -> None:
    assert frame(b"hello") == b"5\r\nhello\r\n"
    assert frame(b"x" * 300) == b"12c\r\n" + b"x" * 300 + b"\r\n"
    assert frame(b"ok") == FRAME % (2, b"ok")
    assert LAST == b"0\r\n\r\n"


def test_nothing_is_no_frame() -> None:
    assert frame(b"") == b""
    with pytest.raises(ValueError, match="end the body"):
        frame_parts(b"")


@given(st.lists(st.binary(min_size=1, max_size=5000), max_size=5))
def test_a_reader_gets_the_same_bytes(pieces: list[bytes]) -> None:
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
    reader.send(h11.EndOfMessage())
    reader.receive_data(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    for piece in pieces:
        assert b"".join(frame_parts(piece)) == frame(piece)
        reader.receive_data(frame(piece))
    reader.receive_data(LAST)
    body = b""
    while type(event := reader.next_event()) is not h11.EndOfMessage:
        if isinstance(event, h11.Data):
            body += bytes(event.data)
    assert body == b"".join(pieces)
