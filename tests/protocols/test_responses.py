import json

import pytest

from headrace.http.surface import Endpoint, Place, find
from headrace.model.channel import BaseUrl, Channel, Credential
from headrace.model.outcome import End, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call, ReplyHead, RequestHead
from headrace.model.settings import Commit
from headrace.model.wire import Asked, BodyEnd, WireProtocol
from headrace.protocols.responses import COMPACT, CREATE, INPUT_TOKENS, Responses
from headrace.relay.problems import STALLED
from tests.relay.driver import limits
from tests.wire.reference import blocks
from tests.wire.responses_streams import ID, STREAMS, ResponsesClient

API = Responses()
BASE_URL = BaseUrl("https", "up.example", 443, "/v1")
HEAD = RequestHead("POST", "/v1/responses", "", [])
PLAIN = blocks(next(stream for stream in STREAMS if stream.name == "plain").data)
CREATED, IN_PROGRESS, ADDED = PLAIN[:3]
OVERLOADED = (
    b'event: error\ndata: {"type":"error","sequence_number":2,"code":"server_is_overloaded","message":"busy"}\n\n'
)
FAILED = b'data: {"type":"response.failed","response":{"id":"r","error":{"code":"server_error","message":"no"}}}\n\n'


def call(body: object, operation: str = CREATE) -> Call:
    made = API.inspect(HEAD, body if isinstance(body, bytes) else json.dumps(body).encode(), operation)
    assert isinstance(made, Call), made
    return made


def channel(**changes: object) -> Channel:
    credential = Credential(name="main", secret="s")
    return Channel(
        name="c",
        base_url=BASE_URL,
        protocols=frozenset((WireProtocol.RESPONSES,)),
        credentials=(credential,),
        **changes,  # type: ignore[arg-type]
    )


# ---- the request


@pytest.mark.parametrize("prefix", ["/v1", ""])
@pytest.mark.parametrize(
    ("path", "operation"),
    [("/responses", CREATE), ("/responses/input_tokens", INPUT_TOKENS), ("/responses/compact", COMPACT)],
)
def test_where_it_stands(prefix: str, path: str, operation: str) -> None:
    found = find("POST", prefix + path)
    assert isinstance(found, Endpoint)
    assert (found.place, found.protocol, found.operation) == (Place.EXCHANGE, WireProtocol.RESPONSES, operation)
    refused = find("GET", prefix + path)
    assert isinstance(refused, Problem) and refused.allow == "POST"


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({"model": "m"}, Asked.JSON),
        ({"model": "m", "stream": True}, Asked.EVENTS),
        ({"model": "m", "stream": False}, Asked.JSON),
        ({"model": "m", "stream": None, "background": False}, Asked.JSON),
        ({"model": "m", "stream": True, "input": 5, "tools": "odd", "background": "odd", "metadata": 1}, Asked.EVENTS),
    ],
)
def test_only_model_and_stream_are_judged(body: dict[str, object], asked: Asked) -> None:
    made = call(body)
    assert (made.model, made.asked, made.operation, made.wants_usage) == ("m", asked, CREATE, True)


@pytest.mark.parametrize("operation", [INPUT_TOKENS, COMPACT])
def test_the_side_endpoints_are_never_streams(operation: str) -> None:
    assert call({"model": "m", "stream": True}, operation).asked is Asked.JSON


@pytest.mark.parametrize(("value", "known"), [(100, 100), (0, None), ("100", None), (None, None)])
def test_the_cap_of_output_is_read_leniently(value: object, known: int | None) -> None:
    assert call({"model": "m", "max_output_tokens": value}).max_output == known


@pytest.mark.parametrize(
    ("body", "kind", "param"),
    [
        ({"model": "m", "background": True}, Kind.UNSUPPORTED_PARAMETER, "background"),
        ({"model": "m", "background": True, "stream": True}, Kind.UNSUPPORTED_PARAMETER, "background"),
        ({"model": ""}, Kind.BAD_REQUEST, "model"),
        ({"prompt": {"id": "p"}}, Kind.BAD_REQUEST, "model"),
        ({"model": "m", "stream": "true"}, Kind.BAD_REQUEST, "stream"),
    ],
)
def test_what_is_refused(body: dict[str, object], kind: Kind, param: str) -> None:
    problem = API.inspect(HEAD, json.dumps(body).encode(), CREATE)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.param) == (kind, param)
    reply = API.refuse(problem, "hr_1")
    assert (reply.status, json.loads(reply.body)["error"]["code"]) == (400, kind.value)


