"""openai-python against the gateway: responses, over each of its ways to ask for one."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import openai
import pytest

from tests.sdk.calls import client
from tests.sdk.responses_calls import CALLS, Call, Told, is_helper
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand
from tests.stand.wire import BRISK

pytestmark = pytest.mark.sdk

Fields = Mapping[str, object]
GAP_S = 0.3
TEXT = "A北C"
GOOD: Fields = {"text": ["A", "北", "C"], "usage": {"prompt": 1, "completion": 3}}
EVENTS = 11
NO_FINAL = "Didn't receive a `response.completed` event."


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A stand whose channels speak responses too."""
    config = CONFIG.replace("protocols: [chat]", "protocols: [chat, responses]")
    with Stand(tmp_path_factory.mktemp("responses"), config) as one:
        yield one


@pytest.fixture(params=list(CALLS))
def call(request: pytest.FixtureRequest) -> Call:
    """One of the SDK's ways."""
    return CALLS[request.param]


def good(told: Told) -> None:
    """The whole answer, without an error."""
    assert told.error is None
    assert told.text == TEXT
    assert told.final is not None
    assert (told.final.status, told.final.output_text) == ("completed", TEXT)
    assert told.final.usage is not None
    assert (told.final.usage.input_tokens, told.final.usage.output_tokens) == (1, 3)


def broke(told: Told, call: Call, text: str, code: str = "server_error") -> Any:
    """`response.failed` is the last event and raises nothing by itself; asked for a final response, the helper does."""
    assert told.text == text
    event = told.last
    assert event.type == "response.failed"
    created = told.events[0].response
    assert (event.response.id, event.response.model) == (created.id, created.model)
    assert event.response.created_at == created.created_at
    assert event.sequence_number == len(told.events) - 1
    assert (event.response.status, event.response.output, event.response.error.code) == ("failed", [], code)
    if is_helper(call):
        assert isinstance(told.error, RuntimeError)
        assert str(told.error) == NO_FINAL
    else:
        assert told.error is None
    return event.response.error


def refused(told: Told, kind: type[openai.APIStatusError], status: int, code: str) -> openai.APIStatusError:
    """An HTTP error."""
    error = told.error
    assert type(error) is kind
    assert (error.status_code, error.code) == (status, code)
    assert not told.events
    return error


# ---- good streams


def test_a_whole_stream(stand: Stand, call: Call) -> None:
    model = stand.model("one", GOOD)
    told = call(stand, model)
    good(told)
    entry = stand.entry(model)
    assert (entry.end, entry.reason, entry.protocol, entry.operation) == (
        "completed",
        "completed",
        "responses",
        "responses",
    )
    assert (entry.usage.input_total, entry.usage.output_total, entry.usage_origin) == (1, 3, "upstream")
    assert (entry.served_model, entry.finish_reasons) == (model, ("completed",))
    assert entry.wire.removed == entry.wire.inserted == 0


@pytest.mark.parametrize("name", ["plain", "[DONE]", "CRLF"])
def test_keepalives_in_every_gap(stand: Stand, call: Call, name: str) -> None:
    """Gaps of three keepalives, and every keepalive stands where the SDK takes it."""
    some = {1: GAP_S, 6: GAP_S, EVENTS - 1: GAP_S}
    fields: dict[str, Fields] = {
        "plain": {"gap": GAP_S},
        "[DONE]": {"done": True, "gaps": some},
        "CRLF": {"line_end": "crlf", "gaps": some},
    }
    model = stand.model("one", {**GOOD, **fields[name]})
    told = call(stand, model, key=BRISK)
    good(told)
    assert len(told.events) == EVENTS
    entry = stand.entry(model)
    assert entry.wire.keepalives >= (EVENTS - 1 if name == "plain" else len(some))
    assert entry.end == "completed"


def test_the_upstreams_own_keepalives_pass(stand: Stand, call: Call) -> None:
    beat = {"event": "keepalive", "data": {"type": "keepalive", "sequence_number": 3}}
    created = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "status": "in_progress"}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "metadata": {}}
    response = {**created, **more}
    events = [
        {"data": {"type": "response.created", "sequence_number": 0, "response": response}},
        beat,
        {"data": {"type": "response.completed", "sequence_number": 4, "response": {**response, "status": "completed"}}},
    ]
    model = stand.model("one", {"events": events})
    told = call(stand, model)
    assert told.error is None
    assert told.final is not None and told.final.status == "completed"
    entry = stand.entry(model)
    assert (entry.wire.heartbeats, entry.wire.removed) == (1, 0)


def test_early_open(stand: Stand, call: Call) -> None:
    model = stand.model("early", {"status": 503, "head_delay": 0.35}, {**GOOD, "first_delay": 0.3})
    good(call(stand, model))
    entry = stand.entry(model)
    assert entry.early_open
    assert [one.channel for one in entry.attempts] == ["ch1", "ch2"]


