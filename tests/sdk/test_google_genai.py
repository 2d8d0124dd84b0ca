"""google-genai 3.6.1 through the gateway, sync and async: what its users get to see."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import errors, types

from tests.stand.gemini import CONFIG, GEM, KEEPALIVE, chunk, error, event
from tests.stand.stand import Stand
from tests.stand.wire import KEY

pytestmark = pytest.mark.sdk

GAP = 0.25  # the stand's keepalive of 0.1 s, the clock's quantum of 0.05 s, and room for a busy machine
ASKED = "hi"


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with Stand(tmp_path_factory.mktemp("gemini"), CONFIG) as one:
        yield one


@dataclass
class Told:
    """What a caller saw: the chunks up to the error that was raised, if any."""

    chunks: list[types.GenerateContentResponse] = field(default_factory=list)
    error: Exception | None = None

    @property
    def text(self) -> str:
        return "".join(one.text or "" for one in self.chunks)

    @property
    def finish(self) -> str | None:
        reasons = [c.finish_reason for one in self.chunks for c in one.candidates or () if c.finish_reason]
        return reasons[-1].value if reasons else None

    @property
    def tokens(self) -> int | None:
        found = [one.usage_metadata.total_token_count for one in self.chunks if one.usage_metadata is not None]
        return found[-1] if found else None

    @property
    def api_error(self) -> errors.APIError:
        assert isinstance(self.error, errors.APIError), self.error
        return self.error


def client(stand: Stand, version: str | None = None) -> genai.Client:
    """As its users make it: a key and a base URL. A client that need not read the certificates is made at once."""
    options = types.HttpOptions(
        base_url=f"http://127.0.0.1:{stand.port}",
        api_version=version,
        client_args={"verify": False, "trust_env": False},
        async_client_args={"verify": False, "trust_env": False},
    )
    return genai.Client(api_key=KEY, http_options=options)


def stream(stand: Stand, model: str, version: str | None = None, **config: Any) -> Told:
    told = Told()
    with client(stand, version) as sdk:
        try:
            for one in sdk.models.generate_content_stream(model=model, contents=ASKED, config=_config(config)):
                told.chunks.append(one)
        except (errors.APIError, errors.UnknownApiResponseError, httpx2.HTTPError) as error:
            told.error = error
    return told


def async_stream(stand: Stand, model: str, version: str | None = None, **config: Any) -> Told:
    async def run() -> Told:
        told = Told()
        async with client(stand, version).aio as sdk:
            try:
                chunks = sdk.models.generate_content_stream(model=model, contents=ASKED, config=_config(config))
                async for one in await chunks:
                    told.chunks.append(one)
            except (errors.APIError, errors.UnknownApiResponseError, httpx2.HTTPError) as error:
                told.error = error
        return told

    return asyncio.run(run())


def _config(members: dict[str, Any]) -> types.GenerateContentConfig | None:
    return types.GenerateContentConfig(**members) if members else None


Call = Callable[..., Told]
both = pytest.mark.parametrize("call", [pytest.param(stream, id="sync"), pytest.param(async_stream, id="async")])


def assert_whole(told: Told) -> None:
    assert told.error is None
    assert (told.text, told.finish, told.tokens) == ("A北C", "STOP", 7)


@both
@pytest.mark.parametrize("version", [None, "v1", "v1beta"])
def test_a_stream(stand: Stand, call: Call, version: str | None) -> None:
    model = stand.model("one", {"events": GEM})
    assert_whole(call(stand, model, version))
    entry = stand.entry(model)
    assert (entry.end, entry.reason, entry.usage.input_total, entry.usage.output_total) == ("completed", "STOP", 4, 3)
    (seen,) = stand.calls(model)
    assert seen.target == f"/v1beta/models/{model}:streamGenerateContent?alt=sse"


@both
def test_the_simulators_own_stream(stand: Stand, call: Call) -> None:
    model = stand.model("one", {"text": "one two three", "reasoning": "well"})
    told = call(stand, model)
    assert (told.error, told.text, told.finish) == (None, "one two three", "STOP")
    entry = stand.entry(model)
    (seen,) = stand.calls(model)
    assert entry.usage.output_total == seen.truth.completion
    assert entry.usage.reasoning == 1


@both
def test_keepalives_in_every_gap(stand: Stand, call: Call) -> None:
    """Case B011: before the first event, between events, and after the last one."""
    model = stand.model("early", {"events": GEM, "first_delay": GAP, "gap": GAP, "tail_hold": GAP})
    assert_whole(call(stand, model))
    entry = stand.entry(model)
    assert entry.early_open
    assert entry.wire.keepalives >= 4
    assert entry.wire.inserted == entry.wire.keepalives * len(KEEPALIVE)
    assert entry.end == "completed"


@both
def test_keepalives_in_a_stream_of_lf(stand: Stand, call: Call) -> None:
    model = stand.model("one", {"events": [one.replace("\r\n", "\n") for one in GEM], "gap": GAP})
    assert_whole(call(stand, model))
    entry = stand.entry(model)
    assert entry.wire.inserted == entry.wire.keepalives * 2 > 0


@both
def test_function_calls(stand: Stand, call: Call) -> None:
    called = {"name": "get_weather", "arguments": {"city": "北京"}, "id": "call-1"}
    model = stand.model("one", {"tool_calls": [called], "gap": GAP})
    told = call(stand, model, automatic_function_calling={"disable": True})
    assert told.error is None
    (found,) = [one for each in told.chunks for one in each.function_calls or ()]
    assert (found.name, found.args, found.id) == ("get_weather", {"city": "北京"}, "call-1")
    assert stand.entry(model).usage.output_total


@both
def test_comments_of_the_upstream_do_not_reach_the_client(stand: Stand, call: Call) -> None:
    model = stand.model("one", {"events": [": hi\r\n\r\n", GEM[0], ": ping\r\n\r\n", "\r\n", *GEM[1:]]})
    assert_whole(call(stand, model))
    wire = stand.entry(model).wire
    assert (wire.heartbeats, wire.removed) == (3, len(": hi\r\n\r\n: ping\r\n\r\n"))


@both
@pytest.mark.parametrize(
    "cut", [{"after_events": 2}, {"after_events": 2, "extra": -9}, {"after_events": 2, "how": "fin"}]
)
def test_a_cut(stand: Stand, call: Call, cut: dict[str, object]) -> None:
    """Cases B042, B043, B101."""
    model = stand.model("one", {"events": GEM, "cut": cut})
    told = call(stand, model)
    assert told.text == "A北"
    assert isinstance(told.error, errors.ServerError)
    assert (told.api_error.code, told.api_error.status) == (503, "UNAVAILABLE")
    assert "broke off" in (told.api_error.message or "")
    assert stand.entry(model).end == "interrupted"


@both
def test_a_stall(stand: Stand, call: Call) -> None:
    model = stand.model("stalling", {"events": GEM, "cut": {"after_events": 2, "how": "stall"}})
    told = call(stand, model)
    assert told.text == "A北"
    assert (told.api_error.code, told.api_error.status) == (503, "UNAVAILABLE")
    assert stand.entry(model).end == "stalled"


@both
def test_a_stall_behind_the_end_loses_nothing(stand: Stand, call: Call) -> None:
    model = stand.model("stalling", {"events": GEM, "cut": {"how": "stall"}})
    assert_whole(call(stand, model))
    assert stand.entry(model).end == "completed"


@both
def test_an_error_in_the_stream(stand: Stand, call: Call) -> None:
    """Case B046: the upstream's own error, and nothing behind it."""
    model = stand.model("one", {"events": [*GEM[:2], event(error(503))]})
    told = call(stand, model)
    assert (told.text, told.api_error.code, told.api_error.message) == ("A北", 503, "no")
    assert stand.entry(model).end == "failed"


