"""anthropic-python against the gateway: text, usage, end and raised errors, over each of its ways to ask."""

import asyncio
from collections.abc import Iterator, Mapping

import anthropic
import pytest

from tests.sdk.anthropic_calls import CALLS, MESSAGES, Call, Told, async_client, client
from tests.stand.messages import ANTH, CONFIG, START, error_event, event, text
from tests.stand.stand import Stand
from tests.stand.wire import BRISK, KEY

pytestmark = pytest.mark.sdk

Fields = Mapping[str, object]
GAP_S = 0.2
"""The brisk key's keepalive of 50 ms, and the wheel's turn."""
BROKEN = "Response stream interrupted, please retry"
TOOLS: Fields = {"text": ["Looking."], "tool_calls": [{"name": "get_weather", "arguments": {"city": "北京"}}]}
THINKING: Fields = {"text": ["ok"], "reasoning": "think a little"}


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A stand whose channels speak Messages."""
    with Stand(tmp_path_factory.mktemp("anthropic"), CONFIG) as one:
        yield one


@pytest.fixture(params=list(CALLS))
def call(request: pytest.FixtureRequest) -> Call:
    """One of the SDK's ways."""
    return CALLS[request.param]


def good(told: Told, said: str = "A北C") -> None:
    """The whole answer, without an error."""
    assert told.error is None, told.error
    assert (told.text, told.stop_reason) == (said, "end_turn")
    if told.message is not None:
        assert [block.text for block in told.message.content if block.type == "text"] == [said]


def broke(told: Told, said: str, kind: str = "api_error") -> anthropic.APIStatusError:
    """An error event raises APIStatusError behind all that came before; the SDK gives it the head's status."""
    error = told.error
    assert type(error) is anthropic.APIStatusError
    assert (error.status_code, error.type) == (200, kind)
    assert (told.text, told.stop_reason) == (said, None)
    assert (error.request_id or "").startswith("hr_")
    return error


def message_of(error: anthropic.APIStatusError) -> str:
    assert isinstance(error.body, dict)
    return str(error.body["error"]["message"])


# ---- good streams


def test_text_and_usage(stand: Stand, call: Call) -> None:
    model = stand.model("one", {"text": ["A", "北", "C"], "usage": {"prompt": 9, "completion": 3, "cached": 4}})
    told = call(stand, model)
    good(told)
    if told.message is not None:
        usage = told.message.usage
        assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (5, 4, 3)
    entry = stand.entry(model)
    assert (entry.usage.input_total, entry.usage.cached_input, entry.usage.output_total) == (9, 4, 3)
    assert (entry.end, entry.usage_origin) == ("completed", "upstream")


@pytest.mark.parametrize("name", ["plain", "ids", "CRLF"])
def test_keepalives_in_every_gap(stand: Stand, call: Call, name: str) -> None:
    stream = {
        "plain": ANTH,
        "ids": [f"id: {number}\n{one}" for number, one in enumerate(ANTH)],
        "CRLF": [one.replace("\n", "\r\n") for one in ANTH],
    }[name]
    gaps = range(1, len(ANTH)) if name == "plain" else (1, 4, 7)
    model = stand.model("one", {"events": stream, "gaps": dict.fromkeys(gaps, GAP_S)})
    good(call(stand, model, key=BRISK))
    entry = stand.entry(model)
    assert entry.wire.keepalives >= len(gaps)
    assert entry.end == "completed"


def test_early_open(stand: Stand, call: Call) -> None:
    model = stand.model("early", {"status": 529, "head_delay": 0.35}, {"events": ANTH, "first_delay": 0.3})
    good(call(stand, model))
    entry = stand.entry(model)
    assert entry.early_open
    assert [one.channel for one in entry.attempts] == ["ch1", "ch2"]


