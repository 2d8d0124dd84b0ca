"""What tests of Gemini share: the configuration of their stand, the reference stream, and requests."""

import json

from tests.stand.client import Reply
from tests.stand.stand import Stand
from tests.stand.wire import KEY, request

CONFIG = """
server: {listen: 127.0.0.1:0, max_body: 1MiB, drain_notice: 0s, drain: 5s}
state: {directory: $STATE}
stream:
  keepalive: 100ms
  first_event: 5s
  stall: 5s
  stall_with_pings: 10s
  open: 10s
  reply: 5s
  total: 30s
  end_grace: 300ms
channels:
  ch1:
    base_url: $CH1/v1beta
    allow_http: true
    protocols: [gemini]
    credentials: [{name: main, secret: sk-upstream-1}]
  ch2:
    base_url: $CH2/v1
    allow_http: true
    protocols: [gemini]
    priority: 1
    credentials: [{name: main, secret: sk-upstream-2}]
models:
  one-*: {routes: [{channel: ch1}], max_attempts: 1}
  pair-*: {routes: [{channel: ch1}, {channel: ch2}], max_attempts: 2}
  early-*: {routes: [{channel: ch1}], max_attempts: 1, early_open: 50ms, early_open_cold: 100ms}
  early-pair-*: {routes: [{channel: ch1}, {channel: ch2}], max_attempts: 2, early_open: 50ms, early_open_cold: 100ms}
  held-*: {routes: [{channel: ch1}, {channel: ch2}], max_attempts: 2, commit: first_output}
  stalling-*: {routes: [{channel: ch1}], max_attempts: 1, stall: 400ms, stall_with_pings: 800ms}
  small-*: {routes: [{channel: ch1}], max_attempts: 1, max_event: 64KiB}
  exact: {routes: [{channel: ch1}], max_output: 65536}
  org/renamed:x: {routes: [{channel: ch1, upstream_model: "up/stream@1"}]}
keys:
  - {name: dev, secret: sk-hr-test-0123456789abcdef}
"""


def chunk(text: str | None = None, finish: str | None = None, tokens: int | None = None, **members: object) -> str:
    """One chunk as JSON; `tokens`: the running total of output, 4 of input beside it."""
    candidate: dict[str, object] = {"index": 0}
    if text is not None:
        candidate["content"] = {"parts": [{"text": text}], "role": "model"}
    if finish is not None:
        candidate["finishReason"] = finish
    value: dict[str, object] = {"candidates": [candidate]} if text is not None or finish is not None else {}
    if tokens is not None:
        value["usageMetadata"] = {"promptTokenCount": 4, "candidatesTokenCount": tokens, "totalTokenCount": 4 + tokens}
    return json.dumps(value | {"modelVersion": "up", "responseId": "r"} | members, ensure_ascii=False)


def event(payload: str, end: str = "\r\n") -> str:
    """One server-sent event."""
    return f"data: {payload}{end}{end}"


PAYLOADS = [chunk("A", tokens=1), chunk("北", tokens=2), chunk("C", "STOP", 3)]
GEM = [event(payload) for payload in PAYLOADS]
"""The reference stream: three chunks, the last with STOP, usage in each. Its text is `A北C`."""
ARRAY = ["[" + PAYLOADS[0], "\r\n,\r\n" + PAYLOADS[1], "\r\n,\r\n" + PAYLOADS[2], "\r\n]\r\n"]
"""The same as a streamed array."""
KEEPALIVE = b"\r\n\r\n"
BODY = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def error(code: object, status: str = "UNAVAILABLE", **members: object) -> str:
    """An upstream's error as JSON."""
    return json.dumps({"error": {"code": code, "message": "no", "status": status} | members})


def path(model: str, verb: str = "streamGenerateContent", query: str = "alt=sse", version: str = "v1beta") -> str:
    """A request's target."""
    return f"/{version}/models/{model}:{verb}" + (f"?{query}" if query else "")


def call(model: str, verb: str = "streamGenerateContent", query: str = "alt=sse", **how: object) -> bytes:
    """A request's bytes; the key stands where google-genai puts it."""
    headers = {"x-goog-api-key": KEY} | dict(how.pop("headers", {}))  # type: ignore[call-overload]
    body = how.pop("body", BODY)
    return request(body, path=path(model, verb, query), key=None, headers=headers, **how)  # type: ignore[arg-type]


def ask(stand: Stand, model: str, verb: str = "streamGenerateContent", query: str = "alt=sse", **how: object) -> Reply:
    """One request on a connection of its own, and the whole reply."""
    with stand.connect() as client:
        client.send(call(model, verb, query, **how))
        client.head()
        return client.rest()


def error_in(data: bytes) -> dict[str, object]:
    """The error object that a reply is, or that stands in one event."""
    value = json.loads(data.strip().removeprefix(b"data: "))
    assert list(value) == ["error"], value
    found = value["error"]
    assert isinstance(found, dict)
    return found