@both
def test_an_error_first(stand: Stand, call: Call) -> None:
    """Case B051: another channel is tried; with none left the error is an HTTP status."""
    model = stand.model("pair", {"error_first": True, "status": 200}, {"events": GEM})
    assert_whole(call(stand, model))
    model = stand.model("one", {"events": [event(error(429, "RESOURCE_EXHAUSTED"))]})
    told = call(stand, model)
    assert (told.chunks, told.api_error.code, told.api_error.status) == ([], 429, "RESOURCE_EXHAUSTED")


@both
def test_an_error_behind_an_early_head(stand: Stand, call: Call) -> None:
    model = stand.model("early", {"events": [event(error(429, "RESOURCE_EXHAUSTED"))], "first_delay": 0.3})
    told = call(stand, model)
    assert (told.chunks, told.api_error.code, told.api_error.status) == ([], 429, "RESOURCE_EXHAUSTED")
    entry = stand.entry(model)
    assert (entry.early_open, entry.status, entry.end) == (True, 200, "refused")


@both
@pytest.mark.parametrize(
    ("scenario", "code", "status"),
    [
        ({"status": 400, "error": {"message": "bad tools"}}, 400, "INVALID_ARGUMENT"),
        ({"status": 404, "error": {"message": "no such cache"}}, 404, "NOT_FOUND"),
        ({"status": 429}, 429, "RESOURCE_EXHAUSTED"),
        ({"status": 500}, 502, "UNAVAILABLE"),
        ({"status": 403}, 502, "UNAVAILABLE"),
        ({"status": 400, "error": {"code": "API_KEY_INVALID"}}, 502, "UNAVAILABLE"),
        ({"status": 504}, 504, "DEADLINE_EXCEEDED"),
    ],
)
def test_http_errors(stand: Stand, call: Call, scenario: dict[str, object], code: int, status: str) -> None:
    told = call(stand, stand.model("one", scenario))
    assert (told.chunks, told.api_error.code, told.api_error.status) == ([], code, status)


