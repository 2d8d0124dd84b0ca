"""OpenAI Responses over HTTP, without stored state: `POST /v1/responses`, `…/input_tokens`, `…/compact`."""

from typing import Any
from urllib.parse import quote

import msgspec

from headrace.http.splice import Span, replace_all
from headrace.model.channel import Channel
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call, Reply, ReplyHead, RequestHead, UpstreamRequest
from headrace.model.wire import Asked, Dialect, WireProtocol
from headrace.protocols.body import count_from, model_span, read_body
from headrace.protocols.dialect import refuse_openai
from headrace.protocols.interface import Observer
from headrace.protocols.keepalive import comment_keepalive
from headrace.protocols.responses_failure import failure_event
from headrace.protocols.responses_observer import ResponsesObserver, error_of
from headrace.protocols.session import first_name, session

CREATE = "responses"
INPUT_TOKENS = "responses.input_tokens"
COMPACT = "responses.compact"

_PATHS = {CREATE: "/responses", INPUT_TOKENS: "/responses/input_tokens", COMPACT: "/responses/compact"}
_SEED_BYTES = 4096


class _Request(msgspec.Struct):
    """What the gateway reads; all other members pass unread. Only `model` and `stream` must have their type."""

    model: str
    stream: bool | None = None
    background: Any = None
    max_output_tokens: Any = None


class _Seed(msgspec.Struct):
    prompt_cache_key: Any = None
    metadata: Any = None
    conversation: Any = None
    input: msgspec.Raw = msgspec.Raw(b"null")


class _Item(msgspec.Struct):
    role: Any = None
    content: msgspec.Raw = msgspec.Raw(b"null")


_request = msgspec.json.Decoder(_Request)
_decode_seed = msgspec.json.Decoder(_Seed).decode
_decode_items = msgspec.json.Decoder(list[_Item]).decode


class Responses:
    """The protocol `responses` (see `protocols.interface.Api`)."""

    protocol = WireProtocol.RESPONSES
    dialect = Dialect.OPENAI
    keeps_comments = True

    def inspect(self, head: RequestHead, body: bytes, operation: str) -> Call | Problem:
        """Read model, stream and what metering needs. The body is never changed here."""
        request = read_body(body, _request)
        if isinstance(request, Problem):
            return request
        if request.background is True:
            return _NO_BACKGROUND
        streams = request.stream is True and operation == CREATE
        return Call(
            protocol=self.protocol,
            operation=operation,
            model=request.model,
            asked=Asked.EVENTS if streams else Asked.JSON,
            body=body,
            max_output=count_from(request.max_output_tokens),
        )

    def address(self, call: Call, head: RequestHead, channel: Channel, upstream_model: str) -> UpstreamRequest:
        """The body as it came, with `model` spliced where the upstream names it otherwise."""
        edits: list[tuple[Span, bytes]] = []
        if upstream_model != call.model:
            edits.append((model_span(call.body), msgspec.json.encode(upstream_model)))
        path = dict(channel.paths).get(call.operation, _PATHS[call.operation])
        parts = replace_all(call.body, edits)
        return UpstreamRequest("POST", path.replace("{model}", quote(upstream_model, safe="")), "", [], parts)

    def seed(self, call: Call, head: RequestHead) -> bytes:
        """`prompt_cache_key`, else the session, else `metadata.user_id`, else the conversation's id, else the first 4
        KiB of the first
        user input."""
        try:
            read = _decode_seed(call.body)
            user_id = read.metadata.get("user_id") if isinstance(read.metadata, dict) else None
            chat = read.conversation
            chat_id = chat.get("id") if isinstance(chat, dict) else chat
            name = first_name(read.prompt_cache_key, session(head), user_id, chat_id)
            return name or _first_input(read.input)
        except (msgspec.MsgspecError, RecursionError):
            return session(head)

    def observer(self, call: Call, added_usage: bool) -> Observer:
        """A fresh observer."""
        return ResponsesObserver()

    def may_open_early(self, call: Call, head: RequestHead) -> bool:
        """Always: every reader of this API stands a comment before the first event."""
        return True

    def keepalive(self, line_end: bytes | None, saw_id: bool, head: RequestHead, comment: str) -> bytes:
        """A comment, in the form that this client's reader stands."""
        return comment_keepalive(saw_id, head, comment)

    def refuse(self, problem: Problem, request_id: str) -> Reply:
        """`{"error": {message, type, param, code}}`."""
        return refuse_openai(problem)

    def interrupt(
        self, problem: Problem, observer: Observer | None, line_end: bytes | None, request_id: str = ""
    ) -> bytes:
        """`response.failed`, as the upstream would have sent it next; alone, with an id of its own, where no event
        came."""
        seen = observer.identity if isinstance(observer, ResponsesObserver) else None
        return failure_event(problem, seen, line_end, request_id)

    def classify_fault(self, head: ReplyHead, body: bytes) -> Problem | None:
        """What a 200 with an error object, or an error reply's body, says."""
        return error_of(body, head.status)


_NO_BACKGROUND = Problem(
    Kind.UNSUPPORTED_PARAMETER,
    "`background` is not supported here. Leave it out, and set `stream` to true where the answer takes long.",
    param="background",
)


def _first_input(given: msgspec.Raw) -> bytes:
    """JSON text: of `input` where it is a string, else of the content of its first item with role user; so that a
    conversation's first request, written either way, and its later ones agree."""
    raw = bytes(memoryview(given)[:_SEED_BYTES])
    if not raw.startswith(b"["):
        return raw if raw.startswith(b'"') else b""
    for item in _decode_items(given):
        if item.role == "user":
            return bytes(memoryview(item.content)[:_SEED_BYTES])
    return b""
