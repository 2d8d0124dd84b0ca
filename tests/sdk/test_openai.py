"""openai-python against the gateway: text, usage, end and raised errors, over each of its ways to ask for a chat."""

# ruff: noqa: E501  a case a line
import asyncio
import json
from collections.abc import Mapping

import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.sdk.calls import CALLS, MESSAGES, USAGE, Call, Told, async_client, client
from tests.stand.stand import Stand, until
from tests.stand.wire import BRISK, C0, C1, CHAT, DONE, TEXT, chunk, error_event

pytestmark = pytest.mark.sdk

Fields = Mapping[str, object]
GAP_S = 0.3


@pytest.fixture(params=list(CALLS))
def call(request: pytest.FixtureRequest) -> Call:
    """One of the SDK's ways."""
    return CALLS[request.param]


def good(told: Told, text: str = TEXT) -> None:
    """The whole answer, without an error."""
    assert told.error is None
    assert (told.text, told.finish) == (text, "stop")


def broke(told: Told, code: str, text: str) -> openai.APIError:
    """An error event raises APIError, behind all that came before."""
    error = told.error
    assert type(error) is openai.APIError
    assert (error.code, error.type, error.param) == (code, "server_error", None)
    assert error.message == str(error) != ""
    assert told.text == text
    assert told.finish is None
    return error


def refused(told: Told, kind: type[openai.APIStatusError], status: int, code: str | None) -> openai.APIStatusError:
    """An HTTP error."""
    error = told.error
    assert type(error) is kind
    assert (error.status_code, error.code) == (status, code)
    assert not told.chunks
    assert error.request_id
    assert error.request_id.startswith("hr_")
    return error


# ---- good streams


@pytest.mark.parametrize("asks", [True, False])
def test_usage_reaches_those_who_ask_and_the_entry_always(stand: Stand, call: Call, asks: bool) -> None:
    """Case B019."""
    model = stand.model("one", {"text": ["A", "北", "C"], "usage": {"style": "asked", "prompt": 1, "completion": 3}})
    told = call(stand, model, **(USAGE if asks else {}))
    good(told)
    assert (told.usage is not None) is asks
    assert all(chunk.choices for chunk in told.chunks) is not asks
    if told.usage is not None:
        assert (told.usage.prompt_tokens, told.usage.completion_tokens) == (1, 3)
    entry = stand.entry(model)
    assert (entry.usage.input_total, entry.usage.output_total, entry.usage_origin) == (1, 3, "upstream")
    assert entry.end == "completed"


@pytest.mark.parametrize("name", ["plain", "ids", "CRLF"])
def test_keepalives_in_every_gap(stand: Stand, call: Call, name: str) -> None:
    """Case B010 among them: behind an `id:` the SDK fails on a blank line that ends no event."""
    asks = name != "CRLF"
    stream = {
        "plain": CHAT,
        "ids": [f"id: {number}\n{event}" for number, event in enumerate(CHAT)],
        "CRLF": [event.replace("\n", "\r\n") for event in CHAT],
    }[name]
    # Between deltas, before the usage event (which is removed for those who did not ask), before [DONE].
    model = stand.model("one", {"events": stream, "gaps": {1: GAP_S, 4: GAP_S, 5: GAP_S}})
    told = call(stand, model, key=BRISK, **(USAGE if asks else {}))
    good(told)
    entry = stand.entry(model)
    assert entry.wire.keepalives >= 3
    assert entry.end == "completed"


def test_early_open(stand: Stand, call: Call) -> None:
    model = stand.model("early", {"status": 503, "head_delay": 0.35}, {"events": CHAT, "first_delay": 0.3})
    good(call(stand, model))
    entry = stand.entry(model)
    assert entry.early_open
    assert entry.wire.keepalives >= 2
    assert [one.channel for one in entry.attempts] == ["ch1", "ch2"]


