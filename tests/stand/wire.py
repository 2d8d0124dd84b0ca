"""Bytes of the wire that tests send and recognise: requests, the reference streams, and their parts."""

import json
from collections.abc import Mapping

KEY = "sk-hr-test-0123456789abcdef"
BRISK = "sk-hr-brisk-0123456789abcdef"
"""A key whose keepalives come after 50 ms: several in a gap of 0.3 s, and one even on a busy machine."""
CHAT_PATH = "/v1/chat/completions"

_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up", "system_fingerprint": None}


def chunk(delta: object, finish: str | None = None, index: int = 0, **members: object) -> str:
    """One chat event."""
    value = {**_CHUNK, "choices": [{"index": index, "delta": delta, "finish_reason": finish}], **members}
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


C0 = chunk({"role": "assistant", "content": "A"})
C1 = chunk({"content": "北"})
C2 = chunk({"content": "C"})
C3 = chunk({}, "stop")
USAGE = {"prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4}
C4 = f"data: {json.dumps({**_CHUNK, 'choices': [], 'usage': USAGE})}\n\n"
DONE = "data: [DONE]\n\n"
CHAT = [C0, C1, C2, C3, C4, DONE]
"""A chat stream of three deltas, with usage. Its text is TEXT."""
TEXT = "A北C"
ROLE_ONLY = chunk({"role": "assistant", "content": ""})
KEEPALIVE = b": hopbase-keepalive\n\n"


def error_event(code: object, message: str = "no", **members: object) -> str:
    """An upstream's error event."""
    return (
        f"data: {json.dumps({'error': {'message': message, 'type': None, 'param': None, 'code': code, **members}})}\n\n"
    )


def chat(model: str, *, stream: bool = True, usage: bool = False, **members: object) -> dict[str, object]:
    """The body of a chat request; `usage`: the client asks for it, so that nothing is removed from the stream."""
    body: dict[str, object] = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    if stream:
        body["stream"] = True
    if usage:
        body["stream_options"] = {"include_usage": True}
    return body | members


def request(
    body: object = b"",
    *,
    path: str = CHAT_PATH,
    method: str = "POST",
    version: str = "1.1",
    key: str | None = KEY,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """One request; `headers` come last and replace those that are made here."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"host": "gateway"}
    if content or method == "POST":
        lines |= {"content-type": "application/json", "content-length": str(len(content))}
    if key is not None:
        lines["authorization"] = f"Bearer {key}"
    lines |= headers or {}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/{version}\r\n{head}\r\n".encode("latin-1") + content


def without_keepalives(body: bytes) -> bytes:
    """A stream's body without what the gateway inserted as keepalives, in their block form."""
    return body.replace(KEEPALIVE, b"")


def events(body: bytes) -> list[bytes]:
    """The blocks of a stream with LF line ends, each with its blank line; the last may lack it."""
    blocks = body.split(b"\n\n")
    whole = [block + b"\n\n" for block in blocks[:-1]]
    return [*whole, blocks[-1]] if blocks[-1] else whole


def texts(body: bytes) -> str:
    """What the chat deltas of a stream say, together."""
    said = ""
    for event in events(body):
        if event.startswith(b"data: {"):
            value = json.loads(event[6:])
            said += "".join(choice["delta"].get("content") or "" for choice in value.get("choices", ()))
    return said


def error_in(body: bytes) -> dict[str, object]:
    """The error object in an error reply, or in a stream's last event."""
    last = events(body)[-1].removeprefix(b"data: ")
    value = json.loads(last)
    assert set(value) == {"error"}, value
    error = value["error"]
    assert isinstance(error, dict)
    return error
