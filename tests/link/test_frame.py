"""Messages as bytes: they come out as they went in, however the bytes are cut."""

import msgspec
import pytest

from headrace.link.frame import FrameError, Unframer, frame
from headrace.link.messages import Drain, End, FromSupervisor, Gauges, Reload

DECODER = msgspec.msgpack.Decoder(FromSupervisor)
SOME: list[object] = [Drain(), Reload(), Drain(replaced=True), End()]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_messages_come_whole_and_in_order_however_they_are_cut(size: int) -> None:
    data = b"".join(map(frame, SOME))
    unframer = Unframer(DECODER)
    found: list[object] = []
    for at in range(0, len(data), size):
        found += unframer.feed(data[at : at + size])
    assert found == SOME


def test_what_is_no_known_message_is_a_fault() -> None:
    with pytest.raises(FrameError, match="no message that is known"):
        Unframer(DECODER).feed(frame(Gauges(open=1)))
    with pytest.raises(FrameError, match="no message that is known"):
        Unframer(DECODER).feed(b"\0\0\0\1\xc1")


def test_a_length_that_no_message_has_is_a_fault_before_any_byte_of_it_is_kept() -> None:
    with pytest.raises(FrameError, match="larger than"):
        Unframer(DECODER).feed(b"\xff\xff\xff\xff")


def test_a_message_that_is_too_large_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.link.frame.MOST_BYTES", 10)
    with pytest.raises(FrameError, match="larger than 10"):
        frame(Gauges(open=1))


def test_a_member_of_a_later_version_is_passed_over() -> None:
    """A roll may bring a worker of a later version to an older supervisor."""
    data = msgspec.msgpack.encode({"type": "drain", "replaced": True, "later": 1})
    assert Unframer(DECODER).feed(len(data).to_bytes(4, "big") + data) == [Drain(replaced=True)]
