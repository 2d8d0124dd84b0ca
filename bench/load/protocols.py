"""The table of the four protocols: path, headers, request, and the first, content and last events of a stream.

The events are what the providers send, in their order and spacing; the text is one word, again and again.
"""

import json

from bench.load import wire
from bench.load.protocol import COUNT_FROM, PROMPT_TOKENS, Protocol

_OPENAI_MODEL, _ANTHROPIC_MODEL, _GOOGLE_MODEL = "gpt-5.6-sol", "claude-opus-4-6", "gemini-3.8-flash"
_SYSTEM = "You are a careful assistant that answers in one short paragraph."
_QUESTION = "Explain how a headrace carries water to a mill, and why its slope is small."
_WORD = " river"


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _event(kind: str, data: dict[str, object]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _json({"type": kind, **data}))


# ----------------------------------------------------------------------------------------------------------------- chat

_CHAT_ID = "chatcmpl-CqT5vYk2mXw8RzJ4nB7sLd1PfHgA9"
_CHAT_START = (
    f'data: {{"id":"{_CHAT_ID}","object":"chat.completion.chunk","created":1764534182,"model":"{_OPENAI_MODEL}",'
    '"choices":['
).encode()
_CHAT_FIRST = b'{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}'
_OPENAI_HEADERS = {
    "User-Agent": "AsyncOpenAI/Python 3.57.0",
    "X-Stainless-Package-Version": "3.57.0",
    **wire.STAINLESS,
    "OpenAI-Organization": "org-8fJ2kQx0Zt5mWvYb3NcR7dLs",
    "OpenAI-Project": "proj_u3Hn6TgK9rXe1PqA",
}


def chat_body(most_tokens: int) -> dict[str, object]:
    """A chat completion request without streaming."""
    messages = [{"role": "developer", "content": _SYSTEM}, {"role": "user", "content": _QUESTION}]
    return {"messages": messages, "model": _OPENAI_MODEL, "temperature": 0.2, "max_completion_tokens": most_tokens}


def _chat_last(events: int) -> list[bytes]:
    usage = {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": events,
        "total_tokens": PROMPT_TOKENS + events,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }
    finish = b'{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}\n\n'
    return [_CHAT_START + finish, _CHAT_START + b'],"usage":' + _json(usage) + b"}\n\n", b"data: [DONE]\n\n"]


CHAT = Protocol(
    name="chat",
    title="Chat Completions",
    model=_OPENAI_MODEL,
    target="/v1/chat/completions",
    credential="Authorization",
    headers=_OPENAI_HEADERS,
    body=lambda events: chat_body(events) | {"stream": True, "stream_options": {"include_usage": True}},
    first=[_CHAT_START + _CHAT_FIRST + b'],"usage":null}\n\n'],
    content=_CHAT_START
    + b'{"index":0,"delta":{"content":" river"},"finish_reason":null}],"usage":null,"obfuscation":"%(stamp)018d"}\n\n',
    mark=b'"obfuscation":"',  # a member that the real API sends too
    last=_chat_last,
)

# ------------------------------------------------------------------------------------------------------------ responses

_ITEM = "msg_68af4030baa48193b0b43b4c2a176a1a"
_AT: dict[str, object] = {"item_id": _ITEM, "output_index": 0, "content_index": 0}


def _numbered(kind: str, place: int, data: dict[str, object]) -> bytes:
    return _event(kind, {"sequence_number": COUNT_FROM + place, **data})


def _item(status: str, content: list[object]) -> dict[str, object]:
    return {"id": _ITEM, "type": "message", "status": status, "content": content, "role": "assistant"}


def _part(text: str) -> dict[str, object]:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _response(status: str, output: list[object], completed_at: int | None, usage: object) -> dict[str, object]:
    response = json.loads(
        '{"id":"resp_68af402fb0ac8193a5f0d6a1c0f4e5c2","object":"response","created_at":1764534182,"status":"",'
        '"background":false,"completed_at":null,"error":null,"incomplete_details":null,"instructions":null,'
        '"max_output_tokens":null,"max_tool_calls":null,"model":"","output":[],"parallel_tool_calls":true,'
        '"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},'
        '"safety_identifier":null,"service_tier":"default","store":false,"temperature":0.2,"text":{"format":'
        '{"type":"text"},"verbosity":"medium"},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1.0,'
        '"truncation":"disabled","usage":null,"user":null,"metadata":{}}'
    )
    new = {"status": status, "completed_at": completed_at, "model": _OPENAI_MODEL, "output": output, "usage": usage}
    return {"response": response | new}


def _responses_last(events: int) -> list[bytes]:
    text = _WORD * events
    item = _item("completed", [_part(text)])
    usage = {
        "input_tokens": PROMPT_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": events,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": PROMPT_TOKENS + events,
    }
    return [
        _numbered("response.output_text.done", events, {**_AT, "text": text, "logprobs": []}),
        _numbered("response.content_part.done", events + 1, {**_AT, "part": _part(text)}),
        _numbered("response.output_item.done", events + 2, {"output_index": 0, "item": item}),
        _numbered("response.completed", events + 3, _response("completed", [item], 1764534192, usage)),
    ]