@pytest.mark.parametrize("body", [b'{"model":"m","x":[1.0, "\\u00e9"]}', b'{"x":"\\ud83d", "model" :"m" }'])
def test_the_body_goes_up_as_it_came(body: bytes) -> None:
    request = API.address(call(body), HEAD, channel(), "m")
    assert b"".join(request.body) == body
    assert (request.method, request.path, request.query, request.headers) == ("POST", "/responses", "", [])
    assert not request.added_usage


@pytest.mark.parametrize("body", [b'{"model":"m","x":[1.0, "\\u00e9"]}', b'{"x":"\\ud83d", "model" :"m" }'])
def test_only_the_model_is_spliced(body: bytes) -> None:
    request = API.address(call(body), HEAD, channel(), 'up "1"')
    assert b"".join(request.body) == body.replace(b'"m"', b'"up \\"1\\""')


@pytest.mark.parametrize("operation", [CREATE, INPUT_TOKENS, COMPACT])
def test_paths_may_be_a_channels_own(operation: str) -> None:
    request = API.address(call({"model": "m"}, operation), HEAD, channel(), "m")
    assert request.path == "/" + operation.replace(".", "/")
    own = channel(paths=((operation, "/deployments/{model}/r"),))
    assert API.address(call({"model": "m"}, operation), HEAD, own, "a/b").path == "/deployments/a%2Fb/r"


# ---- what tells a conversation apart


@pytest.mark.parametrize(
    ("body", "seed"),
    [
        ({"prompt_cache_key": "k", "metadata": {"user_id": "u"}, "conversation": "c", "input": "i"}, b"k"),
        ({"prompt_cache_key": 5, "metadata": {"user_id": "u"}, "conversation": "c", "input": "i"}, b"u"),
        ({"prompt_cache_key": "", "metadata": {"user_id": 5}, "conversation": "c", "input": "i"}, b"c"),
        ({"metadata": "odd", "conversation": {"id": "c"}, "input": "i"}, b"c"),
        ({"conversation": {"id": None}, "input": "i"}, b'"i"'),
        ({"input": [{"role": "developer", "content": "d"}, {"role": "user", "content": "i"}]}, b'"i"'),
        ({"input": [{"type": "item_reference", "id": "x"}]}, b""),
        ({"input": [5]}, b""),
        ({"input": {"odd": 1}}, b""),
        ({}, b""),
    ],
)
def test_the_seed(body: dict[str, object], seed: bytes) -> None:
    assert API.seed(call({"model": "m", **body}), HEAD) == seed


def test_the_seed_is_bounded_and_stays_as_the_conversation_grows() -> None:
    text = "x" * 10_000
    first = API.seed(call({"model": "m", "input": text}), HEAD)
    turns = [{"role": "user", "content": text}, {"role": "assistant", "content": "y"}, {"role": "user", "content": "z"}]
    assert API.seed(call({"model": "m", "input": turns}), HEAD) == first
    assert len(first) == 4096
    assert API.seed(call(b'{"model":"m","input":"\\ud83d"}'), HEAD) == b""


# ---- in the stream: transcripts


def client(**changed: object) -> ResponsesClient:
    made = ResponsesClient(limits(**changed))
    made.attempt()
    return made


def failure_in(part: bytes) -> dict[str, object]:
    event = json.loads(part.partition(b"data: ")[2])
    assert event["type"] == "response.failed"
    return {"number": event.get("sequence_number"), "id": event["response"]["id"], **event["response"]["error"]}


def test_an_error_as_first_event_fails_the_attempt_and_the_next_one_answers() -> None:
    """Case B051."""
    one = client()
    one.feed(OVERLOADED)
    assert [(failure.problem.kind, failure.problem.http_status) for failure in one.failures] == [
        (Kind.UPSTREAM_ERROR, 503)
    ]
    one.attempt()
    for event in PLAIN:
        one.feed(event)
    one.over()
    assert one.body == b"".join(PLAIN)
    assert one.outcome.end is End.COMPLETED