def test_tool_calls(stand: Stand, call: Call) -> None:
    arguments = {"city": "北京", "unit": "celsius"}
    model = stand.model(
        "one", {"tool_calls": [{"name": "get_weather", "arguments": arguments}, {"name": "now", "arguments": {}}]}
    )
    told = call(stand, model)
    assert told.error is None
    assert told.finish == "tool_calls"
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for one in told.chunks:
        state.handle_chunk(one)
    made = state.get_final_completion().choices[0].message.tool_calls
    assert made is not None
    assert [one.function.name for one in made] == ["get_weather", "now"]
    assert json.loads(made[0].function.arguments) == arguments
    assert stand.entry(model).reason == "tool_calls"


def test_reasoning_passes(stand: Stand, call: Call) -> None:
    model = stand.model("one", {"text": ["A", "北", "C"], "reasoning": "think a little"})
    told = call(stand, model)
    good(told)
    extra = [(one.choices[0].delta.model_extra or {}).get("reasoning_content") for one in told.chunks if one.choices]
    assert "".join(filter(None, extra)) == "think a little"


@pytest.mark.parametrize("name", ["CR", "one byte at a time", "no [DONE]", "no blank line", "held open", "BOM"])
def test_odd_streams_are_as_good_as_they_were(stand: Stand, call: Call, name: str) -> None:
    fields: dict[str, Fields] = {
        "CR": {"events": [event.replace("\n", "\r") for event in CHAT]},
        "one byte at a time": {"events": CHAT, "writes": "byte"},
        "no [DONE]": {"events": CHAT[:-1]},
        "no blank line": {"events": [*CHAT[:-2], CHAT[-2][:-2]]},
        "held open": {"events": CHAT, "tail_hold": 30},
        "BOM": {"events": CHAT, "preamble": "\ufeff"},
    }
    model = stand.model("one", fields[name])
    told = call(stand, model, **USAGE)
    good(told)
    assert told.usage is not None, "the SDK loses a last event without its blank line, and a first one with a BOM"
    entry = stand.entry(model)
    assert entry.end == "completed"
    assert entry.duration_s < 5


# ---- broken streams


@pytest.mark.parametrize(
    "cut",
    [
        {"how": "rst"},
        {"how": "fin"},
        {"how": "clean"},
        {"extra": -12, "how": "rst"},
        {"extra": 40, "how": "clean"},
    ],
    ids=["reset", "closed", "clean", "reset in an event", "clean in an event"],
)
def test_a_cut_raises(stand: Stand, call: Call, cut: Fields) -> None:
    """Cases B039, B042, B043: no silent truncation, and no JSON error in place of ours."""
    model = stand.model("pair", {"events": CHAT, "cut": {"after_events": 2, **cut}}, {"events": CHAT})
    error = broke(call(stand, model), "upstream_interrupted", "A北")
    assert "again" in error.message
    assert stand.entry(model).end == "interrupted"
    assert not stand.calls(model, stand.ch2)


def test_a_stall_raises(stand: Stand, call: Call) -> None:
    model = stand.model("impatient", {"events": CHAT, "cut": {"after_events": 2, "how": "stall"}})
    broke(call(stand, model), "upstream_stalled", "A北")
    entry = stand.entry(model)
    assert entry.end == "stalled"
    assert entry.wire.keepalives >= 1


def test_an_error_in_the_stream_is_the_upstreams(stand: Stand, call: Call) -> None:
    """Case B046."""
    model = stand.model("one", {"events": [C0, C1, error_event("their_code", "their words")]})
    told = call(stand, model)
    error = told.error
    assert type(error) is openai.APIError
    assert (error.message, error.code, told.text) == ("their words", "their_code", "A北")
    assert stand.entry(model).end == "failed"


def test_a_cut_behind_an_early_open_raises(stand: Stand, call: Call) -> None:
    model = stand.model("early-one", {"status": 503, "head_delay": 0.35})
    broke(call(stand, model), "upstream_error", "")
    assert stand.entry(model).end == "refused"


