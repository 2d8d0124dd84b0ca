"""Heads of responses, and the rules on heads of requests."""

import h11
import pytest

from headrace.http.head import (
    CODING_UNKNOWN,
    FRAMING_TOO_LARGE,
    HEAD_TOO_LARGE,
    MAX_FIELDS,
    NO_BODY,
    TOO_MANY_FIELDS,
    Framing,
    parser_problem,
    read_framing,
    response_head,
)
from headrace.model.headers import Headers
from headrace.model.problem import Kind, Problem
from headrace.model.request import RequestHead

HOST = (b"host", b"a")


# ------------------------------------------------------------------------------------------------------ responses


def test_a_response_head() -> None:
    assert response_head(200, [(b"a", b"b"), (b"a", b"c d")]) == b"HTTP/1.1 200 OK\r\na: b\r\na: c d\r\n\r\n"
    assert response_head(204, []) == b"HTTP/1.1 204 No Content\r\n\r\n"


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (402, b"HTTP/1.1 402 Payment Required"),
        (413, b"HTTP/1.1 413 Content Too Large"),
        (431, b"HTTP/1.1 431 Request Header Fields Too Large"),
        (529, b"HTTP/1.1 529 Overloaded"),
        (599, b"HTTP/1.1 599 "),
    ],
)
def test_status_lines(status: int, line: bytes) -> None:
    assert response_head(status, []) == line + b"\r\n\r\n"


def test_an_independent_reader_agrees() -> None:
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("host", "a")]))
    reader.send(h11.EndOfMessage())
    fields = [(b"content-type", b"text/plain"), (b"x-empty", b""), (b"content-length", b"0")]
    reader.receive_data(response_head(503, fields))
    event = reader.next_event()
    assert isinstance(event, h11.Response)
    assert (event.status_code, list(event.headers)) == (503, fields)


@pytest.mark.parametrize("bad", [b"a\r\nb: c", b"a\nb", b"a\rb", b"a\0b", b"\r\n"])
def test_line_ends_and_nul_are_refused_and_values_not_repeated(bad: bytes) -> None:
    with pytest.raises(ValueError, match=r"header: x$"):
        response_head(200, [(b"good", b"secret"), (b"x", bad)])
    with pytest.raises(ValueError, match="CR, LF or NUL"):
        response_head(200, [(bad, b"x")])


# ------------------------------------------------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("fields", "version", "framing"),
    [
        ([HOST], "1.1", NO_BODY),
        ([HOST], "1.0", NO_BODY),
        ([(b"host", b"")], "1.1", NO_BODY),
        ([(b"host", b"[::1]:80")], "1.1", NO_BODY),
        ([HOST, (b"x", b"1"), (b"x", b"2")], "1.1", NO_BODY),
        ([HOST, (b"content-length", b"0")], "1.1", NO_BODY),
        ([HOST, (b"content-length", b"5")], "1.1", Framing(5)),
        ([HOST, (b"content-length", b"5"), (b"content-length", b"5")], "1.1", Framing(5)),
        ([HOST, (b"content-length", b"5"), (b"x", b"1"), (b"x", b"2")], "1.0", Framing(5)),
        ([HOST, (b"transfer-encoding", b"chunked")], "1.1", Framing(None)),
        ([HOST, (b"transfer-encoding", b"Chunked")], "1.1", Framing(None)),
        ([HOST, (b"content-length", b"5"), (b"expect", b"100-Continue")], "1.1", Framing(5, True)),
        ([HOST, (b"transfer-encoding", b"chunked"), (b"expect", b"100-continue")], "1.1", Framing(None, True)),
        ([HOST, (b"content-length", b"5"), (b"expect", b"100-continue")], "1.0", Framing(5)),
        ([HOST, (b"expect", b"100-continue")], "1.1", NO_BODY),
        ([HOST] + [(b"x%d" % n, b"") for n in range(MAX_FIELDS - 1)], "1.1", NO_BODY),
    ],
)
def test_framings(fields: Headers, version: str, framing: Framing) -> None:
    assert read_framing(RequestHead("POST", "/", "", fields), version) == framing