def test_tool_calls(stand: Stand, call: Call) -> None:
    arguments = {"city": "北京", "unit": "celsius"}
    calls = [{"name": "get_weather", "arguments": arguments, "id": "call_1"}, {"name": "now", "arguments": {}}]
    model = stand.model("one", {"tool_calls": calls})
    told = call(stand, model)
    assert told.error is None and told.final is not None
    made = [item for item in told.final.output if item.type == "function_call"]
    assert [one.name for one in made] == ["get_weather", "now"]
    assert (made[0].call_id, json.loads(made[0].arguments)) == ("call_1", arguments)
    said = [event.delta for event in told.events if event.type == "response.function_call_arguments.delta"]
    assert "".join(said) == made[0].arguments + made[1].arguments


def test_reasoning_and_refusals_pass(stand: Stand, call: Call) -> None:
    model = stand.model("one", {"reasoning": "think a little", "text": None, "refusal": "I cannot."})
    told = call(stand, model)
    assert told.error is None and told.final is not None
    assert [item.type for item in told.final.output] == ["reasoning", "message"]
    entry = stand.entry(model)
    assert (entry.end, entry.reason) == ("incomplete", "refusal")


def test_incomplete(stand: Stand, call: Call) -> None:
    model = stand.model("one", {**GOOD, "finish_reason": "length"})
    told = call(stand, model)
    assert told.last.type == "response.incomplete"
    assert (told.error is None) is not is_helper(call)
    entry = stand.entry(model)
    assert (entry.end, entry.reason, entry.usage.output_total) == ("incomplete", "max_output_tokens", 3)


# ---- broken streams


@pytest.mark.parametrize(
    "cut",
    [{"how": "rst"}, {"how": "fin"}, {"how": "clean"}, {"extra": -12, "how": "rst"}, {"extra": 40, "how": "clean"}],
    ids=["reset", "closed", "clean", "reset in an event", "clean in an event"],
)
def test_a_cut_is_told(stand: Stand, call: Call, cut: Fields) -> None:
    """Cases B039, B042, B043, B045."""
    model = stand.model("pair", {**GOOD, "cut": {"after_events": 6, **cut}}, GOOD)
    error = broke(call(stand, model), call, "A北")
    assert "again" in error.message
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin) == ("interrupted", "estimated")
    assert not stand.calls(model, stand.ch2)


def test_a_stall_is_told(stand: Stand, call: Call) -> None:
    """Case B015."""
    model = stand.model("impatient", {**GOOD, "cut": {"after_events": 6, "how": "stall"}})
    broke(call(stand, model, key=BRISK), call, "A北")
    entry = stand.entry(model)
    assert entry.end == "stalled"
    assert entry.wire.keepalives >= 1


def test_an_upstreams_failure_is_its_own(stand: Stand, call: Call) -> None:
    error = {"code": "rate_limit_exceeded", "message": "Please try again in 2s."}
    model = stand.model("one", {**GOOD, "finish_reason": "failed", "error": error})
    told = call(stand, model)
    assert told.last.response.error.message == "Please try again in 2s."
    assert isinstance(told.error, RuntimeError) is is_helper(call)
    entry = stand.entry(model)
    assert (entry.end, entry.reason, entry.usage.output_total) == ("failed", "rate_limit_exceeded", 3)
    assert entry.wire.inserted == 0


def test_an_error_in_the_stream_is_the_upstreams(stand: Stand, call: Call) -> None:
    """Case B046. The flat form raises nothing."""
    model = stand.model("one", {**GOOD, "error_at": 6, "error": {"code": "their_code", "message": "their words"}})
    told = call(stand, model)
    event = told.last
    assert (event.type, event.code, event.message, event.sequence_number) == ("error", "their_code", "their words", 6)
    assert isinstance(told.error, RuntimeError) is is_helper(call)
    entry = stand.entry(model)
    assert (entry.end, entry.reason, entry.wire.inserted) == ("failed", "their_code", 0)


def test_a_nested_error_in_the_stream_raises(stand: Stand, call: Call) -> None:
    error = {"error": {"code": "their_code", "message": "their words"}}
    model = stand.model("one", {"events": [{"data": {"type": "response.zzz", "sequence_number": 0}}, {"data": error}]})
    told = call(stand, model)
    assert type(told.error) is openai.APIError or is_helper(call)
    # The helper gives up at the first event, which it does not know, and may have left before the second came.
    assert stand.entry(model).reason in ({"their_code", "client left"} if is_helper(call) else {"their_code"})


def test_a_failure_behind_an_early_open_stands_alone(stand: Stand, call: Call) -> None:
    """Case B045, second part."""
    model = stand.model("early-one", {"status": 429, "head_delay": 0.35})
    told = call(stand, model)
    if is_helper(call):
        assert isinstance(told.error, RuntimeError)
    else:
        assert told.types == ["response.failed"]
        assert (told.last.sequence_number, told.last.response.error.code) == (0, "rate_limit_exceeded")
    assert stand.entry(model).end == "refused"


