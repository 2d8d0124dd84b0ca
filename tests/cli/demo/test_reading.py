"""What chat events say."""

import msgspec
import pytest

from headrace.cli.demo.reading import ChatReading, Said, Sort

CHAT = ChatReading()


def chunk(**delta: object) -> bytes:
    return b"data: " + msgspec.json.encode({"choices": [{"index": 0, "delta": delta}]}) + b"\n\n"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (chunk(content="water"), Said(Sort.OUTPUT, "water")),
        (chunk(role="assistant", content=""), Said(Sort.OTHER)),
        (chunk(content=None), Said(Sort.OTHER)),
        (b'data: {"choices":[],"usage":{"total_tokens":1}}\n\n', Said(Sort.OTHER)),
        (b"data: [DONE]\n\n", Said(Sort.LAST)),
        (b": hopbase-keepalive\n\n", Said(Sort.KEEPALIVE)),
        (b'data: {"error":{"message":"cut"}}\n\n', Said(Sort.ERROR)),
    ],
)
def test_every_sort_of_event(event: bytes, said: Said) -> None:
    assert CHAT.said(event) == said


def test_what_is_not_of_the_protocol() -> None:
    with pytest.raises(ValueError, match="data line"):
        CHAT.said(b"event: ping\n\n")
    with pytest.raises(msgspec.MsgspecError):
        CHAT.said(b"data: <html>\n\n")


def test_the_request_asks_for_a_stream_with_usage() -> None:
    body = msgspec.json.decode(CHAT.body("m", "hi"))
    assert (body["model"], body["stream"], body["stream_options"]) == ("m", True, {"include_usage": True})
    assert CHAT.headers("sk")["authorization"] == "Bearer sk"
