"""Looking fields up in a head, doubled ones too, and what is left of a head that is kept for long."""

import pytest

from headrace.model.headers import Headers
from headrace.model.request import Call, ReplyHead, RequestHead, media_type
from headrace.model.wire import Asked, WireProtocol

ONCE: Headers = [(b"a", b"1"), (b"b", b"")]
TWICE: Headers = [(b"a", b"1"), (b"b", b""), (b"a", b"2")]


@pytest.mark.parametrize("headers", [ONCE, TWICE])
def test_look_ups(headers: Headers) -> None:
    head = RequestHead("POST", "/", "", headers)
    assert (head.header(b"a"), head.header(b"b"), head.header(b"c")) == (b"1", b"", None)
    assert head.every(b"a") == ([b"1"] if headers is ONCE else [b"1", b"2"])
    assert (head.every(b"b"), head.every(b"c")) == ([b""], [])
    assert head.index() == {b"a": b"1", b"b": b""}


def test_what_is_not_kept_is_not_found() -> None:
    head = ReplyHead(200, [*TWICE, (b"content-type", b"Text/Event-Stream; charset=utf-8")])
    assert head.header(b"a") == b"1"
    head.keep([(b"b", b"3")])
    assert (head.headers, head.header(b"a"), head.every(b"b")) == ([(b"b", b"3")], None, [b"3"])
    assert (head.status, head.media_type) == (200, "text/event-stream")


@pytest.mark.parametrize(
    ("value", "media"), [(b"", ""), (b"A/B", "a/b"), (b" a/b ;c", "a/b"), (b"\xe9", "é"), (b";", "")]
)
def test_media_types(value: bytes, media: str) -> None:
    assert media_type(value) == media
    assert ReplyHead(200, [(b"content-type", value)]).media_type == media


@pytest.mark.parametrize("asked", list(Asked))
def test_streams(asked: Asked) -> None:
    call = Call(WireProtocol.CHAT, "chat.completions", "m", asked, b"")
    assert call.stream is (asked in {Asked.EVENTS, Asked.ARRAY})
