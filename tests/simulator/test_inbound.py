import httptools
import pytest

from headrace.simulator.inbound import Inbound
from headrace.simulator.request import Request

CHUNKED = (
    b"POST /v1/x?q=%E6 HTTP/1.1\r\nHost: a\r\nX-Two: 1\r\nx-two: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nX-Trailer: t\r\n\r\n"
)
PLAIN = b"GET http://host:80/models?a=1 HTTP/1.0\r\nHost: a\r\n\r\n"


class Heard:
    def __init__(self) -> None:
        self.heads: list[Request] = []
        self.parts: list[bytes] = []
        self.whole: list[Request] = []
        self.inbound = Inbound(self.heads.append, self.parts.append, self.whole.append)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_requests_are_read_whatever_their_pieces(size: int) -> None:
    heard = Heard()
    data = CHUNKED + PLAIN
    for at in range(0, len(data), size):
        heard.inbound.feed(data[at : at + size])
    first, second = heard.whole
    assert (first.method, first.target, first.version, first.body) == ("POST", "/v1/x?q=%E6", "1.1", b"abcde")
    assert first.headers == (("Host", "a"), ("X-Two", "1"), ("x-two", "2"), ("Transfer-Encoding", "chunked"))
    assert (second.method, second.target, second.version, second.body) == ("GET", "/models?a=1", "1.0", b"")
    assert [head.body for head in heard.heads] == [b"", b""]
    assert b"".join(heard.parts) == b"abcde"


def test_the_head_comes_before_the_body() -> None:
    heard = Heard()
    heard.inbound.feed(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
    assert (len(heard.heads), heard.parts, heard.whole) == (1, [b"ab"], [])


def test_a_bare_origin_is_the_root() -> None:
    heard = Heard()
    heard.inbound.feed(b"GET http://host HTTP/1.1\r\nHost: a\r\n\r\n")
    assert heard.whole[0].target == "/"


def test_what_is_not_http_is_an_error() -> None:
    with pytest.raises(httptools.HttpParserError):
        Heard().inbound.feed(b"\x16\x03\x01 hello\r\n\r\n")


def test_an_upgrade_is_a_request_and_then_no_http() -> None:
    heard = Heard()
    with pytest.raises(httptools.HttpParserUpgrade):
        heard.inbound.feed(
            b"GET /v1/responses HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
    assert heard.whole[0].path == "/v1/responses"
