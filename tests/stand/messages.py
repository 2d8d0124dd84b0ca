"""What tests of Messages share: the configuration of their stand, the reference stream, and requests."""

import json

from tests.stand.client import Reply
from tests.stand.settings import CONFIG as CHAT_CONFIG
from tests.stand.stand import Stand
from tests.stand.wire import KEY, request

CONFIG = CHAT_CONFIG.replace("protocols: [chat]", "protocols: [messages]")
PATH = "/v1/messages"
ERROR = (
    b'event: error\ndata: {"type":"error","error":{"type":"api_error",'
    b'"message":"Response stream interrupted, please retry"}}\n\n'
)


def event(name: str, **members: object) -> str:
    """One event."""
    data = json.dumps({"type": name, **members}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {data}\n\n"


def text(said: str, index: int = 0) -> str:
    """A text_delta."""
    return event("content_block_delta", index=index, delta={"type": "text_delta", "text": said})


def error_event(kind: str, message: str = "no") -> str:
    """An upstream's error event."""
    return event("error", error={"type": kind, "message": message})


_MESSAGE: dict[str, object] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "up",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 1},
}
START = event("message_start", message=_MESSAGE)
BLOCK = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
STOP_BLOCK = event("content_block_stop", index=0)
DELTA = event("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage={"output_tokens": 3})
STOP = event("message_stop")
PING = 'event: ping\ndata: {"type": "ping"}\n\n'
ANTH = [START, BLOCK, text("A"), text("北"), text("C"), STOP_BLOCK, DELTA, STOP]
"""The reference stream of the numbered cases. Its text is A北C."""


def message(model: str, *, stream: bool = True, **members: object) -> dict[str, object]:
    """The body of a request."""
    body: dict[str, object] = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    return body | ({"stream": True} if stream else {}) | members


def ask(stand: Stand, body: object, path: str = PATH, **how: object) -> Reply:
    """One request, with the key where Anthropic's older SDKs and curl put it."""
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01"} | dict(how.pop("headers", {}))  # type: ignore[call-overload]
    with stand.connect() as client:
        client.send(request(body, path=path, key=None, headers=headers, **how))  # type: ignore[arg-type]
        client.head(method=str(how.get("method", "POST")))
        return client.rest()


def error_in(reply: Reply) -> tuple[str, str]:
    """(type, message) of an error reply, whose shape and ids are checked."""
    value = json.loads(reply.body)
    assert set(value) == {"type", "error", "request_id"} and value["type"] == "error"
    assert value["request_id"] == reply.id
    return value["error"]["type"], value["error"]["message"]