def test_tool_use(stand: Stand, call: Call) -> None:
    model = stand.model("one", TOOLS)
    told = call(stand, model)
    assert (told.error, told.stop_reason) == (None, "tool_use")
    deltas = [one.delta for one in told.events if one.type == "content_block_delta"]
    assert "".join(one.partial_json for one in deltas if one.type == "input_json_delta") == '{"city":"北京"}'
    if told.message is not None:
        block = told.message.content[1]
        assert block.type == "tool_use"
        assert (block.name, block.input) == ("get_weather", {"city": "北京"})


def test_thinking_keeps_its_signature(stand: Stand, call: Call) -> None:
    """B025: a signature of 256 bytes, cut across reads; the next turn carries it back unchanged."""
    model = stand.model("one", {**THINKING, "writes": {"size": 50}})
    told = call(stand, model)
    good(told, "ok")
    deltas = [one.delta for one in told.events if one.type == "content_block_delta"]
    signed = [one.signature for one in deltas if one.type == "signature_delta"]
    assert len(signed) == 1 and len(signed[0]) == 256
    assert signed[0].encode() in stand.calls(model)[0].sent
    assert stand.entry(model).usage.reasoning == 4


@pytest.mark.parametrize("name", ["CR", "one byte at a time", "no blank line", "held open", "BOM"])
def test_odd_streams_are_as_good_as_they_were(stand: Stand, call: Call, name: str) -> None:
    fields: dict[str, Fields] = {
        "CR": {"events": [one.replace("\n", "\r") for one in ANTH]},
        "one byte at a time": {"events": ANTH, "writes": "byte"},
        "no blank line": {"events": [*ANTH[:-1], ANTH[-1][:-2]]},
        "held open": {"events": ANTH, "tail_hold": 30},
        "BOM": {"events": ANTH, "preamble": "\ufeff"},
    }
    model = stand.model("one", fields[name])
    told = call(stand, model)
    good(told)
    assert told.events[0].type == "message_start", "the SDK fails on a BOM"
    assert "message_stop" in {one.type for one in told.events}, "the SDK loses an event without its blank line"


# ---- broken streams


@pytest.mark.parametrize(
    "cut",
    [{"how": "rst"}, {"how": "fin"}, {"how": "clean"}, {"extra": -12, "how": "rst"}, {"extra": 40, "how": "clean"}],
    ids=["reset", "closed", "clean", "reset in an event", "clean in an event"],
)
def test_a_cut_raises(stand: Stand, call: Call, cut: Fields) -> None:
    """Cases B039, B042, B043: no silent truncation, and no JSON error in place of ours."""
    model = stand.model("pair", {"events": ANTH, "cut": {"after_events": 4, **cut}}, {"events": ANTH})
    assert message_of(broke(call(stand, model), "A北")) == BROKEN
    assert stand.entry(model).end == "interrupted"
    assert not stand.calls(model, stand.ch2)


def test_a_stall_raises(stand: Stand, call: Call) -> None:
    model = stand.model("impatient", {"events": ANTH, "cut": {"after_events": 4, "how": "stall"}})
    assert message_of(broke(call(stand, model), "A北")) == BROKEN
    entry = stand.entry(model)
    assert entry.end == "stalled"
    assert entry.wire.keepalives >= 1


def test_the_time_limit_does_not_ask_to_retry(stand: Stand, call: Call) -> None:
    model = stand.model("short", {"events": [*ANTH[:2], *[text("A")] * 100], "gap": 0.1})
    told = call(stand, model)
    error = told.error
    assert isinstance(error, anthropic.APIStatusError)
    assert "time limit" in message_of(error) and "retry" not in message_of(error)
    assert stand.entry(model).end == "stopped"


def test_an_error_in_the_stream_is_the_upstreams(stand: Stand, call: Call) -> None:
    """Case B046."""
    model = stand.model("one", {"events": [*ANTH[:4], error_event("overloaded_error", "their words")]})
    assert message_of(broke(call(stand, model), "A北", "overloaded_error")) == "their words"
    assert stand.entry(model).end == "failed"


def test_an_error_without_its_name_is_made_heard(stand: Stand, call: Call) -> None:
    """The SDK skips it, and would take the rest for a whole answer."""
    unnamed = error_event("api_error").partition("\n")[2]
    model = stand.model("one", {"events": [*ANTH[:4], unnamed]})
    assert message_of(broke(call(stand, model), "A北")) == BROKEN
    assert stand.entry(model).end == "interrupted"