@pytest.mark.parametrize(
    ("fields", "version", "status", "word"),
    [
        ([], "1.1", 400, "Host"),
        ([], "1.0", 400, "Host"),
        ([], "0.9", 400, "Host"),
        ([HOST, HOST], "1.1", 400, "Host"),
        ([HOST, (b"host", b"b")], "1.1", 400, "Host"),
        ([(b"host", b"a/b")], "1.1", 400, "Host"),
        ([(b"host", b"a b")], "1.1", 400, "Host"),
        ([(b"host", b"a@b")], "1.1", 400, "Host"),
        ([(b"host", b"a\xff")], "1.1", 400, "Host"),
        ([HOST], "0.9", 505, "HTTP/1.1"),
        ([HOST], "2.0", 505, "HTTP/1.1"),
        ([HOST, (b"transfer-encoding", b"chunked"), (b"content-length", b"5")], "1.1", 400, "not both"),
        ([HOST, (b"transfer-encoding", b"chunked")], "1.0", 400, "HTTP/1.0"),
        ([HOST, (b"transfer-encoding", b"gzip, chunked")], "1.1", 501, "chunked"),
        ([HOST, (b"transfer-encoding", b"identity")], "1.1", 501, "chunked"),
        ([HOST, (b"transfer-encoding", b"")], "1.1", 501, "chunked"),
        ([HOST, (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"chunked")], "1.1", 501, "chunked"),
        ([HOST, (b"content-length", b"5"), (b"content-length", b"6")], "1.1", 400, "differ"),
        ([HOST, (b"content-length", b"+5")], "1.1", 400, "decimal"),
        ([HOST, (b"content-length", b"-5")], "1.1", 400, "decimal"),
        ([HOST, (b"content-length", b"5, 5")], "1.1", 400, "decimal"),
        ([HOST, (b"content-length", b"")], "1.1", 400, "decimal"),
        ([HOST, (b"content-length", "٥".encode())], "1.1", 400, "decimal"),
        ([HOST, (b"content-length", b"9" * 21)], "1.1", 400, "decimal"),
        ([HOST, (b"expect", b"200-ok")], "1.1", 417, "Expect"),
        ([HOST, (b"transfer-encoding", b"chunked"), (b"expect", b"x")], "1.1", 417, "Expect"),
        ([HOST] + [(b"x%d" % n, b"") for n in range(MAX_FIELDS)], "1.1", 431, "headers"),
    ],
)
def test_refused_heads(fields: Headers, version: str, status: int, word: str) -> None:
    problem = read_framing(RequestHead("POST", "/", "", fields), version)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.http_status) == (Kind.BAD_REQUEST, status)
    assert word in problem.message


@pytest.mark.parametrize(
    ("reason", "status", "word"),
    [
        ("Invalid `Transfer-Encoding` header value", 501, "chunked"),
        ("Request has invalid `Transfer-Encoding`", 501, "chunked"),
        ("Empty Transfer-Encoding", 501, "chunked"),
        ("Transfer-Encoding can't be present with Content-Length", 400, "not both"),
        ("Content-Length can't be present with Transfer-Encoding", 400, "not both"),
        ("Duplicate Content-Length", 400, "exactly one Content-Length"),
        ("Invalid HTTP version", 505, "HTTP/1.1"),
        ("Pause on PRI/Upgrade", 505, "HTTP/2"),
        ("Invalid char in url path", 400, "target"),
        ("Invalid method encountered", 400, "TLS"),
        ("Invalid header token", 400, "header line"),
        ("Unexpected space after start line", 400, "header line"),
        ("something new", 400, "HTTP/1.1"),
    ],
)
def test_what_llhttp_says(reason: str, status: int, word: str) -> None:
    problem = parser_problem(reason, in_body=False)
    assert (problem.kind, problem.http_status) == (Kind.BAD_REQUEST, status)
    assert word in problem.message


def test_what_llhttp_says_of_a_body_is_about_the_body() -> None:
    problem = parser_problem("Invalid HTTP version", in_body=True)
    assert problem.http_status == 400
    assert "chunked body" in problem.message
    assert problem.detail == "Invalid HTTP version"


def test_fixed_problems() -> None:
    statuses = [item.http_status for item in (HEAD_TOO_LARGE, TOO_MANY_FIELDS, FRAMING_TOO_LARGE, CODING_UNKNOWN)]
    assert statuses == [431, 431, 431, 501]
