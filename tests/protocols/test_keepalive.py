"""A comment and a blank line, or the comment alone for those whose readers dispatch blank lines."""

import pytest

from headrace.model.request import RequestHead
from headrace.protocols.keepalive import comment_keepalive, is_go


def head(*headers: tuple[bytes, bytes]) -> RequestHead:
    return RequestHead("POST", "/", "", list(headers))


@pytest.mark.parametrize(
    ("headers", "go"),
    [
        ([], False),
        ([(b"user-agent", b"OpenAI/Python 3.57.0"), (b"x-stainless-lang", b"python")], False),
        ([(b"x-stainless-lang", b"go")], True),
        ([(b"x-stainless-lang", b"Go")], True),
        ([(b"user-agent", b"Go-http-client/1.1")], True),
        ([(b"user-agent", b"Go-http-client/2.0")], True),
        ([(b"user-agent", b"my Go-http-client/1.1")], False),
        ([(b"x-goog-api-client", b"google-genai-sdk/1.0 gl-go/go1.24")], True),
        ([(b"x-goog-api-client", b"google-genai-sdk/1.0 gl-python/3.11")], False),
    ],
)
def test_go_clients(headers: list[tuple[bytes, bytes]], go: bool) -> None:
    assert is_go(head(*headers)) is go
    assert comment_keepalive(False, head(*headers), "ka") == (b": ka\n" if go else b": ka\n\n")
    assert comment_keepalive(True, head(*headers), "ka") == b": ka\n", "once an id was seen the comment stands alone"


def test_the_comment_is_the_operators() -> None:
    assert comment_keepalive(False, head(), "é") == ": é\n\n".encode()
