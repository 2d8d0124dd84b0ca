"""What is the same in every protocol: credentials, frames, heads, and the one reply of short requests."""

import json

CLIENT_KEY = "sk-hr-bench0000000000000000000000000000000000000000"
UPSTREAM_SECRET = "sk-upstream-bench-000000000000000000000000000000"
LAST_FRAME = b"0\r\n\r\n"


def frames(events: list[bytes]) -> bytes:
    """Events as the chunks of a chunked body, one each."""
    return b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events)


REPLY_BODY = json.dumps(
    {
        "id": "chatcmpl-CqT5vYk2mXw8RzJ4nB7sLd1PfHgA9",
        "object": "chat.completion",
        "created": 1764534182,
        "model": "gpt-5.6-sol",
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

# What the SDKs of OpenAI and Anthropic say about themselves.
STAINLESS = {
    "X-Stainless-Lang": "python",
    "X-Stainless-OS": "Linux",
    "X-Stainless-Arch": "x64",
    "X-Stainless-Runtime": "CPython",
    "X-Stainless-Runtime-Version": "3.11.2",
    "X-Stainless-Async": "async:asyncio",
    "X-Stainless-Retry-Count": "0",
    "X-Stainless-Read-Timeout": "600",
    "X-Stainless-Raw-Response": "stream",
}
# Google's SDK says less; the rest is what applications add.
GOOGLE = {
    "User-Agent": "google-genai-sdk/3.6.1 gl-python/3.11.2",
    "X-Goog-Api-Client": "google-genai-sdk/3.6.1 gl-python/3.11.2",
    "X-Goog-User-Project": "headrace-bench",
    "X-Server-Timeout": "600",
    "Baggage": "service=mill,tenant=bench",
    "Sentry-Trace": "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
    "X-B3-TraceId": "4bf92f3577b34da6a3ce929d0e0e4736",
    "X-B3-SpanId": "00f067aa0ba902b7",
    "X-B3-Sampled": "1",
    "X-Request-Id": "5b0f1c9e-0d9e-4f37-8f0b-2f5f6f3a7c11",
    "Cache-Control": "no-cache",
    "Pragma": "no-cache",
    "Priority": "u=1",
}


def post(port: int, target: str, own: dict[str, str], body: dict[str, object]) -> bytes:
    """A POST request with the header fields that all have, those of its protocol, and a JSON body."""
    content = json.dumps(body, separators=(",", ":")).encode()
    headers = {
        "Host": f"127.0.0.1:{port}",
        "Accept-Encoding": "gzip, deflate",
        "Connection": "keep-alive",
        "Accept": "application/json",
        "Content-Type": "application/json",
        **own,
        "Accept-Language": "en-GB,en;q=0.9",
        "Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "Tracestate": "vendor=00f067aa0ba902b7",
        "X-Client-Request-Id": "b3c1f0a4-7f43-4c0e-9d38-6b1f0e6a52d7",
        "Content-Length": str(len(content)),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {target} HTTP/1.1\r\n{lines}\r\n".encode() + content
