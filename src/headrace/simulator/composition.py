"""Joins a scenario's parts into a reply: what is said, as a protocol spells it, with pacing and faults."""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from headrace.simulator.answer import Answer, Asked
from headrace.simulator.errors import Refused, error_json
from headrace.simulator.fields import MAX_BYTES
from headrace.simulator.recorded import Truth
from headrace.simulator.reply import Body, Headers, Reply, reply_from
from headrace.simulator.request import Request
from headrace.simulator.scenario import ErrorSpec, Faults, Framing, How, LineEnd, Scenario, WriteMode
from headrace.simulator.script import HEADER
from headrace.simulator.spelling import Event, events_from_raw, events_from_script, speller
from headrace.simulator.timeline import Timeline

JSON = "application/json"
EVENT_STREAM = "text/event-stream; charset=utf-8"
PLAIN = Scenario()


@dataclass(frozen=True, slots=True)
class StreamForm:
    """How a protocol streams, where the scenario says nothing about it."""

    content_type: str = EVENT_STREAM
    line_end: LineEnd = LineEnd.LF


EVENTS = StreamForm()


class WireProtocol(Protocol):
    """What a protocol's module offers (chat.py is the first); modules themselves are the implementations."""

    ENDS_IN_DONE: bool
    """Whether its streams end in `[DONE]` where the scenario says nothing about it."""

    def read_request(self, body: bytes) -> Asked:
        """Raises RequestError."""

    def id_from(self, letters: str) -> str:
        """An answer's id around 29 random letters and digits."""

    def events(self, answer: Answer, scenario: Scenario) -> Iterator[Event]:
        """The generated events of a stream, but for the one that `done` stands for."""

    def done_event(self, payload: str, tokens: int) -> Event: ...

    def error_event(self, status: int, spec: ErrorSpec, tokens: int, position: int) -> Event:
        """`position`: how many events of the stream stand before it."""

    def error_body(self, status: int, spec: ErrorSpec) -> bytes: ...

    def own_headers(self, ms: int) -> Headers:
        """The API's own headers; `ms`: how long the answer took to begin."""

    def whole(self, answer: Answer, scenario: Scenario) -> bytes:
        """The body of a reply without streaming."""


ErrorBody = Callable[[int, ErrorSpec], bytes]
"""An error's body from its status, as a protocol spells it."""


def fixed_body(scenario: Scenario, *, streams: bool, error_body: ErrorBody = error_json) -> bytes | None:
    """A body that the scenario gives, or an error's; None: the answer is played."""
    faults, spelling = scenario.faults, scenario.spelling
    if faults.body is not None:
        return faults.body
    if streams and (spelling.events is not None or spelling.raw is not None or faults.error_first):
        return None
    if not streams and spelling.raw is not None:
        return spelling.raw
    if not streams and faults.error_first:
        return error_body(_error_status(faults), faults.error)
    return error_body(faults.status, faults.error) if faults.status >= 400 else None


def check_size(scenario: Scenario, answer: Answer, *, streams: bool) -> None:
    """A body that must be made whole has to fit into memory; a stream does not. Raises Refused."""
    lazy = streams and scenario.faults.framing is not Framing.LENGTH
    lazy = lazy and scenario.pacing.writes.mode is not WriteMode.JOINED
    size = sum(choice.size for choice in answer.choices)
    if not lazy and size > MAX_BYTES:
        text = f"{HEADER}: {size} bytes of text; at most {MAX_BYTES} without streaming, with a length, or joined"
        raise Refused(400, error_json(400, ErrorSpec(text, code="bad_scenario")))


def truth_of(scenario: Scenario, answer: Answer, *, generated: bool) -> Truth:
    """Bytes of the script's own hold only the tokens that the script says they hold."""
    own = scenario.spelling.events is not None or scenario.spelling.raw is not None or scenario.faults.error_first
    said = answer.counts.completion if generated and not own else scenario.content.usage.completion or 0
    return Truth(answer.counts.prompt, said)


def _error_status(faults: Faults) -> int:
    return faults.status if faults.status >= 400 else 500


def openai_headers(ms: int) -> Headers:
    """OpenAI's own headers, which every reply has that is no other API's."""
    return (
        ("openai-organization", "simulator"),
        ("openai-processing-ms", str(ms)),
        ("openai-version", "2020-10-01"),
        ("x-request-id", f"req_{random.getrandbits(128):032x}"),
    )


OwnHeaders = Callable[[int], Headers]


