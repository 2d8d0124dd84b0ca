"""Anthropic Messages: reads a request, and spells an answer as events or as one object.

Order on the wire: message_start, blocks one after the other (thinking, text, tool_use), message_delta, message_stop.
An answer has one choice. What a script calls a prompt includes what was cached, as elsewhere.
"""

import base64
import hashlib
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.simulator.answer import Answer, Asked, Choice, Run, tokens_from_bytes
from headrace.simulator.messages_objects import (
    Block,
    BlockDelta,
    BlockStart,
    BlockStop,
    Delta,
    InputDelta,
    Message,
    MessageDelta,
    MessageStart,
    MessageStop,
    SignatureDelta,
    Stop,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolUse,
    final_usage,
    whole_usage,
)
from headrace.simulator.reply import Headers
from headrace.simulator.request import RequestError, body_as, text_of
from headrace.simulator.scenario import ErrorSpec, Scenario
from headrace.simulator.spelling import Event, data_event

PATH = "/messages"
ENDS_IN_DONE = True
PROVISIONAL = 1
"""The output tokens that message_start tells."""
_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
# status → (type, message); the other statuses are as 400 or 500.
_ERRORS = {
    400: ("invalid_request_error", "Invalid request."),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the Anthropic API."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "Not found"),
    409: ("conflict_error", "The request conflicts with another one."),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    500: ("api_error", "Internal server error"),
    504: ("timeout_error", "Request timed out"),
    529: ("overloaded_error", "Overloaded"),
}
_encode = msgspec.json.Encoder().encode


class _Turn(msgspec.Struct):
    role: str = ""
    content: Any = None


class _Request(msgspec.Struct):
    model: str = ""
    messages: list[_Turn] = []
    system: Any = None
    max_tokens: int | None = None
    stream: bool | None = None


def read_request(body: bytes) -> Asked:
    """What a POST …/messages asks for; raises RequestError."""
    asked, max_tokens = read_turns(body)
    if max_tokens is None:
        raise RequestError("max_tokens: Field required")
    return asked


def read_turns(body: bytes) -> tuple[Asked, int | None]:
    """What a request asks for, and its cap of output; raises RequestError."""
    request = body_as(_Request, body)
    if not request.model:
        raise RequestError("model: Field required")
    texts = [(turn.role, text_of(turn.content)) for turn in request.messages]
    size = sum(len(text.encode()) for _, text in texts) + len(text_of(request.system).encode())
    asked = Asked(
        model=request.model,
        stream=bool(request.stream),
        input=next((text for role, text in reversed(texts) if role == "user"), ""),
        prompt_tokens=tokens_from_bytes(size),
    )
    return asked, request.max_tokens


def id_from(letters: str) -> str:
    return f"msg_{letters}"


def own_headers(ms: int) -> Headers:
    """The headers of Anthropic's own that a reply has."""
    return (
        ("request-id", f"req_{random.getrandbits(128):032x}"),
        ("anthropic-organization-id", "simulator"),
        ("anthropic-ratelimit-requests-limit", "1000"),
        ("anthropic-ratelimit-requests-remaining", "999"),
    )


def error_body(status: int, spec: ErrorSpec) -> bytes:
    """`{"type": "error", "error": {type, message, details}, "request_id"}`; what `spec` leaves open is the status's."""
    return msgspec.json.encode({**_error(status, spec), "request_id": f"req_{random.getrandbits(128):032x}"})


def error_event(status: int, spec: ErrorSpec, tokens: int, position: int) -> Event:
    """`event: error`."""
    return data_event(msgspec.json.encode(_error(status, spec)), tokens, b"error")


def _error(status: int, spec: ErrorSpec) -> dict[str, object]:
    kind, message = _ERRORS.get(status) or _ERRORS[400 if status < 500 else 529 if status == 503 else 500]
    error: dict[str, object] = {
        "type": spec.type if spec.type is not None else kind,
        "message": spec.message if spec.message is not None else message,
    }
    if spec.code is not None:
        error["details"] = {"error_code": spec.code}
    return {"type": "error", "error": error}


