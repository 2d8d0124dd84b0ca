"""From a request to its reply: checks the key, finds endpoint and scenario, and has `composition` join the rest.

A new protocol is a module that offers `WireProtocol`, and a line in `_PROTOCOLS`. Gemini's paths name model and form
too, so what is spoken there is made for each request.
"""

import random
import string
import time
from urllib.parse import unquote

from headrace.simulator import (
    chat,
    embeddings,
    gemini,
    messages,
    messages_count,
    passthrough,
    passthrough_completions,
    responses,
    responses_compact,
    responses_input_tokens,
)
from headrace.simulator.answer import Asked, answer_from
from headrace.simulator.composition import (
    EVENTS,
    PLAIN,
    WireProtocol,
    check_size,
    fixed_body,
    json_reply,
    pieces_reply,
    plain_reply,
    stream_reply,
    truth_of,
)
from headrace.simulator.errors import Refused, bad_key, error_json, unknown_model
from headrace.simulator.fields import ScriptError
from headrace.simulator.listing import model_json, models_json
from headrace.simulator.recorded import Recorded, Truth
from headrace.simulator.reply import Reply
from headrace.simulator.request import Request, RequestError, model_and_stream
from headrace.simulator.scenario import ErrorSpec, Refuse, Scenario
from headrace.simulator.script import HEADER, Script