def json_reply(
    request: Request,
    scenario: Scenario,
    body: bytes,
    extra: Headers = (),
    tokens: int = 0,
    own_headers: OwnHeaders = openai_headers,
) -> Reply:
    """A reply of one body, which is one event; `tokens`: the completion tokens that it says."""
    events = [Event(raw=body, tokens=tokens)] if body else []
    timeline = Timeline(events, speller(scenario.spelling))
    return _reply(request, scenario, timeline, _type_of(body), own_headers, extra)


def pieces_reply(request: Request, scenario: Scenario, pieces: Iterable[bytes], usual_type: str) -> Reply:
    """A chunked reply of bytes; each piece is paced as an event is."""
    timeline = Timeline([Event(raw=piece) for piece in pieces], speller(scenario.spelling))
    return _reply(request, scenario, timeline, usual_type, openai_headers, streams=True)


def _type_of(body: bytes) -> str:
    match body[:1]:
        case b"{" | b"[" | b"":
            return JSON
        case b"<":
            return "text/html; charset=utf-8"
        case _:
            return "text/plain; charset=utf-8"


def stream_reply(
    request: Request, scenario: Scenario, answer: Answer, protocol: WireProtocol, form: StreamForm = EVENTS
) -> Reply:
    """A reply of server-sent events: the scenario's own, or the protocol's."""
    spell = speller(scenario.spelling, form.line_end)
    timeline = Timeline(_stream_events(scenario, answer, protocol), spell, scenario.spelling.preamble)
    return _reply(request, scenario, timeline, form.content_type, protocol.own_headers, streams=True)


def _stream_events(scenario: Scenario, answer: Answer, protocol: WireProtocol) -> Iterator[Event]:
    spelling, faults = scenario.spelling, scenario.faults
    if spelling.events is not None:
        events = events_from_script(spelling.events)
    elif spelling.raw is not None:
        events = events_from_raw(spelling.raw)
    else:
        events = _generated(scenario, answer, protocol)
    error_at = 0 if faults.error_first else faults.error_at
    if error_at is None:
        yield from events
        return
    tokens = position = 0
    for event in itertools.islice(events, error_at):
        tokens = event.tokens
        position += 1
        yield event
    yield protocol.error_event(_error_status(faults), faults.error, tokens, position)
    if spelling.done is not None and spelling.done is not False:
        yield protocol.done_event(_done_payload(spelling.done), tokens)


def _generated(scenario: Scenario, answer: Answer, protocol: WireProtocol) -> Iterator[Event]:
    tokens = 0
    for event in protocol.events(answer, scenario):
        tokens = event.tokens
        yield event
    done = protocol.ENDS_IN_DONE if scenario.spelling.done is None else scenario.spelling.done
    if done is not False:
        yield protocol.done_event(_done_payload(done), tokens)


def _done_payload(done: bool | str) -> str:
    return done if isinstance(done, str) else "[DONE]"


def _reply(
    request: Request,
    scenario: Scenario,
    timeline: Timeline,
    usual_type: str,
    own_headers: OwnHeaders,
    extra: Headers = (),
    streams: bool = False,
) -> Reply:
    """The HTTP side: framing, and the length if it is told ahead, which needs the whole body now."""
    faults = scenario.faults
    framing = faults.framing or (Framing.CHUNKED if streams or faults.trailers else Framing.LENGTH)
    length = None
    if framing is Framing.LENGTH:
        # A cut body's length is that of the whole, so that the cut shows; a clean early end is well-framed.
        told = faults if faults.cut is not None and faults.cut.how is How.CLEAN else replace(faults, cut=None)
        scenario = replace(scenario, pacing=replace(scenario.pacing, heartbeats=()))
        timeline, length = timeline.measured(scenario.pacing, told)
    body = Body(faults.content_type or usual_type, timeline, framing, length)
    ms = round(1000 * (scenario.pacing.head_delay_s + scenario.pacing.first_delay_s)) or 1
    keep_alive = wants_keep_alive(request) and not faults.ignore_request_body
    return reply_from(scenario, body, own_headers(ms) + extra, request.version, keep_alive=keep_alive)


def wants_keep_alive(request: Request) -> bool:
    """RFC 9112 9.3."""
    asked = (request.header("connection") or "").lower()
    return "close" not in asked and (request.version != "1.0" or "keep-alive" in asked)


def plain_reply(
    request: Request, status: int, body: bytes, allow: str = "", own_headers: OwnHeaders = openai_headers
) -> Reply:
    """A reply outside every scenario."""
    extra = (("Allow", allow),) if allow else ()
    return json_reply(request, replace(PLAIN, faults=Faults(status=status)), body, extra, own_headers=own_headers)