@both
def test_an_unknown_model(stand: Stand, call: Call) -> None:
    told = call(stand, "exakt")
    assert (told.api_error.code, told.api_error.status) == (404, "NOT_FOUND")
    assert "exact" in (told.api_error.message or "")


@both
def test_a_blocked_prompt(stand: Stand, call: Call) -> None:
    blocked = chunk(promptFeedback={"blockReason": "SAFETY"}, usageMetadata={"promptTokenCount": 4})
    model = stand.model("one", {"events": [event(blocked)]})
    told = call(stand, model)
    assert told.error is None
    assert told.chunks[0].prompt_feedback is not None
    entry = stand.entry(model)
    assert (entry.end, entry.reason, entry.usage.input_total, entry.usage.output_total) == (
        "incomplete",
        "SAFETY",
        4,
        0,
    )


@both
def test_continuation_is_the_sdks(stand: Stand, call: Call) -> None:
    """after an end without a finishReason and with a token the SDK asks on by itself; nothing is put
    in between, and each hop has its own entry."""
    first = chunk("A", tokens=1)
    token = first.replace('"index": 0', '"index": 0, "continuationToken": "dG9rZW4="')
    model = stand.model("one", {"sequence": [{"events": [event(token)]}, {"events": [event(chunk("B", "STOP", 2))]}]})
    told = call(stand, model)
    assert (told.error, told.text, told.finish) == (None, "AB", "STOP")
    assert [entry.reason for entry in stand.entries(model, count=2)] == ["none", "STOP"]
    assert b"continuationToken" in stand.calls(model)[1].body


@both
def test_a_cut_hop_is_continued_too(stand: Stand, call: Call) -> None:
    token = chunk("A", tokens=1).replace('"index": 0', '"index": 0, "continuationToken": "dG9rZW4="')
    hops = [{"events": [event(token)], "cut": "rst"}, {"events": [event(chunk("B", "STOP", 2))]}]
    model = stand.model("one", {"sequence": hops})
    told = call(stand, model)
    assert (told.error, told.text) == (None, "AB")
    assert [entry.end for entry in stand.entries(model, count=2)] == ["interrupted", "completed"]


# ---- without streaming


def test_generate_content(stand: Stand) -> None:
    model = stand.model("one", {"text": "A北C", "usage": {"prompt": 4, "completion": 3}})
    with client(stand) as sdk:
        answer = sdk.models.generate_content(model=model, contents=ASKED)
    assert answer.text == "A北C"
    entry = stand.entry(model)
    assert (entry.operation, entry.end, entry.reason) == ("gemini.generate_content", "completed", "STOP")
    assert (entry.usage.input_total, entry.usage.output_total, entry.served_model) == (4, 3, model)


def test_async_generate_content_and_its_error(stand: Stand) -> None:
    model = stand.model("one", {"sequence": [{}, {"status": 400}]})

    async def run() -> None:
        async with client(stand).aio as sdk:
            assert (await sdk.models.generate_content(model=model, contents=ASKED)).text
            with pytest.raises(errors.ClientError) as raised:
                await sdk.models.generate_content(model=model, contents=ASKED)
            assert raised.value.code == 400

    asyncio.run(run())


def test_count_tokens_and_embeddings(stand: Stand) -> None:
    model = stand.model("one", {"usage": {"prompt": 31}})
    with client(stand) as sdk:
        assert sdk.models.count_tokens(model=model, contents=ASKED).total_tokens == 31
        embedded = sdk.models.embed_content(model=model, contents=["a", "b"])
    assert [len(one.values or ()) for one in embedded.embeddings or ()] == [768, 768]
    counted, vectors = stand.entries(model, count=2)
    assert (counted.operation, counted.end, counted.usage_origin) == ("gemini.count_tokens", "completed", "none")
    assert (vectors.operation, vectors.end) == ("gemini.batch_embed_contents", "completed")


def test_models_are_listed(stand: Stand) -> None:
    with client(stand) as sdk:
        listed = {model.name: model for model in sdk.models.list()}
        one = sdk.models.get(model="exact")
    assert {"models/exact", "models/org/renamed:x"} <= set(listed)
    assert (one.name, one.output_token_limit) == ("models/exact", 65536)
    assert "generateContent" in (one.supported_actions or ())
