"""OpenAI Chat Completions: `POST /v1/chat/completions`."""

from typing import Any
from urllib.parse import quote

import msgspec

from headrace.http.splice import Part, Span, insertion_point, member_span, raw_span, replace_all
from headrace.model.channel import Channel, UsagePolicy
from headrace.model.problem import Problem
from headrace.model.request import Call, Reply, ReplyHead, RequestHead, UpstreamRequest
from headrace.model.wire import Asked, Dialect, WireProtocol
from headrace.protocols.body import count_from, model_span, read_body
from headrace.protocols.chat_observer import ChatObserver, error_of
from headrace.protocols.dialect import openai_error, refuse_openai
from headrace.protocols.interface import Observer
from headrace.protocols.keepalive import comment_keepalive
from headrace.protocols.session import seed_of_messages

OPERATION = "chat.completions"
_PATH = "/chat/completions"


class _Request(msgspec.Struct):
    """What the gateway reads; all other members pass unread. Only `model` and `stream` must have their type."""

    model: str
    stream: bool | None = None
    stream_options: Any = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    n: Any = None


class _Raw(msgspec.Struct):
    stream_options: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decoder = msgspec.json.Decoder(_Request)
_decode_raw = msgspec.json.Decoder(_Raw).decode


class Chat:
    """The protocol `chat` (see `protocols.interface.Api`)."""

    protocol = WireProtocol.CHAT
    dialect = Dialect.OPENAI
    keeps_comments = True

    def inspect(self, head: RequestHead, body: bytes, operation: str) -> Call | Problem:
        """Read model, stream and what metering needs. The body is never changed here."""
        request = read_body(body, _decoder)
        if isinstance(request, Problem):
            return request
        options = request.stream_options
        return Call(
            protocol=self.protocol,
            operation=operation,
            model=request.model,
            asked=Asked.EVENTS if request.stream is True else Asked.JSON,
            body=body,
            wants_usage=isinstance(options, dict) and options.get("include_usage") is True,
            max_output=count_from(request.max_completion_tokens) or count_from(request.max_tokens),
            choices=count_from(request.n) or 1,
        )

    def address(self, call: Call, head: RequestHead, channel: Channel, upstream_model: str) -> UpstreamRequest:
        """The body as it came; `model` spliced where the upstream names it otherwise, usage asked for where the
        client did not."""
        inject = call.stream and not call.wants_usage and channel.usage is UsagePolicy.INJECT
        edits: list[tuple[Span, bytes]] = []
        if upstream_model != call.model:
            edits.append((model_span(call.body), msgspec.json.encode(upstream_model)))
        if inject:
            edit = _usage_edit(call.body)
            if edit is None:
                inject = False
            else:
                edits.append(edit)
        parts: tuple[Part, ...] = replace_all(call.body, edits)
        path = _PATH
        if channel.paths:
            path = dict(channel.paths).get(call.operation, _PATH).replace("{model}", quote(upstream_model, safe=""))
        return UpstreamRequest("POST", path, "", [], parts, added_usage=inject)

    def seed(self, call: Call, head: RequestHead) -> bytes:
        """The conversation's name, else its first words."""
        return seed_of_messages(call.body, head)

    def observer(self, call: Call, added_usage: bool) -> Observer:
        """A fresh observer."""
        return ChatObserver(added_usage)

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
        """`data: {"error": …}` without an event line (SDKs ignore a named one) and without `[DONE]` behind it."""
        error = openai_error(problem)
        error["type"] = "server_error"
        return b"data: " + msgspec.json.encode({"error": error}) + 2 * (line_end or b"\n")

    def classify_fault(self, head: ReplyHead, body: bytes) -> Problem | None:
        """What a 200 with an error object, or an error reply's body, says."""
        return error_of(body, head.status)


def _options_span(body: bytes) -> Span | None:
    try:
        options = _decode_raw(body).stream_options
    except msgspec.MsgspecError:
        return member_span(body, "stream_options")
    return None if isinstance(options, msgspec.UnsetType) else raw_span(options, body)


def _usage_edit(body: bytes) -> tuple[Span, bytes] | None:
    """The one edit that sets `stream_options.include_usage`; None where stream_options has a shape that is not ours
    to mend."""
    span = _options_span(body)
    if span is None:
        return insertion_point(body), b'"stream_options":{"include_usage":true},'
    value = body[span[0] : span[1]]
    if value == b"null":
        return span, b'{"include_usage":true}'
    if not value.startswith(b"{"):
        return None
    inner = member_span(body, "include_usage", span)
    if inner is not None:
        return (inner, b"true") if body[inner[0] : inner[1]] in (b"false", b"null") else None
    empty = not value[1:-1].strip()
    return insertion_point(body, span), b'"include_usage":true' if empty else b'"include_usage":true,'