def test_a_failure_behind_an_early_open_says_its_cause(stand: Stand, call: Call) -> None:
    model = stand.model("early-one", {"status": 529, "head_delay": 0.35})
    error = broke(call(stand, model), "", "overloaded_error")
    assert message_of(error) != BROKEN
    assert stand.entry(model).end == "refused"


# ---- HTTP errors

FIRST = {
    "overloaded_error": (anthropic.OverloadedError, 529),
    "rate_limit_error": (anthropic.RateLimitError, 429),
    "api_error": (anthropic.InternalServerError, 500),
    "invalid_request_error": (anthropic.BadRequestError, 400),
    "billing_error": (anthropic.InternalServerError, 502),
}


@pytest.mark.parametrize("kind", FIRST)
def test_an_error_as_the_first_event_is_a_status(stand: Stand, call: Call, kind: str) -> None:
    """Case B051."""
    model = stand.model("one", {"events": [error_event(kind)]})
    told = call(stand, model)
    error_class, status = FIRST[kind]
    assert type(told.error) is error_class
    assert isinstance(told.error, anthropic.APIStatusError)
    assert (told.error.status_code, told.events) == (status, [])
    assert stand.entry(model).id == told.error.request_id


STATUSES: dict[int, tuple[type[anthropic.APIStatusError], int]] = {
    400: (anthropic.BadRequestError, 400),
    401: (anthropic.InternalServerError, 502),
    402: (anthropic.InternalServerError, 502),
    403: (anthropic.InternalServerError, 502),
    404: (anthropic.NotFoundError, 404),
    408: (anthropic.GatewayTimeoutError, 504),
    409: (anthropic.ConflictError, 409),
    413: (anthropic.ContentTooLargeError, 413),
    422: (anthropic.UnprocessableEntityError, 422),
    429: (anthropic.RateLimitError, 429),
    500: (anthropic.InternalServerError, 502),
    503: (anthropic.InternalServerError, 502),
    504: (anthropic.GatewayTimeoutError, 504),
    529: (anthropic.OverloadedError, 529),
}


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("stream", [True, False])
def test_an_upstreams_status_has_its_class(stand: Stand, status: int, stream: bool) -> None:
    model = stand.model("one", {"status": status})
    error_class, told = STATUSES[status]
    with client(stand) as sdk, pytest.raises(anthropic.APIStatusError) as raised:
        sdk.messages.create(model=model, max_tokens=9, messages=MESSAGES, stream=stream)
    assert (type(raised.value), raised.value.status_code) == (error_class, told)
    assert raised.value.request_id == stand.entry(model).id


@pytest.mark.parametrize("fields", [{"events": [error_event("api_error")]}, {"status": 529}, {"events": []}])
def test_with_a_second_channel_it_is_invisible(stand: Stand, call: Call, fields: Fields) -> None:
    model = stand.model("pair", fields, {"events": ANTH})
    good(call(stand, model))
    assert [one.channel for one in stand.entry(model).attempts] == ["ch1", "ch2"]


def test_the_gateways_own_errors(stand: Stand) -> None:
    with client(stand) as sdk:
        with pytest.raises(anthropic.NotFoundError, match="no model") as unknown:
            sdk.messages.create(model="zzz", max_tokens=9, messages=MESSAGES)
        assert unknown.value.type == "not_found_error"
        with pytest.raises(anthropic.BadRequestError, match="openai_responses"):
            sdk.messages.create(model="responses-only", max_tokens=9, messages=MESSAGES)
    with client(stand, api_key="sk-hr-wrong") as sdk, pytest.raises(anthropic.AuthenticationError) as wrong:
        sdk.messages.create(model="zzz", max_tokens=9, messages=MESSAGES)
    assert wrong.value.type == "authentication_error"


# ---- without streaming, counting, lists, keys