def test_response_failed_as_first_event_is_relayed() -> None:
    one = client()
    one.feed(FAILED).over()
    assert one.body == FAILED
    assert (one.outcome.end, one.outcome.reason) == (End.FAILED, "server_error")
    assert not one.failures


@pytest.mark.parametrize("commit", list(Commit))
def test_overload_behind_the_preamble(commit: Commit) -> None:
    """Case B054: bound by the first event, unless the preamble is held."""
    one = client(commit=commit)
    one.feed(CREATED).feed(IN_PROGRESS).feed(OVERLOADED)
    if commit is Commit.FIRST_OUTPUT:
        assert one.body == b"" and len(one.failures) == 1
        one.attempt().feed(b"".join(PLAIN)).over()
        assert one.body == b"".join(PLAIN)
        return
    one.over()
    assert one.body == CREATED + IN_PROGRESS + OVERLOADED
    assert (one.outcome.end, one.outcome.reason) == (End.FAILED, "server_is_overloaded")


def test_a_heartbeat_is_no_first_event() -> None:
    one = client()
    one.feed(b'event: keepalive\ndata: {"type":"keepalive","sequence_number":0}\n\n').over(BodyEnd.CUT)
    assert one.body == b"" and one.failures[0].problem.kind is Kind.UPSTREAM_UNREACHABLE


def test_silence_ends_in_a_failure_that_continues_the_response() -> None:
    """Case B015: a client that counts only events gets one, with a reason."""
    one = client(stall=90.0, stall_with_pings=180.0)
    one.feed(CREATED, 1.0).feed(IN_PROGRESS, 2.0)
    one.tick(91.9)
    assert one.machine.outcome is None
    one.tick(92.0)
    assert one.outcome.end is End.STALLED
    said = failure_in(one.inserted[-1])
    assert said == {"number": 2, "id": ID, "code": "server_error", "message": STALLED.message}


def test_keepalives_of_the_upstream_hold_a_stall_off_only_so_long() -> None:
    """Case B066. They do number events."""
    one = client(stall=90.0, stall_with_pings=180.0)
    one.feed(CREATED, 0.0)
    for number, now in enumerate(range(30, 180, 30), 1):
        beat = b'data: {"type":"keepalive","sequence_number":%d}\n\n' % number
        one.feed(beat, float(now))
        one.tick(float(now))
    assert one.machine.outcome is None
    one.tick(180.0)
    assert one.outcome.end is End.STALLED
    assert failure_in(one.inserted[-1])["number"] == 6


def test_a_failure_before_any_event_stands_alone() -> None:
    """Case B045, second part: the head is open and no attempt came to anything."""
    one = client(early_open=1.0)
    one.tick(1.0)
    assert one.machine.head_sent
    problem = Problem(Kind.UPSTREAM_RATE_LIMITED, "Every channel is rate limited.")
    one.end(Outcome(End.REFUSED, "upstream_rate_limited", problem), 2.0)
    said = failure_in(one.inserted[-1])
    assert (said["number"], said["code"], said["message"]) == (0, "rate_limit_exceeded", problem.message)
    assert str(said["id"]).startswith("resp_")


def test_nothing_follows_the_terminal_event() -> None:
    """Case B038."""
    one = client(keepalive=0.1, end_grace=1.0)
    for event in PLAIN:
        one.feed(event, 1.0)
    one.tick(1.5)
    assert one.inserted == [] and one.machine.outcome is not None
    one.tick(2.0)
    assert one.heard[-1] == ("end", b"completed")


# ---- the rest of the interface


def test_a_keepalive_is_a_comment() -> None:
    assert API.keepalive(None, False, HEAD, "ka") == b": ka\n\n"
    assert API.keepalive(b"\n", True, HEAD, "ka") == b": ka\n"
    assert API.may_open_early(call({"model": "m"}), HEAD)


def test_an_interruption_without_an_observer_stands_alone() -> None:
    event = API.interrupt(Problem(Kind.UPSTREAM_TIMEOUT, "late"), None, None)
    assert failure_in(event)["number"] == 0


def test_an_error_body_is_read() -> None:
    problem = API.classify_fault(ReplyHead(200, []), b'{"error":{"code":"rate_limit_exceeded","message":"x"}}')
    assert problem is not None and problem.kind is Kind.UPSTREAM_RATE_LIMITED
    assert API.classify_fault(ReplyHead(200, []), b'{"object":"response","error":{"code":"server_error"}}') is None
