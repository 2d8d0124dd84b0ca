import pytest

from headrace.model.channel import BaseUrl
from headrace.model.request import UpstreamRequest
from headrace.upstream.target import UnsafeHeadError, head_bytes

BASE = BaseUrl("https", "api.example.org", 443, "/v1")


def request(method: str = "POST", path: str = "/x", query: str = "", *headers: tuple[bytes, bytes]) -> UpstreamRequest:
    return UpstreamRequest(method, path, query, list(headers), (b"ab", memoryview(b"c")) if method == "POST" else ())


def test_a_head() -> None:
    assert head_bytes(BASE, request("POST", "/x", "a=b", (b"accept", b"*/*"), (b"accept", b"y"))) == (
        b"POST /v1/x?a=b HTTP/1.1\r\nhost: api.example.org\r\ncontent-length: 3\r\naccept: */*\r\naccept: y\r\n\r\n"
    )


def test_a_head_without_headers_and_body() -> None:
    v6 = BaseUrl("http", "::1", 8080, "")
    assert head_bytes(v6, request("GET")) == b"GET /x HTTP/1.1\r\nhost: [::1]:8080\r\n\r\n"
    empty = UpstreamRequest("POST", "/x", "", [], ())
    assert b"content-length: 0\r\n" in head_bytes(BASE, empty)


def test_framing_and_host_are_ours() -> None:
    own = (b"host", b"content-length", b"transfer-encoding", b"connection", b"expect", b"upgrade", b"keep-alive")
    head = head_bytes(BASE, request("POST", "/x", "", *((name, b"evil") for name in own)))
    assert b"evil" not in head


@pytest.mark.parametrize(
    "bad",
    [
        request("POST", "/x y"),
        request("POST", "/x\r\nevil: 1"),
        request("POST", "/x\n"),
        request("POST", "/\u00e9"),
        request("POST", "/x", "a b"),
        request("PO ST"),
        request("POST", "/x", "", (b"a", b"1\r\nevil: 1")),
        request("POST", "/x", "", (b"a", b"1\n")),
        request("POST", "/x", "", (b"a", b"1\r")),
        request("POST", "/x", "", (b"a", b"1\0")),
        request("POST", "/x", "", (b"a\r\nb", b"1")),
    ],
)
def test_nothing_can_begin_a_line_of_its_own(bad: UpstreamRequest) -> None:
    with pytest.raises(UnsafeHeadError):
        head_bytes(BASE, bad)
