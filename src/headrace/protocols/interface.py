"""What the line asks of a protocol. A protocol knows its own API and nothing of the others, of sockets or of time."""

from collections.abc import Sequence
from typing import Protocol

from headrace.model.channel import Channel
from headrace.model.outcome import Outcome
from headrace.model.problem import Problem
from headrace.model.request import Call, Reply, ReplyHead, RequestHead, UpstreamRequest
from headrace.model.usage import Usage
from headrace.model.wire import BodyEnd, Dialect, Plain, Sight, WireProtocol
from headrace.protocols.features import Features


class Observer(Protocol):
    """Reads one response beside the relay. It sees whole events or one whole body and can change neither."""

    features: Features
    served_model: str
    saw_id: bool
    """Whether the upstream has used an `id:` field, which changes what a safe keepalive is (openai-python dispatches
    blank lines from then on)."""
    usage_is_final: bool
    """Whether the last usage report came after the last output."""

    @property
    def usage(self) -> Usage:
        """What the upstream has reported so far."""

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """The upstream's own words for why each output ended."""

    @property
    def finished(self) -> bool:
        """Whether only the tail is missing: what follows may be cut off without loss."""

    @property
    def problem(self) -> Problem | None:
        """What an ERROR event said, as a problem with the status that it maps to."""

    def observe(self, event: bytes) -> Sight:
        """One whole event, with its line ends. May raise on anything: the meter catches."""

    def plain_like(self, event: bytes) -> Plain | None:
        """How to tell that another event is as plain as this one, as long as no output has finished; None where that
        cannot be told from its bytes."""

    def observe_plain(self, events: Sequence[bytes]) -> bool:
        """A run of events that were found plain by one `Plain`; False, and nothing is noted, where each has to be
        observed."""

    def observe_body(self, body: bytes) -> Outcome:
        """A whole reply without streaming, status 2xx, decoded."""

    def ended(self, how: BodyEnd) -> Outcome:
        """What it means that the stream's body is over, after all that was observed."""


class Api(Protocol):
    """One wire API."""

    protocol: WireProtocol
    dialect: Dialect
    keeps_comments: bool
    """Whether the upstream's comments reach the client; Gemini's SDKs fail on them, so there they are dropped."""

    def inspect(self, head: RequestHead, body: bytes, operation: str) -> Call | Problem:
        """Read a request: model, streaming, what routing and metering need. A Problem is the client's fault."""

    def address(self, call: Call, head: RequestHead, channel: Channel, upstream_model: str) -> UpstreamRequest:
        """The upstream's form of `call`: the body's bytes are the client's, spliced only where a member must differ.

        Headers here are the protocol's own (few or none); the line adds the client's, the credential and Host. The
        query is the client's where the API has one, without `key=`.
        """

    def seed(self, call: Call, head: RequestHead) -> bytes:
        """What tells a conversation apart, so that it stays where its prompt cache is warm; asked only where there is
        a choice."""

    def observer(self, call: Call, added_usage: bool) -> Observer:
        """A fresh observer for one attempt's response."""

    def may_open_early(self, call: Call, head: RequestHead) -> bool:
        """Whether this client stands a head and a keepalive before the first event."""

    def keepalive(self, line_end: bytes | None, saw_id: bool, head: RequestHead, comment: str) -> bytes:
        """The bytes that keep this stream's client alive at a boundary; empty where no form is safe.

        `line_end` is the stream's own; None before any byte came.
        """

    def refuse(self, problem: Problem, request_id: str) -> Reply:
        """An HTTP error in this API's dialect."""

    def interrupt(
        self, problem: Problem, observer: Observer | None, line_end: bytes | None, request_id: str = ""
    ) -> bytes:
        """The error event that ends a stream after its head has gone out; empty where the form has none (a JSON array):
        then the connection is aborted.

        `observer` is None where the client has heard nothing of the upstream's; `request_id` is the exchange's.
        """

    def classify_fault(self, head: ReplyHead, body: bytes) -> Problem | None:
        """What an upstream's error body adds to its status (a model that is unknown, a key that is invalid), or
        None."""