@pytest.mark.parametrize(
    ("event", "kind", "status", "code"),
    [
        (error_event("rate_limit_exceeded"), openai.RateLimitError, 429, "upstream_rate_limited"),
        (error_event("server_error"), openai.InternalServerError, 500, "upstream_error"),
        (error_event("context_length_exceeded"), openai.BadRequestError, 400, "bad_request"),
        (error_event("invalid_api_key"), openai.InternalServerError, 502, "upstream_error"),
    ],
)
def test_an_error_as_the_first_event_is_a_status(
    stand: Stand, call: Call, event: str, kind: type[openai.APIStatusError], status: int, code: str
) -> None:
    """Case B051."""
    model = stand.model("one", {"events": [event]})
    error = refused(call(stand, model), kind, status, code)
    assert stand.entry(model).id == error.request_id


@pytest.mark.parametrize(
    "fields",
    [
        {"events": [error_event(503)]},
        {"status": 503},
        {"body": "<html></html>", "content_type": "text/html"},
        {"events": []},
    ],
    ids=["event", "status", "HTML", "nothing"],
)
def test_with_a_second_channel_it_is_invisible(stand: Stand, call: Call, fields: Fields) -> None:
    model = stand.model("pair", fields, {"events": CHAT})
    good(call(stand, model))
    assert [one.channel for one in stand.entry(model).attempts] == ["ch1", "ch2"]


def test_leaving_the_stream_closes_the_upstream(stand: Stand) -> None:
    """Case B058."""
    model = stand.model("one", {"text": "word ", "repeat": 2000, "gap": 0.02})
    with client(stand) as sdk, sdk.chat.completions.create(model=model, messages=MESSAGES, stream=True) as stream:
        next(iter(stream))
    assert stand.calls(model)[0].closed_early
    assert stand.entry(model).end == "client_gone"


def test_cancelling_the_task_closes_the_upstream(stand: Stand) -> None:
    model = stand.model("one", {"text": "word ", "repeat": 2000, "gap": 0.02})

    async def main() -> None:
        async with async_client(stand) as sdk:
            stream = await sdk.chat.completions.create(model=model, messages=MESSAGES, stream=True)

            async def read() -> None:
                async with stream:
                    async for _ in stream:
                        begun.set()

            begun = asyncio.Event()
            task = asyncio.create_task(read())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert stand.calls(model)[0].closed_early
    assert stand.entry(model).end == "client_gone"