@pytest.mark.parametrize(
    ("code", "kind", "status", "ours"),
    [
        ("rate_limit_exceeded", openai.RateLimitError, 429, "upstream_rate_limited"),
        ("server_error", openai.InternalServerError, 500, "upstream_error"),
        ("context_length_exceeded", openai.BadRequestError, 400, "bad_request"),
        ("image_too_large", openai.BadRequestError, 400, "bad_request"),
        ("invalid_api_key", openai.InternalServerError, 502, "upstream_error"),
    ],
)
def test_an_error_as_the_first_event_is_a_status(
    stand: Stand, call: Call, code: str, kind: type[openai.APIStatusError], status: int, ours: str
) -> None:
    """Case B051."""
    model = stand.model("one", {"error_first": {"code": code}})
    error = refused(call(stand, model), kind, status, ours)
    assert stand.entry(model).id == error.request_id


def test_with_a_second_channel_it_is_invisible(stand: Stand, call: Call) -> None:
    model = stand.model("pair", {"error_first": {"code": "server_is_overloaded"}}, GOOD)
    good(call(stand, model))
    assert [one.channel for one in stand.entry(model).attempts] == ["ch1", "ch2"]


def test_overload_behind_a_held_preamble_is_invisible(stand: Stand, call: Call) -> None:
    """Case B054."""
    model = stand.model("held", {**GOOD, "error_at": 2, "error": {"code": "server_is_overloaded"}}, GOOD)
    told = call(stand, model)
    good(told)
    assert told.types.count("response.created") == 1
    assert [one.channel for one in stand.entry(model).attempts] == ["ch1", "ch2"]


# ---- without streaming


def test_a_whole_response(stand: Stand) -> None:
    model = stand.model("one", GOOD)
    with client(stand) as sdk:
        made = sdk.responses.create(model=model, input="hi")
    assert (made.output_text, made.status, made.model) == (TEXT, "completed", model)
    entry = stand.entry(model)
    assert made._request_id == entry.id
    assert (entry.end, entry.stream, entry.usage.output_total) == ("completed", False, 3)


@pytest.mark.parametrize(
    ("finish", "end", "reason"),
    [("length", "incomplete", "max_output_tokens"), ("failed", "failed", "server_error")],
)
def test_a_response_that_says_that_it_failed_is_relayed_and_billed(
    stand: Stand, finish: str, end: str, reason: str
) -> None:
    model = stand.model("pair", {**GOOD, "finish_reason": finish}, GOOD)
    with client(stand) as sdk:
        made = sdk.responses.create(model=model, input="hi")
    assert made.status == end
    entry = stand.entry(model)
    assert (entry.end, entry.reason, entry.usage.output_total) == (end, reason, 3)
    assert not stand.calls(model, stand.ch2)


def test_an_error_in_a_200_goes_to_the_next_channel(stand: Stand) -> None:
    model = stand.model("pair", {"error_first": True}, GOOD)
    with client(stand) as sdk:
        assert sdk.responses.create(model=model, input="hi").output_text == TEXT
    assert len(stand.entry(model).attempts) == 2


def test_a_response_in_place_of_a_stream_passes(stand: Stand) -> None:
    """Case B049 (c)."""
    model = stand.model("one", {**GOOD, "stream": False})
    with client(stand) as sdk:
        reply = sdk.responses.with_raw_response.create(model=model, input="hi", stream=True)
        assert reply.headers["content-type"] == "application/json"
    entry = stand.entry(model)
    assert (entry.end, entry.usage.output_total) == ("completed", 3)


def test_input_tokens_are_counted_and_cost_nothing(stand: Stand) -> None:
    model = stand.model("one", {"usage": {"prompt": 7}})
    with client(stand) as sdk:
        made = sdk.responses.input_tokens.count(model=model, input="hi")
    assert (made.object, made.input_tokens) == ("response.input_tokens", 7)
    entry = stand.entry(model)
    assert (entry.operation, entry.end, entry.usage_origin) == ("responses.input_tokens", "completed", "none")


def test_compaction(stand: Stand) -> None:
    model = stand.model("one", GOOD)
    with client(stand) as sdk:
        made = sdk.responses.compact(model=model, input="hi")
    assert (made.object, made.output[-1].type) == ("response.compaction", "compaction")
    entry = stand.entry(model)
    assert (entry.operation, entry.end, entry.usage.output_total) == ("responses.compact", "completed", 3)


def test_background_is_refused(stand: Stand) -> None:
    model = stand.model("one", GOOD)
    with client(stand) as sdk, pytest.raises(openai.BadRequestError, match="background") as caught:
        sdk.responses.create(model=model, input="hi", background=True)
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "background")
    assert not stand.calls(model)