def done_event(payload: str, tokens: int) -> Event:
    """message_stop, which stands where OpenAI has `[DONE]`; another payload than that is its data."""
    data = _encode(MessageStop()) if payload == "[DONE]" else payload.encode()
    return data_event(data, tokens, b"message_stop")


def whole(answer: Answer, scenario: Scenario) -> bytes:
    """The `message` object of a reply without streaming."""
    choice = answer.choices[0]
    blocks: list[Block] = []
    if choice.reasoning.pieces:
        blocks.append(Thinking(choice.reasoning.text, signature(choice.reasoning.text)))
    blocks += [Text(run.text) for run in _texts(choice)]
    for call in choice.calls:
        blocks.append(ToolUse(_tool_id(call.id), call.name, msgspec.Raw(call.arguments.text.encode())))
    usage = whole_usage(answer.counts, scenario.content.usage)
    return _encode(_message(answer, blocks, _stop_reason(choice), usage))


def events(answer: Answer, scenario: Scenario) -> Iterator[Event]:
    """The generated events of a stream, message_stop not included."""
    return _Stream(answer, scenario).events()


def signature(text: str) -> str:
    """A thinking block's signature: it looks like one, and tells texts apart."""
    return base64.b64encode(hashlib.shake_256(text.encode()).digest(192)).decode()


class _Stream:
    """One answer being spelled; `_said` counts the UTF-8 bytes said so far, from which tokens follow."""

    def __init__(self, answer: Answer, scenario: Scenario) -> None:
        self._answer = answer
        self._usage = scenario.content.usage
        self._said = 0
        self._index = 0

    def events(self) -> Iterator[Event]:
        answer, choice = self._answer, self._answer.choices[0]
        start = whole_usage(answer.counts, self._usage, output=PROVISIONAL)
        yield self._event(MessageStart(_message(answer, [], None, start)))
        if choice.reasoning.pieces:
            signed = SignatureDelta(signature(choice.reasoning.text))
            yield from self._block(Thinking("", ""), choice.reasoning, ThinkingDelta, signed)
        for run in _texts(choice):
            yield from self._block(Text(""), run, TextDelta)
        for call in choice.calls:
            self._said += len(call.name.encode())
            yield from self._block(ToolUse(_tool_id(call.id), call.name), call.arguments, InputDelta)
        usage = final_usage(answer.counts, self._usage)
        yield self._event(MessageDelta(Stop(_stop_reason(choice)), usage), answer.counts.completion)

    def _block(self, empty: Block, run: Run, delta: type[Delta], last: Delta | None = None) -> Iterator[Event]:
        index, self._index = self._index, self._index + 1
        yield self._event(BlockStart(index, empty))
        for text in run:
            self._said += len(text.encode())
            yield self._event(BlockDelta(index, delta(text)))
        if last is not None:
            yield self._event(BlockDelta(index, last))
        yield self._event(BlockStop(index))

    def _event(self, value: msgspec.Struct, tokens: int | None = None) -> Event:
        name = value.__struct_config__.tag
        if tokens is None:
            tokens = min(tokens_from_bytes(self._said), self._answer.counts.completion)
        return data_event(_encode(value), tokens, str(name).encode())


def _texts(choice: Choice) -> list[Run]:
    """The text blocks: what is said, and a refusal's words, which Anthropic has no member for."""
    said = [choice.text] if choice.speaks else []
    return said + ([choice.refusal] if choice.refusal.pieces else [])


def _stop_reason(choice: Choice) -> str:
    if choice.refusal.pieces and choice.finish_reason == "stop":
        return "refusal"
    return _STOP_REASONS.get(choice.finish_reason, choice.finish_reason)


def _tool_id(id_: str) -> str:
    return f"toolu_{id_.removeprefix('call_')}" if id_.startswith("call_") else id_


def _message(answer: Answer, blocks: list[Block], stop_reason: str | None, usage: Any) -> Message:
    return Message(id=answer.id, model=answer.model, content=blocks, stop_reason=stop_reason, usage=usage)