MODELS = "/models"
_ALPHABET = string.ascii_letters + string.digits
# The end of a path → what is spoken there.
_PROTOCOLS: dict[str, WireProtocol] = {
    chat.PATH: chat,
    responses.PATH: responses,
    responses_input_tokens.PATH: responses_input_tokens,
    responses_compact.PATH: responses_compact,
    messages.PATH: messages,
    messages_count.PATH: messages_count,
    passthrough_completions.PATH: passthrough_completions,  # behind chat, whose path ends in the same word
}


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
            own_headers = _protocol(request).own_headers
            return plain_reply(request, refused.status, refused.body, refused.allow, own_headers)

    def bad_script(self, request: Request, error: ScriptError) -> Reply:
        """The reply to an x-simulate header that cannot be played."""
        spec = ErrorSpec(str(error), code="bad_scenario", param=HEADER)
        return plain_reply(request, 400, _protocol(request).error_body(400, spec))

    def _check_key(self, request: Request) -> None:
        if self.script.keys and request.credential not in self.script.keys:
            protocol = _protocol(request)
            is_openai = protocol.error_body is error_json
            raise Refused(401, bad_key(request.credential) if is_openai else protocol.error_body(401, ErrorSpec()))

    def _routed(self, request: Request, chosen: Scenario | None, record: Recorded) -> Reply | Refuse:
        path = request.path
        try:
            if (protocol := _spoken_at(request)) is not None:
                _allow(request, "POST")
                return self._spoken(protocol, request, chosen, record)
            if path.endswith(embeddings.PATH):
                _allow(request, "POST")
                return self._embeddings(request, chosen, record)
            if (make := passthrough.find(path)) is not None:
                _allow(request, "POST")
                return self._passed(make, request, chosen, record)
        except RequestError as error:
            body = _protocol(request).error_body(400, ErrorSpec(error.message, param=error.param))
            raise Refused(400, body) from None
        _, found, model = path.rpartition(MODELS)
        if found and (not model or model.startswith("/")):
            _allow(request, "GET")
            return self._models(request, chosen or PLAIN, unquote(model[1:]))
        return self._other(request, chosen, record)

    def _spoken(
        self, protocol: WireProtocol, request: Request, chosen: Scenario | None, record: Recorded
    ) -> Reply | Refuse:
        if chosen is not None and chosen.faults.ignore_request_body:
            asked = Asked(model="unread", stream=bool(chosen.spelling.stream))
        else:
            asked = protocol.read_request(request.body)
        scenario = self._scenario(request, chosen, asked, record)
        if scenario.faults.refuse is not None:
            return scenario.faults.refuse
        answer = answer_from(scenario.content, asked, protocol.id_from(_random(29)), int(time.time()))
        streams = asked.stream if scenario.spelling.stream is None else scenario.spelling.stream
        record.stream = streams
        fixed = fixed_body(scenario, streams=streams, error_body=protocol.error_body)
        record.truth = truth_of(scenario, answer, generated=fixed is None)
        if fixed is not None:
            return json_reply(request, scenario, fixed, own_headers=protocol.own_headers)
        check_size(scenario, answer, streams=streams)
        if not streams:
            body, tokens = protocol.whole(answer, scenario), answer.counts.completion
            return json_reply(request, scenario, body, tokens=tokens, own_headers=protocol.own_headers)
        form = protocol.form if isinstance(protocol, gemini.Speaker) else EVENTS
        return stream_reply(request, scenario, answer, protocol, form)

    def _embeddings(self, request: Request, chosen: Scenario | None, record: Recorded) -> Reply | Refuse:
        asked, inputs = embeddings.read_request(request.body)
        scenario = self._scenario(request, chosen, asked, record)
        if scenario.faults.refuse is not None:
            return scenario.faults.refuse
        record.truth = Truth(asked.prompt_tokens)
        fixed = fixed_body(scenario, streams=False)
        body = embeddings.embeddings_json(asked, inputs, scenario.content.usage) if fixed is None else fixed
        return json_reply(request, scenario, body)

    def _passed(
        self, make: passthrough.Make, request: Request, chosen: Scenario | None, record: Recorded
    ) -> Reply | Refuse:
        asked, fields = passthrough.read_request(request)
        scenario = self._scenario(request, chosen, asked, record)
        if scenario.faults.refuse is not None:
            return scenario.faults.refuse
        record.stream = asked.stream if scenario.spelling.stream is None else scenario.spelling.stream
        answer = answer_from(scenario.content, asked, _random(29), int(time.time()))
        if record.stream and (scenario.spelling.events is not None or scenario.spelling.raw is not None):
            return stream_reply(request, scenario, answer, chat)
        record.truth = Truth(asked.prompt_tokens)
        fixed = fixed_body(scenario, streams=False)
        if fixed is not None:
            return json_reply(request, scenario, fixed)
        made = make(fields, answer)
        if made.in_pieces:
            return pieces_reply(request, scenario, made.pieces, made.content_type)
        return json_reply(request, scenario, b"".join(made.pieces))

    def _models(self, request: Request, scenario: Scenario, model: str) -> Reply | Refuse:
        if scenario.faults.refuse is not None:
            return scenario.faults.refuse
        ids = self.script.model_ids
        if model and model not in ids:
            raise Refused(404, unknown_model(model))
        fixed = fixed_body(scenario, streams=False)
        made = model_json(model) if model else models_json(ids)
        return json_reply(request, scenario, made if fixed is None else fixed)

    def _other(self, request: Request, chosen: Scenario | None, record: Recorded) -> Reply | Refuse:
        """An endpoint that the simulator does not speak: it can still play bytes that the script gives whole."""
        asked = Asked(*model_and_stream(request.body))
        scenario = self._scenario(request, chosen, asked, record)
        if scenario.faults.refuse is not None:
            return scenario.faults.refuse
        record.stream = asked.stream if scenario.spelling.stream is None else scenario.spelling.stream
        fixed = fixed_body(scenario, streams=record.stream)
        if fixed is not None:
            return json_reply(request, scenario, fixed)
        if record.stream and (scenario.spelling.events is not None or scenario.spelling.raw is not None):
            record.truth = Truth(completion=scenario.content.usage.completion or 0)
            return stream_reply(request, scenario, answer_from(scenario.content, asked, "", 0), chat)
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


def _allow(request: Request, method: str) -> None:
    if request.method != method:
        text = f"Not allowed to {request.method} on {request.path} (HINT: Perhaps you meant to {method}?)"
        body = _protocol(request).error_body(405, ErrorSpec(text, code="method_not_supported"))
        raise Refused(405, body, method)


def _protocol(request: Request) -> WireProtocol:
    """What is spoken at the request's path; where nothing is, errors are OpenAI's."""
    return _spoken_at(request) or chat


def _spoken_at(request: Request) -> WireProtocol | None:
    found = next((protocol for end, protocol in _PROTOCOLS.items() if request.path.endswith(end)), None)
    return found or gemini.speaker(request)


def _random(length: int) -> str:
    return "".join(random.choices(_ALPHABET, k=length))