def test_without_streaming(stand: Stand) -> None:
    model = stand.model("one", {**TOOLS, "reasoning": "hm", "usage": {"prompt": 9, "completion": 3}})
    with client(stand) as sdk:
        made = sdk.messages.create(model=model, max_tokens=9, messages=MESSAGES)
    assert [block.type for block in made.content] == ["thinking", "text", "tool_use"]
    assert (made.stop_reason, made.usage.input_tokens, made.usage.output_tokens) == ("tool_use", 9, 3)
    assert (made._request_id or "").startswith("hr_")

    async def main() -> str | None:
        async with async_client(stand) as sdk:
            return (await sdk.messages.create(model=model, max_tokens=9, messages=MESSAGES)).stop_reason

    assert asyncio.run(main()) == "tool_use"
    assert [entry.end for entry in stand.entries(model, count=2)] == ["completed"] * 2


def test_tokens_are_counted(stand: Stand) -> None:
    model = stand.model("one", {"usage": {"prompt": 77}})
    with client(stand) as sdk:
        assert sdk.messages.count_tokens(model=model, messages=MESSAGES).input_tokens == 77
        with pytest.raises(anthropic.NotFoundError):
            sdk.messages.count_tokens(model=stand.model("one", {"status": 404}), messages=MESSAGES)


def test_betas_pass(stand: Stand) -> None:
    model = stand.model("one", {"events": ANTH})
    turns = [{"role": "user", "content": "hi"}]
    with (
        client(stand, default_query={"beta": "true"}) as sdk,
        sdk.beta.messages.stream(model=model, max_tokens=9, messages=turns, betas=["a-1", "zzz-9"]) as stream,  # type: ignore[arg-type]
    ):
        assert "".join(stream.text_stream) == "A北C"
    up = stand.calls(model)[0]
    assert up.target == "/v1/messages?beta=true"
    assert dict(up.headers)["anthropic-beta"] == "a-1,zzz-9"


def test_models_are_listed(stand: Stand) -> None:
    with client(stand) as sdk:
        listed = list(sdk.models.list())
        assert [(one.id, one.type, one.lifecycle) for one in listed] == [
            ("exact", "model", "active"),
            ("renamed", "model", "active"),
            ("twin", "model", "active"),
        ]
        assert sdk.models.retrieve("exact") == listed[0]
        with pytest.raises(anthropic.NotFoundError):
            sdk.models.retrieve("zzz")


@pytest.mark.parametrize(
    "given",
    [
        {"api_key": KEY},
        {"auth_token": KEY, "api_key": None},
        {"api_key": "", "default_headers": {"x-api-key": KEY, "authorization": ""}},
    ],
    ids=["api_key", "auth_token", "x-api-key"],
)
def test_the_key_is_taken_wherever_it_stands(stand: Stand, given: dict[str, object]) -> None:
    model = stand.model("one", {"events": ANTH})
    with client(stand, **given) as sdk, sdk.messages.stream(model=model, max_tokens=9, messages=MESSAGES) as stream:
        assert stream.get_final_text() == "A北C"
    up = dict(stand.calls(model)[0].headers)
    assert up["x-api-key"] == "sk-upstream-1"
    assert "authorization" not in up


def test_leaving_the_stream_closes_the_upstream(stand: Stand) -> None:
    """Case B058."""
    model = stand.model("one", {"text": "word ", "repeat": 2000, "gap": 0.02})
    with (
        client(stand) as sdk,
        sdk.messages.create(model=model, max_tokens=9, messages=MESSAGES, stream=True) as stream,
    ):
        next(iter(stream))
    assert stand.calls(model)[0].closed_early
    assert stand.entry(model).end == "client_gone"


def test_an_unknown_event_passes(stand: Stand, call: Call) -> None:
    """Case B022."""
    strange = event("vertex_event", usage={"input_tokens": 999, "output_tokens": 999})
    model = stand.model("one", {"events": [START, strange, *ANTH[1:]]})
    told = call(stand, model)
    good(told)
    entry = stand.entry(model)
    assert (entry.usage.input_total, entry.usage.output_total) == (9, 3)
