import pytest

from headrace.model.request import ReplyHead
from headrace.upstream.framing import Framing, MalformedError, ends_clean, framing_of, wire_size


def test_framing() -> None:
    assert framing_of(ReplyHead(200, [])) is Framing.NONE
    assert framing_of(ReplyHead(200, [(b"content-length", b"1")])) is Framing.COUNTED
    assert framing_of(ReplyHead(200, [(b"x", b"1"), (b"transfer-encoding", b" Chunked ")])) is Framing.CHUNKED


@pytest.mark.parametrize("headers", [[(b"transfer-encoding", b"gzip, chunked")]])
def test_refusals(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(MalformedError):
        framing_of(ReplyHead(200, headers))


def test_clean_ends() -> None:
    for tail in (b"0\r\n\r\n", b"\r\n", b"\n", b"x: y\r\n\r\n"):
        assert ends_clean(Framing.CHUNKED, tail)
    assert not ends_clean(Framing.CHUNKED, b"0\r\n\r\n\r\n")
    assert not ends_clean(Framing.NONE, b"HTTP/1.1 204 No\r\n\r\n\r\n")
    assert ends_clean(Framing.COUNTED, b"anything")


def test_sizes() -> None:
    assert wire_size([(b"a", b"bc"), (b"d", b"")]) == len(b"a: bc\r\nd: \r\n")
