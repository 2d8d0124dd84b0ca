"""The passthrough families of OpenAI's API: completions, embeddings, moderations, images, audio, videos, rerank.

Only what routing and metering need is read: `model` and `stream` of a JSON body, the `model` part of a form, the usage
of the reply. The answer is whatever comes with a 2xx; nothing is inserted into it, and a break aborts the connection.
"""

import re
from urllib.parse import quote

import msgspec

from headrace.http.multipart import MEDIA_TYPE, MultipartError, boundary_of, field_span
from headrace.http.splice import Part, replace, replace_all
from headrace.http.target import without_key
from headrace.model.channel import Channel
from headrace.model.headers import every
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call, Reply, ReplyHead, RequestHead, UpstreamRequest
from headrace.model.wire import Asked, Dialect, WireProtocol
from headrace.protocols.body import model_span, other_spelling, wrong_model
from headrace.protocols.dialect import read_json, refuse_openai, wrong_field
from headrace.protocols.interface import Observer
from headrace.protocols.passthrough_observer import PassthroughObserver, error_of
from headrace.protocols.session import session

FAMILIES = (
    WireProtocol.COMPLETIONS,
    WireProtocol.EMBEDDINGS,
    WireProtocol.MODERATIONS,
    WireProtocol.IMAGES,
    WireProtocol.AUDIO,
    WireProtocol.VIDEOS,
    WireProtocol.RERANK,
)
_FORMS = frozenset(
    ("images.edits", "images.variations", "audio.transcriptions", "audio.translations", "videos")
)  # fmt: skip
"""The operations that take a form; each takes JSON too, as all others do."""
_NO_FORM = Problem(
    Kind.BAD_REQUEST,
    "This endpoint takes JSON. Send one object in UTF-8, without a byte order mark, as application/json.",
)
_NOTHING_READ = Problem(
    Kind.BAD_REQUEST, "This endpoint takes JSON or multipart/form-data. Send one of them, with its Content-Type."
)
_SEED_BYTES = 4096
_OBJECT = re.compile(rb"[ \t\r\n]*+\{")


class _Request(msgspec.Struct):
    """What the gateway reads; all other members pass unread. Both may be absent or null."""

    model: str | None = None
    stream: bool | None = None


_decode = msgspec.json.Decoder(_Request).decode


class Passthrough:
    """One family (see `protocols.interface.Api`). An operation's name is its path: `images.edits`, `/images/edits`."""

    dialect = Dialect.OPENAI
    keeps_comments = True

    def __init__(self, family: WireProtocol) -> None:
        self.protocol = family

    def inspect(self, head: RequestHead, body: bytes, operation: str) -> Call | Problem:
        """Read the model, where the request names one; `Call.model` is empty where it does not."""
        types = every(head.headers, b"content-type")
        if len(types) > 1:
            return Problem(Kind.BAD_REQUEST, "The request has two Content-Type headers. Send one.")
        media = _media(types[0]) if types else b""
        streams = False
        if media == MEDIA_TYPE and operation in _FORMS:
            model = _form_model(types[0], body)
        elif not media.startswith(b"multipart/") and (_is_json(media) or _OBJECT.match(body)):
            # JSON is read whatever it is called: what decides about access must not depend on a header.
            request = _read(body)
            if isinstance(request, Problem):
                return request
            model, streams = request.model, request.stream is True
        else:
            # An upstream may well read what the gateway cannot (a byte order mark, UTF-16, another multipart).
            return _NO_FORM if operation not in _FORMS else _NOTHING_READ
        if isinstance(model, Problem):
            return model
        if model is not None and (problem := wrong_model(model)) is not None:
            return problem
        return Call(self.protocol, operation, model or "", Asked.ANYTHING, body, asks_stream=streams)

    def address(self, call: Call, head: RequestHead, channel: Channel, upstream_model: str) -> UpstreamRequest:
        """The body as it came, with the bytes of the model's name replaced where the upstream names it otherwise."""
        parts: tuple[Part, ...] = (call.body,)
        if call.model and upstream_model != call.model:
            parts = _renamed(call.body, head, upstream_model)
        path = dict(channel.paths).get(call.operation) or "/" + call.operation.replace(".", "/")
        path = path.replace("{model}", quote(upstream_model, safe=""))
        return UpstreamRequest("POST", path, without_key(head.query), [], parts)

    def seed(self, call: Call, head: RequestHead) -> bytes:
        """The session, else the body's first 4 KiB: requests that begin alike may share a prompt cache, others
        spread."""
        return session(head) or call.body[:_SEED_BYTES]

    def observer(self, call: Call, added_usage: bool) -> Observer:
        """A fresh observer."""
        return PassthroughObserver(self.protocol)

    def may_open_early(self, call: Call, head: RequestHead) -> bool:
        """Never: what will come is not known."""
        return False

    def keepalive(self, line_end: bytes | None, saw_id: bool, head: RequestHead, comment: str) -> bytes:
        """None: no form is safe in bytes that may be anything."""
        return b""

    def refuse(self, problem: Problem, request_id: str) -> Reply:
        """`{"error": {message, type, param, code}}`."""
        return refuse_openai(problem)

    def interrupt(
        self, problem: Problem, observer: Observer | None, line_end: bytes | None, request_id: str = ""
    ) -> bytes:
        """None: the connection is aborted."""
        return b""

    def classify_fault(self, head: ReplyHead, body: bytes) -> Problem | None:
        """What a 200 with an error object, or an error reply's body, says."""
        return error_of(body)


def _media(content_type: bytes) -> bytes:
    return content_type.partition(b";")[0].strip().lower()


def _is_json(media: bytes) -> bool:
    return media == b"application/json" or media.endswith(b"+json")


def _read(body: bytes) -> _Request | Problem:
    """By msgspec, and what it refuses once more by the standard library (lone surrogates)."""
    try:
        return other_spelling(body) or _decode(body)
    except msgspec.ValidationError as error:
        return wrong_field(error)
    except (msgspec.DecodeError, RecursionError):
        value = read_json(body)
    if isinstance(value, Problem):
        return value
    try:
        return msgspec.convert(value, _Request)
    except msgspec.ValidationError as error:
        return wrong_field(error)


def _form_model(content_type: bytes, body: bytes) -> str | Problem | None:
    try:
        span = field_span(body, boundary_of(content_type), b"model")
        return None if span is None else body[span[0] : span[1]].decode("utf-8")
    except MultipartError as error:
        return Problem(Kind.BAD_REQUEST, f"The form cannot be read: {error}. Send it as multipart/form-data.")
    except UnicodeDecodeError:
        return Problem(Kind.BAD_REQUEST, "`model` is not UTF-8. Name a model from GET /v1/models.", param="model")


def _renamed(body: bytes, head: RequestHead, model: str) -> tuple[Part, ...]:
    """`body` with another model's name; all else stays where it is. The request has been read before."""
    content_type = head.header(b"content-type") or b""
    if _media(content_type) != MEDIA_TYPE:
        return replace_all(body, [(model_span(body), msgspec.json.encode(model))])
    span = field_span(body, boundary_of(content_type), b"model")
    if span is None:
        raise ValueError("a form that was read has a model")
    return replace(body, span, model.encode("utf-8"))