def test_many_at_once(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gap": 0.01})

    async def one(sdk: openai.AsyncOpenAI) -> str:
        stream = await sdk.chat.completions.create(model=model, messages=MESSAGES, stream=True)
        return "".join([part.choices[0].delta.content or "" async for part in stream])

    async def main() -> list[str]:
        async with async_client(stand) as sdk:
            return await asyncio.gather(*(one(sdk) for _ in range(20)))

    assert asyncio.run(main()) == [TEXT] * 20
    until(lambda: len(stand.entries(model)) == 20, "the last entry")
    assert {entry.end for entry in stand.entries(model)} == {"completed"}


# ---- without streaming


def test_a_whole_completion(stand: Stand) -> None:
    model = stand.model("one", {"text": TEXT, "usage": {"prompt": 1, "completion": 3}})
    with client(stand) as sdk:
        raw = sdk.chat.completions.with_raw_response.create(model=model, messages=MESSAGES)
        made = raw.parse()
    assert made.choices[0].message.content == TEXT
    assert made.usage is not None
    assert made.usage.completion_tokens == 3
    assert made.model == model
    entry = stand.entry(model)
    assert made._request_id == raw.headers["request-id"] == entry.id
    assert (entry.end, entry.stream, entry.usage.output_total) == ("completed", False, 3)


def test_a_whole_completion_asynchronously(stand: Stand) -> None:
    model = stand.model("pair", {"status": 500}, {"text": TEXT})

    async def main() -> str | None:
        async with async_client(stand) as sdk:
            made = await sdk.chat.completions.create(model=model, messages=MESSAGES)
            content: str | None = made.choices[0].message.content
            return content

    assert asyncio.run(main()) == TEXT


def test_tool_calls_without_streaming(stand: Stand) -> None:
    model = stand.model("one", {"tool_calls": [{"name": "f", "arguments": {"a": 1}}]})
    with client(stand) as sdk:
        made = sdk.chat.completions.create(model=model, messages=MESSAGES)
    assert made.choices[0].finish_reason == "tool_calls"
    calls = made.choices[0].message.tool_calls
    assert calls is not None
    assert calls[0].type == "function"
    assert json.loads(calls[0].function.arguments) == {"a": 1}


def test_a_completion_that_breaks_off_raises(stand: Stand) -> None:
    model = stand.model("impatient", {"text": "word ", "repeat": 40_000, "cut": {"at_byte": 150_000, "how": "rst"}})
    with client(stand) as sdk, pytest.raises(openai.APIConnectionError):
        sdk.chat.completions.create(model=model, messages=MESSAGES)
    assert stand.entry(model).end == "interrupted"


def test_models(stand: Stand) -> None:
    with client(stand) as sdk:
        listed = [model.id for model in sdk.models.list()]
        assert {"exact", "renamed"} <= set(listed)
        assert not [name for name in listed if "*" in name]
        one = sdk.models.retrieve("exact")
        assert (one.id, one.object) == ("exact", "model")
        assert (one.model_extra or {})["accepted_request_formats"] == ["openai_chat_completions"]
    with client(stand, api_key="sk-hr-narrow-0123456789abcdef") as sdk:
        assert [model.id for model in sdk.models.list()] == ["exact"]


# ---- errors by status

UPSTREAM: dict[str, tuple[Fields, type[openai.APIStatusError], int, str | None]] = {
    "400": ({"status": 400, "body": {"error": {"message": "m", "type": "t", "code": "theirs"}}}, openai.BadRequestError, 400, "theirs"),
    "404": ({"status": 404, "body": {"error": {"message": "m", "type": "t", "code": "theirs"}}}, openai.NotFoundError, 404, "theirs"),
    "409": ({"status": 409, "body": {"error": {"message": "m", "code": "theirs"}}}, openai.ConflictError, 409, "theirs"),
    "413": ({"status": 413, "body": {"error": {"message": "m", "code": "theirs"}}}, openai.APIStatusError, 413, "theirs"),
    "422": ({"status": 422, "body": {"error": {"message": "m", "code": "theirs"}}}, openai.UnprocessableEntityError, 422, "theirs"),
    "401": ({"status": 401}, openai.InternalServerError, 502, "upstream_error"),
    "402": ({"status": 402}, openai.InternalServerError, 502, "upstream_error"),
    "403": ({"status": 403}, openai.InternalServerError, 502, "upstream_error"),
    "408": ({"status": 408}, openai.InternalServerError, 504, "upstream_timeout"),
    "429": ({"status": 429}, openai.RateLimitError, 429, "upstream_rate_limited"),
    "500": ({"status": 500}, openai.InternalServerError, 502, "upstream_error"),
    "529": ({"status": 529}, openai.InternalServerError, 529, "upstream_error"),
    "HTML": ({"status": 502, "body": "<html></html>"}, openai.InternalServerError, 502, "upstream_error"),
    "lost": ({"refuse": {"when": "body", "how": "rst"}}, openai.InternalServerError, 502, "upstream_unreachable"),
}  # fmt: skip


@pytest.mark.parametrize("name", UPSTREAM)
def test_upstream_errors_by_class(stand: Stand, call: Call, name: str) -> None:
    fields, kind, status, code = UPSTREAM[name]
    error = refused(call(stand, stand.model("one", fields)), kind, status, code)
    assert error.request_id == error.response.headers["request-id"]


def own(stand: Stand, model: str, **options: object) -> openai.APIStatusError:
    """The error that a whole completion raises."""
    with client(stand, **options) as sdk, pytest.raises(openai.APIStatusError) as raised:
        sdk.chat.completions.create(model=model, messages=MESSAGES)
    assert raised.value.request_id
    return raised.value


@pytest.mark.parametrize(
    ("model", "key", "kind", "code", "type_"),
    [
        ("exact", "sk-wrong", openai.AuthenticationError, "invalid_api_key", "authentication_error"),
        ("exact", "sk-hr-expired-0123456789abcdef", openai.AuthenticationError, "expired_api_key", "authentication_error"),
        ("exact", "sk-hr-disabled-0123456789abcdef", openai.PermissionDeniedError, "key_disabled", "permission_error"),
        ("renamed", "sk-hr-narrow-0123456789abcdef", openai.PermissionDeniedError, "model_not_allowed", "permission_error"),
        ("none", "sk-hr-test-0123456789abcdef", openai.NotFoundError, "model_not_found", "invalid_request_error"),
        ("responses-only", "sk-hr-test-0123456789abcdef", openai.BadRequestError, "protocol_not_offered", "invalid_request_error"),
    ],
)  # fmt: skip
def test_own_errors_by_class(
    stand: Stand, model: str, key: str, kind: type[openai.APIStatusError], code: str, type_: str
) -> None:
    error = own(stand, model, api_key=key)
    assert type(error) is kind
    assert (error.code, error.type) == (code, type_)
    assert error.message.endswith(f"{error.body['message']}") or error.body["message"] in error.message  # type: ignore[index]


def test_a_body_that_is_too_large(stand: Stand) -> None:
    with client(stand) as sdk, pytest.raises(openai.APIStatusError) as raised:
        sdk.chat.completions.create(model="exact", messages=[{"role": "user", "content": "x" * 2_000_000}])
    assert (raised.value.status_code, raised.value.code) == (413, "payload_too_large")


def test_a_wrong_base_url_says_the_right_one(stand: Stand) -> None:
    error = own(stand, "exact", base_url=f"{stand.url}/v1")
    assert type(error) is openai.NotFoundError
    assert "Use /v1/chat/completions" in error.message


def test_a_base_url_without_version_works(stand: Stand) -> None:
    model = stand.model("one", {"text": TEXT})
    with client(stand, base_url=stand.url.removesuffix("/v1")) as sdk:
        made = sdk.chat.completions.create(model=model, messages=MESSAGES)
    assert made.choices[0].message.content == TEXT


def test_the_sdk_waits_as_the_upstream_asks(stand: Stand) -> None:
    """Its own retry, led by our Retry-After."""
    limited = {"status": 429, "headers": {"retry-after-ms": "3100"}}
    model = stand.model("one", {"text": TEXT, "sequence": [{"status": 429, "headers": {"retry-after-ms": "50"}}, {}]})
    with client(stand, max_retries=1) as sdk:
        made = sdk.chat.completions.create(model=model, messages=MESSAGES)
    assert made.choices[0].message.content == TEXT
    until(lambda: [entry.status for entry in stand.entries(model)] == [429, 200], "both entries")
    error = own(stand, stand.model("one", limited))
    assert error.response.headers["retry-after"] == "4"
    assert error.response.headers["retry-after-ms"] == "3100"


def test_the_role_and_metadata_of_chunks_are_the_upstreams(stand: Stand, call: Call) -> None:
    """Case B027: nothing of ours in the body."""
    model = stand.model("one", {"events": [chunk({"role": "assistant", "content": TEXT}), *CHAT[3:]]})
    told = call(stand, model, **USAGE)
    assert {(one.id, one.model, one.created) for one in told.chunks} == {("c", "up", 1)}
    assert stand.calls(model)[0].sent.endswith(DONE.encode())
