"""Gemini: generateContent, streamGenerateContent, countTokens and embeddings, under `/v1` and `/v1beta`."""

from typing import Any

import msgspec

from headrace.http.model_path import VERBS, encoded, has_dot_segment, model_and_verb, streams_events
from headrace.http.target import without_key
from headrace.model.channel import Channel
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call, Reply, ReplyHead, RequestHead, UpstreamRequest
from headrace.model.wire import Asked, Dialect, WireProtocol
from headrace.protocols.body import count_from
from headrace.protocols.dialect import gemini_error, read_json, refuse_gemini
from headrace.protocols.gemini_fault import problem_from_body
from headrace.protocols.gemini_observer import GeminiObserver
from headrace.protocols.interface import Observer
from headrace.protocols.keepalive import is_go
from headrace.protocols.session import session

_SEED_BYTES = 4096
_STREAM = "streamGenerateContent"
_VERB_OF = {operation: verb for verb, operation in VERBS.items()}
_GENERATING = frozenset((VERBS["generateContent"], VERBS[_STREAM]))
_NAMED = ("models/", "tunedModels/")
"""How an upstream's name begins that says itself what it names."""


class _Request(msgspec.Struct):
    """What the gateway reads; all other members pass unread. JSON of protocol buffers may be spelled either way."""

    generationConfig: Any = None  # noqa: N815
    generation_config: Any = None


class _Turn(msgspec.Struct):
    role: Any = None
    parts: msgspec.Raw = msgspec.Raw(b"")


class _Seed(msgspec.Struct):
    contents: list[_Turn] = []


_decode = msgspec.json.Decoder(_Request).decode
_decode_seed = msgspec.json.Decoder(_Seed).decode


class Gemini:
    """The protocol `gemini` (see `protocols.interface.Api`)."""

    protocol = WireProtocol.GEMINI
    dialect = Dialect.GEMINI
    keeps_comments = False

    def inspect(self, head: RequestHead, body: bytes, operation: str) -> Call | Problem:
        """Model and streaming from the path, the cap of output from the body, which must be a JSON object."""
        found = model_and_verb(head.path)
        if found is None or not found[0]:
            return Problem(
                Kind.BAD_REQUEST, "The path names no model. Call /v1beta/models/MODEL:generateContent.", param="model"
            )
        if has_dot_segment(found[0]):
            return Problem(
                Kind.BAD_REQUEST,
                "The model's name has a part `.` or `..`. Name a model from GET /v1/models.",
                param="model",
            )
        config = _config(body)
        if isinstance(config, Problem):
            return config
        return Call(
            protocol=self.protocol,
            operation=operation,
            model=found[0],
            asked=_asked(found[1], head.query),
            body=body,
            max_output=count_from(config.get("maxOutputTokens") or config.get("max_output_tokens")),
            choices=count_from(config.get("candidateCount") or config.get("candidate_count")) or 1,
        )

    def address(self, call: Call, head: RequestHead, channel: Channel, upstream_model: str) -> UpstreamRequest:
        """The upstream's name for the model in the path; the query without the client's key; the body as it came."""
        model = encoded(upstream_model)
        path = dict(channel.paths).get(call.operation) if channel.paths else None
        if path is None:
            place = model if model.startswith(_NAMED) else f"models/{model}"
            path = f"/{place}:{_VERB_OF[call.operation]}"
        return UpstreamRequest("POST", path.replace("{model}", model), without_key(head.query), [], (call.body,))

    def seed(self, call: Call, head: RequestHead) -> bytes:
        """The session, else the first 4 KiB of the first user content's parts."""
        if named := session(head):
            return named
        try:
            read = _decode_seed(call.body)
        except (msgspec.MsgspecError, RecursionError):
            return b""
        for turn in read.contents:
            if turn.role in (None, "user"):
                return bytes(memoryview(turn.parts)[:_SEED_BYTES])
        return b""

    def observer(self, call: Call, added_usage: bool) -> Observer:
        """A fresh observer."""
        return GeminiObserver(array=call.asked is Asked.ARRAY, generates=call.operation in _GENERATING)

    def may_open_early(self, call: Call, head: RequestHead) -> bool:
        """Not in an array; not for the legacy JavaScript SDK, which stands no blank line, and not for Go."""
        return call.asked is Asked.EVENTS and not _is_legacy(head) and not is_go(head)

    def keepalive(self, line_end: bytes | None, saw_id: bool, head: RequestHead, comment: str) -> bytes:
        """An empty event in the stream's own line ending: google-genai and Go take every other form for broken JSON."""
        return b"" if _is_legacy(head) or not streams_events(head.query) else _blank_lines(line_end)

    def refuse(self, problem: Problem, request_id: str) -> Reply:
        """`{"error": {code, message, status}}`."""
        return refuse_gemini(problem)

    def interrupt(
        self, problem: Problem, observer: Observer | None, line_end: bytes | None, request_id: str = ""
    ) -> bytes:
        """`data: {"error": …}`: its only member, with an integer code, else google-genai passes over it or fails on it.

        Before any event it has code and status of the cause. An array has no form for it.
        """
        error = gemini_error(problem)
        if isinstance(observer, GeminiObserver):
            if observer.array:
                return b""
            error |= {"code": 503, "status": "UNAVAILABLE"}
        return b"data: " + msgspec.json.encode({"error": error}) + _blank_lines(line_end)

    def classify_fault(self, head: ReplyHead, body: bytes) -> Problem | None:
        """What a 200 with an error object, or an error reply's body, says."""
        return problem_from_body(body, head.status)


def _asked(verb: str, query: str) -> Asked:
    """By the path and `alt`, never by Accept."""
    if verb != _STREAM:
        return Asked.JSON
    return Asked.EVENTS if streams_events(query) else Asked.ARRAY


def _config(body: bytes) -> dict[str, Any] | Problem:
    """The body's generationConfig, empty where there is none; a Problem where the body is no JSON object."""
    try:
        request = _decode(body)
    except msgspec.ValidationError:
        return _NO_OBJECT
    except (msgspec.DecodeError, RecursionError):
        value = read_json(body)
        if not isinstance(value, dict):
            return value if isinstance(value, Problem) else _NO_OBJECT
        request = _Request(value.get("generationConfig"), value.get("generation_config"))
    config = request.generationConfig or request.generation_config
    return config if isinstance(config, dict) else {}


def _blank_lines(line_end: bytes | None) -> bytes:
    """The stream's line ending, twice. Google's own where it is not known: a CR may be half of one that was cut."""
    return b"\n\n" if line_end == b"\n" else b"\r\n\r\n"


def _is_legacy(head: RequestHead) -> bool:
    """Whether the client is @google/generative-ai, whose reader takes a blank line for a broken event."""
    return b"genai-js/" in (head.header(b"x-goog-api-client") or b"")


_NO_OBJECT = Problem(Kind.BAD_REQUEST, "The request body must be one JSON object. Send one in UTF-8.")