RESPONSES = Protocol(
    name="responses",
    title="Responses",
    model=_OPENAI_MODEL,
    target="/v1/responses",
    credential="Authorization",
    headers=_OPENAI_HEADERS,
    body=lambda events: {
        "input": _QUESTION,
        "instructions": _SYSTEM,
        "max_output_tokens": events,
        "model": _OPENAI_MODEL,
        "stream": True,
    },
    first=[
        _numbered("response.created", -4, _response("in_progress", [], None, None)),
        _numbered("response.in_progress", -3, _response("in_progress", [], None, None)),
        _numbered("response.output_item.added", -2, {"output_index": 0, "item": _item("in_progress", [])}),
        _numbered("response.content_part.added", -1, {**_AT, "part": _part("")}),
    ],
    content=b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":'
    b'%(number)d,"item_id":"' + _ITEM.encode() + b'","output_index":0,"content_index":0,"delta":" river","logprobs":[],'
    b'"obfuscation":"%(stamp)018d"}\n\n',
    mark=b'"obfuscation":"',
    last=_responses_last,
)

# ------------------------------------------------------------------------------------------------------------- messages

_MESSAGE_USAGE = {
    "input_tokens": PROMPT_TOKENS,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 1,
    "service_tier": "standard",
}
_MESSAGE: dict[str, object] = {
    "model": _ANTHROPIC_MODEL,
    "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
    "type": "message",
    "role": "assistant",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": _MESSAGE_USAGE,
}

MESSAGES = Protocol(
    name="messages",
    title="Messages",
    model=_ANTHROPIC_MODEL,
    target="/v1/messages",
    credential="X-Api-Key",
    headers={
        "User-Agent": "AsyncAnthropic/Python 2.14.0",
        "X-Stainless-Package-Version": "2.14.0",
        **wire.STAINLESS,
        "Anthropic-Version": "2023-06-01",
        "Anthropic-Beta": "interleaved-thinking-2025-05-14",
    },
    body=lambda events: {
        "max_tokens": events,
        "messages": [{"role": "user", "content": _QUESTION}],
        "model": _ANTHROPIC_MODEL,
        "system": _SYSTEM,
        "stream": True,
    },
    first=[
        _event("message_start", {"message": _MESSAGE}),
        _event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        _event("ping", {}),
    ],
    content=b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
    b'"text":" river %(stamp)018d"}}\n\n',
    mark=b'"text":" river ',
    last=lambda events: [
        _event("content_block_stop", {"index": 0}),
        _event(
            "message_delta",
            {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": events}},
        ),
        _event("message_stop", {}),
    ],
)

# --------------------------------------------------------------------------------------------------------------- gemini


def _gemini(text: bytes, finish: bytes, number: bytes, total: bytes) -> bytes:
    """A chunk; every one has the usage so far, and only the last a finishReason: after it the body ends."""
    return (
        b'data: {"candidates": [{"content": {"parts": [{"text": "%b"}],"role": "model"},%b"index": 0}],"usageMetadata":'
        b' {"promptTokenCount": %d,"candidatesTokenCount": %b,"totalTokenCount": %b,"promptTokensDetails": [{"modality"'
        b': "TEXT","tokenCount": %d}]},"modelVersion": "%b","responseId": "MyS2GLf8c50JrG5fqY7Gog"}\r\n\r\n'
    ) % (text, finish, PROMPT_TOKENS, number, total, PROMPT_TOKENS, _GOOGLE_MODEL.encode())


def _gemini_last(events: int) -> list[bytes]:
    number = COUNT_FROM + events
    return [_gemini(b".", b'"finishReason": "STOP",', b"%d" % number, b"%d" % (number + PROMPT_TOKENS))]


GEMINI = Protocol(
    name="gemini",
    title="Gemini",
    model=_GOOGLE_MODEL,
    target=f"/v1beta/models/{_GOOGLE_MODEL}:streamGenerateContent?alt=sse",
    credential="X-Goog-Api-Key",
    headers=wire.GOOGLE,
    body=lambda events: {
        "contents": [{"parts": [{"text": _QUESTION}], "role": "user"}],
        "systemInstruction": {"parts": [{"text": _SYSTEM}], "role": "user"},
        "generationConfig": {"temperature": 0.2, "maxOutputTokens": events},
    },
    first=[_gemini(b"The", b"", b"1", b"%d" % (PROMPT_TOKENS + 1))],
    content=_gemini(b" river %(stamp)018d", b"", b"%(number)d", b"%(total)d"),
    mark=b'"text": " river ',
    last=_gemini_last,
    blank=b"\r\n\r\n",
)

PROTOCOLS = {protocol.name: protocol for protocol in (CHAT, RESPONSES, MESSAGES, GEMINI)}
BY_TARGET = {protocol.target.encode(): protocol for protocol in PROTOCOLS.values()}
