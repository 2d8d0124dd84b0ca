"""Anthropic Messages: `POST /v1/messages` and `POST /v1/messages/count_tokens`."""

from typing import Any
from urllib.parse import quote

import msgspec

from headrace.http.splice import replace_all
from headrace.http.target import without_key
from headrace.model.channel import Channel
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call, Reply, ReplyHead, RequestHead, UpstreamRequest
from headrace.model.wire import Asked, Dialect, WireProtocol
from headrace.protocols.body import count_from, model_span, read_body
from headrace.protocols.dialect import anthropic_error, refuse_anthropic
from headrace.protocols.interface import Observer
from headrace.protocols.keepalive import comment_keepalive
from headrace.protocols.messages_fault import problem_from_body
from headrace.protocols.messages_observer import MessagesObserver
from headrace.protocols.session import seed_of_messages

CREATE = "messages"
COUNT_TOKENS = "messages.count_tokens"

_PATHS = {CREATE: "/messages", COUNT_TOKENS: "/messages/count_tokens"}
_BROKEN: dict[str, object] = {"type": "api_error", "message": "Response stream interrupted, please retry"}


class _Request(msgspec.Struct):
    """What the gateway reads; all other members pass unread. Only `model` and `stream` must have their type."""

    model: str
    stream: bool | None = None
    max_tokens: Any = None


_request = msgspec.json.Decoder(_Request)


class Messages:
    """The protocol `messages` (see `protocols.interface.Api`)."""

    protocol = WireProtocol.MESSAGES
    dialect = Dialect.ANTHROPIC
    keeps_comments = True

    def inspect(self, head: RequestHead, body: bytes, operation: str) -> Call | Problem:
        """Read model, stream and the cap of output. The body is never changed here; a count is never a stream."""
        request = read_body(body, _request)
        if isinstance(request, Problem):
            return request
        creates = operation == CREATE
        return Call(
            protocol=self.protocol,
            operation=operation,
            model=request.model,
            asked=Asked.EVENTS if creates and request.stream is True else Asked.JSON,
            body=body,
            max_output=count_from(request.max_tokens) if creates else None,
        )

    def address(self, call: Call, head: RequestHead, channel: Channel, upstream_model: str) -> UpstreamRequest:
        """The body as it came, `model` spliced where the upstream names it otherwise; with the query (`?beta=true`)."""
        edits = []
        if upstream_model != call.model:
            edits.append((model_span(call.body), msgspec.json.encode(upstream_model)))
        path = dict(channel.paths).get(call.operation, _PATHS[call.operation])
        path = path.replace("{model}", quote(upstream_model, safe=""))
        return UpstreamRequest("POST", path, without_key(head.query), [], replace_all(call.body, edits))

    def seed(self, call: Call, head: RequestHead) -> bytes:
        """The conversation's name, else its first words."""
        return seed_of_messages(call.body, head)

    def observer(self, call: Call, added_usage: bool) -> Observer:
        """A fresh observer."""
        return MessagesObserver()

    def may_open_early(self, call: Call, head: RequestHead) -> bool:
        """Always: every reader of this API stands a comment before the first event."""
        return True

    def keepalive(self, line_end: bytes | None, saw_id: bool, head: RequestHead, comment: str) -> bytes:
        """A comment, in the form that this client's reader stands."""
        return comment_keepalive(saw_id, head, comment)

    def refuse(self, problem: Problem, request_id: str) -> Reply:
        """`{"type": "error", "error": {type, message}, "request_id"}`."""
        return refuse_anthropic(problem, request_id)

    def interrupt(
        self, problem: Problem, observer: Observer | None, line_end: bytes | None, request_id: str = ""
    ) -> bytes:
        """`event: error`, on which every SDK raises. The words ask to retry, but for a stop; before any event they are
        the cause's own."""
        error = _BROKEN
        if problem.kind is Kind.STOPPED:
            error = {"type": "api_error", "message": problem.message}
        elif problem.kind is not Kind.UPSTREAM_INTERRUPTED and not _has_begun(observer):
            error = anthropic_error(problem)
        end = line_end or b"\n"
        data = msgspec.json.encode({"type": "error", "error": error})
        return b"event: error" + end + b"data: " + data + 2 * end

    def classify_fault(self, head: ReplyHead, body: bytes) -> Problem | None:
        """What a 200 with an error object, or an error reply's body, says."""
        return problem_from_body(body, head.status)


def _has_begun(observer: Observer | None) -> bool:
    return isinstance(observer, MessagesObserver) and observer.begun
