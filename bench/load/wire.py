"""The bytes that client and upstream agree on: requests, events, frames, and how many bytes a complete reply has.

One content event is a realistic chat.completion.chunk of about 250 bytes. Its `obfuscation` member, a field that the
real API sends too, has a fixed width and carries CLOCK_MONOTONIC in nanoseconds at the moment of sending; that clock is
one for all processes of a machine, so receiving time minus stamp is the delay of the event.
"""

import json

MODEL = "gpt-5.6-sol"
CLIENT_KEY = "sk-hr-bench0000000000000000000000000000000000000000"
UPSTREAM_SECRET = "sk-upstream-bench-000000000000000000000000000000"

_ID = "chatcmpl-CqT5vYk2mXw8RzJ4nB7sLd1PfHgA9"
_HEAD = f'data: {{"id":"{_ID}","object":"chat.completion.chunk","created":1764534182,"model":"{MODEL}",'

STAMP_MARK = b'"obfuscation":"'
STAMP_DIGITS = 18
STAMP_SKIP = len(STAMP_MARK)
STAMP_END = STAMP_SKIP + STAMP_DIGITS

EVENT_PREFIX = (
    f'{_HEAD}"choices":[{{"index":0,"delta":{{"content":" river"}},"finish_reason":null}}],"usage":null,"obfuscation":"'
).encode()
EVENT_SUFFIX = b'"}\n\n'
EVENT_BYTES = len(EVENT_PREFIX) + STAMP_DIGITS + len(EVENT_SUFFIX)

ROLE = (
    f'{_HEAD}"choices":[{{"index":0,"delta":{{"role":"assistant","content":"","refusal":null}},'
    '"finish_reason":null}],"usage":null}\n\n'
).encode()
FINISH = f'{_HEAD}"choices":[{{"index":0,"delta":{{}},"finish_reason":"stop"}}],"usage":null}}\n\n'.encode()
DONE = b"data: [DONE]\n\n"

FRAME_PREFIX = b"%x\r\n" % EVENT_BYTES + EVENT_PREFIX
FRAME_SUFFIX = EVENT_SUFFIX + b"\r\n"
LAST_FRAME = b"0\r\n\r\n"

# Role, finish, usage and [DONE] are events too, beside the content events.
FRAMING_EVENTS = 4


def frame(payload: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n" % len(payload) + payload + b"\r\n"


def usage_event(events: int) -> bytes:
    """The usage chunk of a stream of `events` content events."""
    usage = (
        f'{{"prompt_tokens":42,"completion_tokens":{events},"total_tokens":{42 + events},'
        '"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},'
        '"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}}'
    )
    return f'{_HEAD}"choices":[],"usage":{usage}}}\n\n'.encode()


def stream_end(events: int) -> bytes:
    """The frames after the last content event: finish, usage, [DONE], end of body."""
    return frame(FINISH) + frame(usage_event(events)) + frame(DONE) + LAST_FRAME


def stream_body_bytes(events: int) -> int:
    """Bytes of a complete stream's body, without framing."""
    return len(ROLE) + events * EVENT_BYTES + len(FINISH) + len(usage_event(events)) + len(DONE)


REPLY_BODY = json.dumps(
    {
        "id": _ID,
        "object": "chat.completion",
        "created": 1764534182,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "The river turns the wheel.",
                    "refusal": None,
                    "annotations": [],
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 42,
            "completion_tokens": 6,
            "total_tokens": 48,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": None,
    },
    separators=(",", ":"),
).encode()

_COMMON_HEAD = (
    "HTTP/1.1 200 OK\r\ndate: Sun, 30 Nov 2025 20:23:02 GMT\r\nserver: bench\r\n"
    "openai-processing-ms: 312\r\nopenai-version: 2020-10-01\r\nx-request-id: req_4f1c0d2ab7e94f0c9a6b1f3d5e7a9c21\r\n"
    "x-ratelimit-limit-requests: 10000\r\nx-ratelimit-remaining-requests: 9999\r\n"
)
STREAM_HEAD = (
    f"{_COMMON_HEAD}content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
).encode()
REPLY = (
    f"{_COMMON_HEAD}content-type: application/json\r\ncontent-length: {len(REPLY_BODY)}\r\n\r\n".encode() + REPLY_BODY
)


def request(port: int, *, events: int | None) -> bytes:
    """A chat completion request as an official SDK sends it: 24 headers; `events` None asks for one JSON reply.

    `max_completion_tokens` tells the upstream how many content events to send; 0 means one event, then silence.
    """
    body: dict[str, object] = {
        "messages": [
            {"role": "developer", "content": "You are a careful assistant that answers in one short paragraph."},
            {"role": "user", "content": "Explain how a headrace carries water to a mill, and why its slope is small."},
        ],
        "model": MODEL,
        "temperature": 0.2,
        "max_completion_tokens": 512 if events is None else events,
    }
    if events is not None:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    content = json.dumps(body, separators=(",", ":")).encode()
    headers = {
        "Host": f"127.0.0.1:{port}",
        "Accept-Encoding": "gzip, deflate",
        "Connection": "keep-alive",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": "AsyncOpenAI/Python 2.8.1",
        "X-Stainless-Lang": "python",
        "X-Stainless-Package-Version": "2.8.1",
        "X-Stainless-OS": "Linux",
        "X-Stainless-Arch": "x64",
        "X-Stainless-Runtime": "CPython",
        "X-Stainless-Runtime-Version": "3.11.2",
        "X-Stainless-Async": "async:asyncio",
        "X-Stainless-Retry-Count": "0",
        "X-Stainless-Read-Timeout": "600",
        "X-Stainless-Raw-Response": "stream",
        "Authorization": f"Bearer {CLIENT_KEY}",
        "OpenAI-Organization": "org-8fJ2kQx0Zt5mWvYb3NcR7dLs",
        "OpenAI-Project": "proj_u3Hn6TgK9rXe1PqA",
        "Accept-Language": "en-GB,en;q=0.9",
        "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "Tracestate": "vendor=00f067aa0ba902b7",
        "X-Client-Request-Id": "b3c1f0a4-7f43-4c0e-9d38-6b1f0e6a52d7",
        "Content-Length": str(len(content)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST /v1/chat/completions HTTP/1.1\r\n{lines}\r\n".encode() + content
