"""What events say, in each protocol."""

import msgspec
import pytest

from headrace.cli.reading import (
    READINGS,
    ChatReading,
    GeminiReading,
    MessagesReading,
    Reading,
    ResponsesReading,
    Said,
    Sort,
)
from headrace.model.wire import WireProtocol

CHAT = ChatReading()


def event(**data: object) -> bytes:
    return b"data: " + msgspec.json.encode(data) + b"\n\n"


def chunk(**delta: object) -> bytes:
    return event(choices=[{"index": 0, "delta": delta}])


@pytest.mark.parametrize(
    ("reading", "data", "said"),
    [
        (CHAT, chunk(content="water"), Said(Sort.OUTPUT, "water")),
        (CHAT, chunk(refusal="no"), Said(Sort.OUTPUT, "no")),
        (CHAT, chunk(role="assistant", content=""), Said(Sort.OTHER)),
        (CHAT, chunk(content=None), Said(Sort.OTHER)),
        (CHAT, b'data: {"choices":[],"usage":{"total_tokens":1}}\n\n', Said(Sort.OTHER)),
        (CHAT, b"data: [DONE]\n\n", Said(Sort.LAST)),
        (CHAT, b'data: {"error":{"message":"cut"}}\n\n', Said(Sort.ERROR, "cut")),
        (ResponsesReading(), event(type="response.output_text.delta", delta="w"), Said(Sort.OUTPUT, "w")),
        (ResponsesReading(), event(type="response.refusal.delta", delta="no"), Said(Sort.OUTPUT, "no")),
        (ResponsesReading(), event(type="response.created", response={"error": None}), Said(Sort.OTHER)),
        (ResponsesReading(), event(type="response.other.delta", delta={"a": 1}), Said(Sort.OTHER)),
        (ResponsesReading(), event(type="response.completed"), Said(Sort.LAST)),
        (ResponsesReading(), event(type="response.incomplete"), Said(Sort.LAST)),
        (
            ResponsesReading(),
            event(type="response.failed", response={"error": {"message": "cut"}}),
            Said(Sort.ERROR, "cut"),
        ),
        (ResponsesReading(), event(type="response.failed"), Said(Sort.ERROR)),
        (ResponsesReading(), event(type="error", message="cut"), Said(Sort.ERROR, "cut")),
        (ResponsesReading(), event(type="error", error={"message": "cut"}), Said(Sort.ERROR, "cut")),
        (MessagesReading(), event(type="content_block_delta", delta={"text": "w"}), Said(Sort.OUTPUT, "w")),
        (MessagesReading(), event(type="content_block_delta", delta={"partial_json": "{"}), Said(Sort.OTHER)),
        (MessagesReading(), event(type="content_block_delta"), Said(Sort.OTHER)),
        (MessagesReading(), event(type="ping"), Said(Sort.OTHER)),
        (MessagesReading(), event(type="message_stop"), Said(Sort.LAST)),
        (MessagesReading(), event(type="error", error={"message": "cut"}), Said(Sort.ERROR, "cut")),
        (MessagesReading(), event(type="error"), Said(Sort.ERROR)),
        (
            GeminiReading(),
            event(candidates=[{"content": {"parts": [{"text": "w"}, {"text": "x"}]}}]),
            Said(Sort.OUTPUT, "wx"),
        ),
        (
            GeminiReading(),
            event(candidates=[{"content": {"parts": [{"text": "w", "thought": True}]}}]),
            Said(Sort.OTHER),
        ),
        (GeminiReading(), event(candidates=[{"finishReason": "STOP"}]), Said(Sort.OTHER)),
        (GeminiReading(), event(error={"code": 503, "message": "cut"}), Said(Sort.ERROR, "cut")),
    ],
)
def test_every_sort_of_event(reading: Reading, data: bytes, said: Said) -> None:
    assert reading.said(data) == said


@pytest.mark.parametrize("reading", READINGS.values(), ids=lambda one: one.protocol.value)
@pytest.mark.parametrize("data", [b": hopbase-keepalive\n\n", b"\r\n\r\n", b": only a line\n"])
def test_what_dispatches_nothing_keeps_alive(reading: Reading, data: bytes) -> None:
    assert reading.said(data) == Said(Sort.KEEPALIVE)


@pytest.mark.parametrize("reading", READINGS.values(), ids=lambda one: one.protocol.value)
def test_what_is_not_of_the_protocol(reading: Reading) -> None:
    with pytest.raises(ValueError, match="data line"):
        reading.said(b"event: ping\n\n")
    with pytest.raises(msgspec.MsgspecError):
        reading.said(b"data: <html>\n\n")


def test_each_asks_for_a_stream() -> None:
    bodies = {protocol: msgspec.json.decode(one.body("m", "hi")) for protocol, one in READINGS.items()}
    gemini = bodies.pop(WireProtocol.GEMINI)
    assert all(body["model"] == "m" and body["stream"] is True for body in bodies.values())
    assert bodies[WireProtocol.CHAT]["stream_options"] == {"include_usage": True}
    assert bodies[WireProtocol.RESPONSES]["store"] is False
    assert "model" not in gemini
    assert GeminiReading().path("a/b:c d") == "/v1beta/models/a/b:c%20d:streamGenerateContent?alt=sse"


def test_each_sends_the_key_as_its_sdk_does() -> None:
    assert {protocol.value: next(iter(one.headers("sk").items())) for protocol, one in READINGS.items()} == {
        "responses": ("authorization", "Bearer sk"),
        "chat": ("authorization", "Bearer sk"),
        "messages": ("x-api-key", "sk"),
        "gemini": ("x-goog-api-key", "sk"),
    }
