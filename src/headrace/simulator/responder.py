"""From a request to the reply that its scenario describes: routes, chooses, joins answer, spelling and faults.

Adding a protocol: a module with `read_request`, `events`, `whole`, `error_event`, and a line in `_ENDPOINTS`.
"""

import itertools
import random
import string
import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

from headrace.simulator import chat, embeddings
from headrace.simulator.answer import Answer, Asked, answer_from
from headrace.simulator.errors import bad_key, error_json, unknown_model
from headrace.simulator.fields import MAX_BYTES, ScriptError
from headrace.simulator.listing import model_json, models_json
from headrace.simulator.recorded import Recorded, Truth
from headrace.simulator.reply import Body, Headers, Reply, reply_from
from headrace.simulator.request import Request, RequestError
from headrace.simulator.scenario import ErrorSpec, Faults, Framing, How, Refuse, Scenario, WriteMode
from headrace.simulator.script import HEADER, Script
from headrace.simulator.spelling import Event, events_from_raw, events_from_script, speller
from headrace.simulator.timeline import Timeline

JSON = "application/json"
EVENT_STREAM = "text/event-stream; charset=utf-8"
MODELS = "/models"
_ALPHABET = string.ascii_letters + string.digits
_PLAIN = Scenario()


class Refused(Exception):  # noqa: N818  (an outcome of routing, not an error of the program)
    """A request that gets an error reply before any scenario plays."""

    def __init__(self, status: int, body: bytes, allow: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.allow = allow


class Responder:
    """Holds the script and, per scenario, how far its sequence has come."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._turns: dict[str, int] = {}

    def reset(self, name: str | None = None) -> None:
        """Sequences begin again: all, or those of one scenario."""
        if name is None:
            self._turns.clear()
            return
        for key in [key for key in self._turns if key == name or key.startswith(f"{name}/")]:
            del self._turns[key]

    def choose_early(self, request: Request, record: Recorded) -> Scenario | None:
        """The scenario that the head names (x-simulate, path); None: the body's model will. Raises ScriptError."""
        named = request.header(HEADER)
        found = self.script.by_header(named) if named is not None else self.script.by_path(request.path)
        return None if found is None else self._resolve(found, request.credential, record)

    def reply(self, request: Request, chosen: Scenario | None, record: Recorded) -> Reply | Refuse:
        """The reply to a whole request; `chosen` from `choose_early`."""
        try:
            self._check_key(request)
            return self._routed(request, chosen, record)
        except Refused as refused:
            return plain_reply(request, refused.status, refused.body, refused.allow)

    def bad_script(self, request: Request, error: ScriptError) -> Reply:
        """The reply to an x-simulate header that cannot be played."""
        return plain_reply(request, 400, error_json(400, ErrorSpec(str(error), code="bad_scenario", param=HEADER)))

    def _check_key(self, request: Request) -> None:
        if self.script.keys and request.credential not in self.script.keys:
            raise Refused(401, bad_key(request.credential))

    def _routed(self, request: Request, chosen: Scenario | None, record: Recorded) -> Reply | Refuse:
        path = request.path
        try:
            if path.endswith(chat.PATH):
                _allow(request, "POST")
                return self._chat(request, chosen, record)
            if path.endswith(embeddings.PATH):
                _allow(request, "POST")
                return self._embeddings(request, chosen, record)
        except RequestError as error:
            raise Refused(400, error_json(400, ErrorSpec(error.message, param=error.param))) from None
        _, found, model = path.rpartition(MODELS)
        if found and (not model or model.startswith("/")):
            _allow(request, "GET")
            return self._models(request, chosen or _PLAIN, unquote(model[1:]))
        return self._other(request, chosen, record)

    def _chat(self, request: Request, chosen: Scenario | None, record: Recorded) -> Reply | Refuse:
        if chosen is not None and chosen.faults.ignore_request_body:
            asked = Asked(model="unread", stream=bool(chosen.spelling.stream))
        else:
            asked = chat.read_request(request.body)
        scenario = self._scenario(request, chosen, asked, record)
        if scenario.faults.refuse is not None:
            return scenario.faults.refuse
        answer = answer_from(scenario.content, asked, f"chatcmpl-{_random(29)}", int(time.time()))
        streams = asked.stream if scenario.spelling.stream is None else scenario.spelling.stream
        record.stream = streams
        fixed = _fixed_body(scenario, streams=streams)
        record.truth = _truth(scenario, answer, generated=fixed is None)
        if fixed is not None:
            return _json_reply(request, scenario, fixed)
        _check_size(scenario, answer, streams=streams)
        if not streams:
            return _json_reply(request, scenario, chat.whole(answer, scenario), tokens=answer.counts.completion)
        return _stream_reply(request, scenario, answer)

    def _embeddings(self, request: Request, chosen: Scenario | None, record: Recorded) -> Reply | Refuse:
        asked, inputs = embeddings.read_request(request.body)
        scenario = self._scenario(request, chosen, asked, record)
        if scenario.faults.refuse is not None:
            return scenario.faults.refuse
        record.truth = Truth(asked.prompt_tokens)
        fixed = _fixed_body(scenario, streams=False)
        body = embeddings.embeddings_json(asked, inputs, scenario.content.usage) if fixed is None else fixed
        return _json_reply(request, scenario, body)

    def _models(self, request: Request, scenario: Scenario, model: str) -> Reply | Refuse:
        if scenario.faults.refuse is not None:
            return scenario.faults.refuse
        ids = self.script.model_ids
        if model and model not in ids:
            raise Refused(404, unknown_model(model))
        fixed = _fixed_body(scenario, streams=False)
        made = model_json(model) if model else models_json(ids)
        return _json_reply(request, scenario, made if fixed is None else fixed)

    def _other(self, request: Request, chosen: Scenario | None, record: Recorded) -> Reply | Refuse:
        """An endpoint that the simulator does not speak: it can still play bytes that the script gives whole."""
        asked = chat.read_envelope(request.body)
        scenario = self._scenario(request, chosen, asked, record)
        if scenario.faults.refuse is not None:
            return scenario.faults.refuse
        record.stream = asked.stream if scenario.spelling.stream is None else scenario.spelling.stream
        fixed = _fixed_body(scenario, streams=record.stream)
        if fixed is not None:
            return _json_reply(request, scenario, fixed)
        if record.stream and (scenario.spelling.events is not None or scenario.spelling.raw is not None):
            record.truth = Truth(completion=scenario.content.usage.completion or 0)
            return _stream_reply(request, scenario, answer_from(scenario.content, asked, "", 0))
        raise Refused(404, error_json(404, ErrorSpec(f"Invalid URL ({request.method} {request.path})")))

    def _scenario(self, request: Request, chosen: Scenario | None, asked: Asked, record: Recorded) -> Scenario:
        record.model = asked.model
        if chosen is not None:
            return chosen
        return self._resolve(self.script.by_model(asked.model), request.credential, record)

    def _resolve(self, scenario: Scenario, credential: str | None, record: Recorded) -> Scenario:
        """The one reply of a sequence or of a choice by credential; a sequence moves on by one."""
        record.scenario = scenario.name
        while scenario.sequence or scenario.by_credential:
            if scenario.sequence:
                turn = self._turns.get(scenario.name, 0)
                self._turns[scenario.name] = turn + 1
                scenario = scenario.sequence[min(turn, len(scenario.sequence) - 1)]
            else:
                cases = scenario.by_credential
                scenario = cases.get(credential or "", cases["*"])
        return scenario


def plain_reply(request: Request, status: int, body: bytes, allow: str = "") -> Reply:
    """A reply outside every scenario."""
    extra = (("Allow", allow),) if allow else ()
    return _json_reply(request, replace(_PLAIN, faults=Faults(status=status)), body, extra)


def _allow(request: Request, method: str) -> None:
    if request.method != method:
        text = f"Not allowed to {request.method} on {request.path} (HINT: Perhaps you meant to {method}?)"
        raise Refused(405, error_json(405, ErrorSpec(text, code="method_not_supported")), method)


def _fixed_body(scenario: Scenario, *, streams: bool) -> bytes | None:
    """A body that the scenario gives, or an error's; None: the answer is played."""
    faults, spelling = scenario.faults, scenario.spelling
    if faults.body is not None:
        return faults.body
    if streams and (spelling.events is not None or spelling.raw is not None or faults.error_first):
        return None
    if not streams and spelling.raw is not None:
        return spelling.raw
    if not streams and faults.error_first:
        return error_json(_error_status(faults), faults.error)
    return error_json(faults.status, faults.error) if faults.status >= 400 else None


def _check_size(scenario: Scenario, answer: Answer, *, streams: bool) -> None:
    """A body that must be made whole has to fit into memory; a stream does not."""
    lazy = streams and scenario.faults.framing is not Framing.LENGTH
    lazy = lazy and scenario.pacing.writes.mode is not WriteMode.JOINED
    size = sum(choice.size for choice in answer.choices)
    if not lazy and size > MAX_BYTES:
        text = f"{HEADER}: {size} bytes of text; at most {MAX_BYTES} without streaming, with a length, or joined"
        raise Refused(400, error_json(400, ErrorSpec(text, code="bad_scenario")))


def _truth(scenario: Scenario, answer: Answer, *, generated: bool) -> Truth:
    """Bytes of the script's own hold only the tokens that the script says they hold."""
    own = scenario.spelling.events is not None or scenario.spelling.raw is not None or scenario.faults.error_first
    said = answer.counts.completion if generated and not own else scenario.content.usage.completion or 0
    return Truth(answer.counts.prompt, said)


def _error_status(faults: Faults) -> int:
    return faults.status if faults.status >= 400 else 500


def _json_reply(request: Request, scenario: Scenario, body: bytes, extra: Headers = (), tokens: int = 0) -> Reply:
    """A reply of one body, which is one event; `tokens`: the completion tokens that it says."""
    events = [Event(raw=body, tokens=tokens)] if body else []
    return _reply(request, scenario, Timeline(events, speller(scenario.spelling)), _type_of(body), extra)


def _type_of(body: bytes) -> str:
    match body[:1]:
        case b"{" | b"[" | b"":
            return JSON
        case b"<":
            return "text/html; charset=utf-8"
        case _:
            return "text/plain; charset=utf-8"


def _stream_reply(request: Request, scenario: Scenario, answer: Answer) -> Reply:
    spelling = scenario.spelling
    timeline = Timeline(_stream_events(scenario, answer), speller(spelling), spelling.preamble)
    return _reply(request, scenario, timeline, EVENT_STREAM)


def _stream_events(scenario: Scenario, answer: Answer) -> Iterator[Event]:
    spelling, faults = scenario.spelling, scenario.faults
    if spelling.events is not None:
        events = events_from_script(spelling.events)
    elif spelling.raw is not None:
        events = events_from_raw(spelling.raw)
    else:
        events = _generated(scenario, answer)
    error_at = 0 if faults.error_first else faults.error_at
    if error_at is None:
        yield from events
        return
    tokens = 0
    for event in itertools.islice(events, error_at):
        tokens = event.tokens
        yield event
    yield chat.error_event(_error_status(faults), faults.error, tokens)
    if spelling.done is not None and spelling.done is not False:
        yield chat.done_event(_done_payload(spelling.done), tokens)


def _generated(scenario: Scenario, answer: Answer) -> Iterator[Event]:
    tokens = 0
    for event in chat.events(answer, scenario):
        tokens = event.tokens
        yield event
    if scenario.spelling.done is not False:
        yield chat.done_event(_done_payload(scenario.spelling.done), tokens)


def _done_payload(done: bool | str | None) -> str:
    return done if isinstance(done, str) else "[DONE]"


def _reply(request: Request, scenario: Scenario, timeline: Timeline, usual_type: str, extra: Headers = ()) -> Reply:
    """The HTTP side: framing, and the length if it is told ahead, which needs the whole body now."""
    faults = scenario.faults
    streams = usual_type == EVENT_STREAM
    framing = faults.framing or (Framing.CHUNKED if streams or faults.trailers else Framing.LENGTH)
    length = None
    if framing is Framing.LENGTH:
        # A cut body's length is that of the whole, so that the cut shows; a clean early end is well-framed.
        told = faults if faults.cut is not None and faults.cut.how is How.CLEAN else replace(faults, cut=None)
        scenario = replace(scenario, pacing=replace(scenario.pacing, heartbeats=()))
        timeline, length = timeline.measured(scenario.pacing, told)
    body = Body(faults.content_type or usual_type, timeline, framing, length)
    ms = round(1000 * (scenario.pacing.head_delay_s + scenario.pacing.first_delay_s)) or 1
    own = (
        ("openai-organization", "simulator"),
        ("openai-processing-ms", str(ms)),
        ("openai-version", "2020-10-01"),
        ("x-request-id", f"req_{random.getrandbits(128):032x}"),
    )
    keep_alive = wants_keep_alive(request) and not faults.ignore_request_body
    return reply_from(scenario, body, own + extra, request.version, keep_alive=keep_alive)


def wants_keep_alive(request: Request) -> bool:
    """RFC 9112 9.3."""
    asked = (request.header("connection") or "").lower()
    return "close" not in asked and (request.version != "1.0" or "keep-alive" in asked)


def _random(length: int) -> str:
    return "".join(random.choices(_ALPHABET, k=length))
