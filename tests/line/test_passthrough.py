"""The passthrough families on real sockets: where a request goes, what of it changes, how its answer passes."""

import gzip
import json
import socket
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from headrace.simulator.passthrough import speech_from
from tests.sdk.calls import client as sdk
from tests.stand.client import End, Reply
from tests.stand.stand import Stand, until
from tests.stand.wire import KEY, TEXT, chat, error_in, request, texts

ALL = "[chat, completions, embeddings, moderations, images, audio, videos, rerank]"
CONFIG = f"""
server: {{listen: "127.0.0.1:0", max_body: 4MiB, drain_notice: 0s, drain: 5s}}
state: {{directory: $STATE}}
stream:
  keepalive: 50ms
  early_open: 50ms
  early_open_cold: 50ms
  first_event: 1s
  open: 5s
  stall: 400ms
  stall_with_pings: 1s
  reply: 2s
  total: 30s
  write_timeout: 1s
channels:
  ch1:
    base_url: $CH1/v1
    allow_http: true
    protocols: {ALL}
    credentials: [{{name: main, secret: sk-up-1}}, {{name: spare, secret: sk-up-1b}}]
  ch2:
    base_url: $CH2/v1
    allow_http: true
    protocols: {ALL}
    priority: 1
    credentials: [{{name: main, secret: sk-up-2}}]
  azure:
    base_url: $CH1
    allow_http: true
    protocols: [chat, embeddings]
    auth: header:api-key
    query: {{api-version: 2024-10-21}}
    paths:
      chat.completions: /openai/deployments/{{model}}/chat/completions
      embeddings: /openai/deployments/{{model}}/embeddings
    priority: 2
    credentials: [{{name: main, secret: sk-azure}}]
  queried:
    base_url: $CH1/v1
    allow_http: true
    protocols: [chat, embeddings]
    auth: query:token
    query: {{tenant: a%20b}}
    priority: 3
    credentials: [{{name: main, secret: sk-queried&+}}]
  odd:
    base_url: $CH1/v1
    allow_http: true
    protocols: [embeddings]
    auth: header:x-secret
    priority: 4
    credentials: [{{name: main, secret: sk-odd}}]
  home:
    base_url: $CH2/own
    allow_http: true
    protocols: [moderations, audio, embeddings]
    priority: 9
    home: true
    credentials: [{{name: first, secret: sk-home}}, {{name: second, secret: sk-home-2}}]
models:
  one-*: {{routes: [{{channel: ch1}}], max_attempts: 1}}
  pair-*: {{routes: [{{channel: ch1}}, {{channel: ch2}}], max_attempts: 3}}
  deployed-*: {{routes: [{{channel: azure}}]}}
  queried-*: {{routes: [{{channel: queried}}]}}
  odd-*: {{routes: [{{channel: odd}}]}}
  renamed: {{routes: [{{channel: ch1, upstream_model: 'up/"x"'}}]}}
  deployed: {{routes: [{{channel: azure, upstream_model: my-deployment}}]}}
  homely: {{routes: [{{channel: home}}]}}
keys:
  - {{name: dev, secret: {KEY}}}
  - {{name: narrow, secret: sk-hr-narrow-0123456789abcdef, models: ["one-*"]}}
  - {{name: deployer, secret: sk-hr-deployer-0123456789abcdef, models: [deployed]}}
"""
NARROW = "sk-hr-narrow-0123456789abcdef"
DEPLOYER = "sk-hr-deployer-0123456789abcdef"
EMBEDDINGS = "/v1/embeddings"
SPEECH = "/v1/audio/speech"
MODERATIONS = "/v1/moderations"


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with Stand(tmp_path_factory.mktemp("passthrough"), CONFIG) as one:
        yield one


def embed(model: str, **members: object) -> dict[str, object]:
    return {"model": model, "input": "hello there", "dimensions": 4} | members


def speak(model: str, **members: object) -> dict[str, object]:
    return {"model": model, "input": "hi", "voice": "alloy"} | members


def form(model: str | None, content: bytes = b"RIFF\0\r\n\r\n--x") -> bytes:
    parts = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + content + b"\r\n"
    if model is not None:
        parts += b'--B\r\nContent-Disposition: form-data; name="model"\r\n\r\n' + model.encode() + b"\r\n"
    return parts + b"--B--\r\n"


FORM = {"content-type": "multipart/form-data; boundary=B"}


# ---- every family, as its SDK asks


def test_embeddings(stand: Stand) -> None:
    model = stand.model("one", {})
    with sdk(stand) as client:
        made = client.embeddings.create(model=model, input=["a", "b", "a"], dimensions=4)
    assert made.data[0].embedding == made.data[2].embedding != made.data[1].embedding
    entry = stand.entry(model)
    assert (entry.protocol, entry.operation, entry.end, entry.stream) == (
        "embeddings",
        "embeddings",
        "completed",
        False,
    )
    assert (entry.usage.input_total, entry.usage.output_total, entry.usage_origin) == (3, 0, "upstream")
    assert (entry.served_model, entry.attempts[0].verdict) == (model, "relay")


def test_the_alias_of_embeddings_and_no_other(stand: Stand) -> None:
    model = stand.model("one", {})
    assert stand.ask(embed(model), path="/embeddings").status == 200
    missing = stand.ask(speak(model), path="/audio/speech")
    assert missing.status == 404
    assert "/v1/audio/speech" in str(error_in(missing.body)["message"])


def test_moderations(stand: Stand) -> None:
    model = stand.model("one", {})
    with sdk(stand) as client:
        made = client.moderations.create(model=model, input="hello")
    assert made.results[0].flagged is False
    assert stand.entry(model).usage_origin == "none"


@pytest.mark.parametrize("stream", [False, True])
def test_completions(stand: Stand, stream: bool) -> None:
    model = stand.model("one", {"text": "A北C", "chunks": "characters", "finish_reason": "length"})
    with sdk(stand) as client:
        if stream:
            options: dict[str, object] = {"stream": True, "stream_options": {"include_usage": True}}
            with client.completions.create(model=model, prompt="hi there", **options) as chunks:  # type: ignore[call-overload]
                said = "".join(choice.text for chunk in chunks for choice in chunk.choices)
        else:
            said = client.completions.create(model=model, prompt="hi there").choices[0].text
    assert said == TEXT
    entry = stand.entry(model)
    assert (entry.end, entry.finish_reasons, entry.stream) == ("completed", ("length",), stream)
    assert (entry.usage.input_total, entry.usage.output_total, entry.usage_origin) == (2, 2, "upstream")


def test_images(stand: Stand) -> None:
    model = stand.model("one", {})
    with sdk(stand) as client:
        made = client.images.generate(model=model, prompt="a cat", n=2)
        edited = client.images.edit(model=model, image=b"\x89PNG\r\n\r\n--", prompt="a dog")
        with pytest.warns(DeprecationWarning):
            varied = client.images.create_variation(model=model, image=b"\x89PNG")
    assert len(made.data or ()) == 2
    assert edited.data and edited.data[0].b64_json and varied.data
    until(lambda: len(stand.entries(model)) == 3, "three entries")
    entries = stand.entries(model)
    assert [one.operation for one in entries] == ["images.generations", "images.edits", "images.variations"]
    assert [one.usage.output_total for one in entries] == [200, 100, None]
    assert [call.target for call in stand.calls(model)] == [
        "/v1/images/generations",
        "/v1/images/edits",
        "/v1/images/variations",
    ]


def test_speech_is_streamed(stand: Stand) -> None:
    words = ["a", " b", " c"]
    model = stand.model("one", {"text": words, "gap": 0.02})
    asked: Any = {"model": model, "input": "x", "voice": "alloy"}
    with sdk(stand) as client, client.audio.speech.with_streaming_response.create(**asked) as reply:
        assert reply.headers["content-type"] == "audio/mpeg"
        said = b"".join(reply.iter_bytes())
    assert said == b"".join(speech_from(word) for word in words)
    entry = stand.entry(model)
    assert (entry.end, entry.reason, entry.usage_origin) == ("completed", "end of body", "none")
    assert entry.wire.events == 3


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")
@pytest.mark.parametrize("call", ["transcriptions", "translations"])
def test_transcriptions(stand: Stand, call: str) -> None:
    model = stand.model("one", {"text": "it says"})
    with sdk(stand) as client:
        made = getattr(client.audio, call).create(model=model, file=("a.wav", b"RIFF" * 100))
    assert made.text == "it says"
    entry = stand.entry(model)
    assert (entry.protocol, entry.operation) == ("audio", f"audio.{call}")
    assert (entry.usage.input_total, entry.usage.audio_input, entry.usage.output_total) == (100, 100, 2)


@pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")
def test_videos_are_created_and_nothing_else_yet(stand: Stand) -> None:
    model = stand.model("one", {})
    with sdk(stand) as client:
        made = client.videos.create(model=model, prompt="a cat")
        assert made.status == "queued"
        with pytest.raises(openai.NotFoundError):
            client.videos.retrieve(made.id)


def test_rerank(stand: Stand) -> None:
    model = stand.model("one", {})
    body = {"model": model, "query": "red cat", "documents": ["a dog", "a red cat", "red"]}
    made = json.loads(stand.ask(body, path="/v1/rerank").body)
    assert [one["index"] for one in made["results"]] == [1, 2, 0]
    usage = stand.entry(model).usage
    assert (usage.input_total, usage.output_total) == (6, 0)


# ---- what of a request changes


def test_only_the_models_value_is_replaced_in_json(stand: Stand) -> None:
    stand.ch1.scenario('up/"x"', {})
    sent = b'{ "input" : "\\u00e9\\ud800", "model":"renamed" ,"dimensions":4,"x":1.0}'
    assert stand.ask(sent, path=f"{EMBEDDINGS}?a=b&%6bey={KEY}&c").status == 200
    call = stand.calls('up/"x"')[-1]
    assert call.body == sent.replace(b'"renamed"', b'"up/\\"x\\""')
    assert call.target == "/v1/embeddings?a=b&c"


def test_only_the_models_part_is_replaced_in_a_form(stand: Stand) -> None:
    stand.ch1.scenario('up/"x"', {"text": "ok"})
    sent = form("renamed", b"renamed\0" * 100_000)
    reply = stand.ask(sent, path="/v1/audio/transcriptions", headers=FORM)
    assert json.loads(reply.body)["text"] == "ok"
    call = stand.calls('up/"x"')[-1]
    assert call.body_length == len(sent) - len("renamed") + len('up/"x"')
    assert dict(call.headers)["content-type"] == FORM["content-type"]


@pytest.mark.parametrize(
    ("path", "body", "headers", "says"),
    [
        (EMBEDDINGS, b'{"model":1}', {}, "`model`"),
        (EMBEDDINGS, b'{"model":""}', {}, "empty"),
        (EMBEDDINGS, b'{"model":"one-x","stream":"yes"}', {}, "`stream`"),
        (EMBEDDINGS, b"[1]", {}, "object"),
        (EMBEDDINGS, b"{", {}, "JSON"),
        (EMBEDDINGS, b"", {}, "JSON"),
        (EMBEDDINGS, b'{"model":"one-\\ud800"}', {}, "surrogate"),
        (EMBEDDINGS, b"model=one-x", {"content-type": "application/x-www-form-urlencoded"}, "takes JSON"),
        (EMBEDDINGS, b'{"model":"one-..","Model":"x"}', {}, "`Model`"),
        (EMBEDDINGS, b'{"model":"one-/../x"}', {}, "`..`"),
        ("/v1/images/edits", form("one-x")[:-9], FORM, "closing boundary"),
        ("/v1/images/edits", form("one-x"), {"content-type": "multipart/form-data"}, "boundary"),
        ("/v1/images/edits", form("one-x").replace(b"one-x", b"\xff"), FORM, "UTF-8"),
        ("/v1/images/edits", form(""), FORM, "empty"),
    ],
)
def test_a_request_that_cannot_be_read(
    stand: Stand, path: str, body: bytes, headers: dict[str, str], says: str
) -> None:
    reply = stand.ask(body, path=path, headers=headers)
    assert reply.status == 400
    error = error_in(reply.body)
    assert error["code"] == "bad_request" and says in str(error["message"])
    assert stand.entry(id=reply.id).end == "refused"


def test_a_model_that_does_not_offer_the_family(stand: Stand) -> None:
    reply = stand.ask({"model": "deployed", "input": "x"}, path=MODERATIONS)
    error = error_in(reply.body)
    assert (reply.status, error["code"]) == (400, "protocol_not_offered")
    assert error["accepted_request_formats"] == ["openai_chat_completions"]
    told = error_in(stand.ask(chat("homely")).body)["message"]
    assert "It takes: /v1/" in str(told) and "nothing" not in str(told)


def test_lists_show_models_that_any_openai_endpoint_can_call(stand: Stand) -> None:
    listed = json.loads(stand.ask(method="GET", path="/v1/models").body)["data"]
    assert {one["id"]: one["accepted_request_formats"] for one in listed} == {
        "renamed": ["openai_chat_completions"],
        "deployed": ["openai_chat_completions"],
        "homely": [],
    }


# ---- requests that name no model


def test_a_request_without_a_model_goes_to_the_home_channel(stand: Stand) -> None:
    with sdk(stand) as client:
        reply = client.moderations.with_raw_response.create(input="hello")
    call = stand.calls("", stand.ch2)[-1]
    assert (call.target, call.credential) == ("/own/moderations", "sk-home")
    entry = stand.entry(id=reply.headers["x-request-id"])
    assert (entry.model, entry.attempts[0].channel, entry.attempts[0].credential) == ("", "home", "first")


def test_the_home_channel_is_one_of_the_keys_models(stand: Stand) -> None:
    assert stand.ask({"input": "hello"}, path=MODERATIONS, key=NARROW).status == 200
    call = stand.calls("", stand.ch1)[-1]
    assert (call.target, call.credential) == ("/v1/moderations", "sk-up-1")


@pytest.mark.parametrize("path", [MODERATIONS, EMBEDDINGS])
def test_a_key_without_a_home_is_told_to_name_a_model(stand: Stand, path: str) -> None:
    """For embeddings its only channel has the model in the path."""
    reply = stand.ask({"input": "hello"}, path=path, key=DEPLOYER)
    error = error_in(reply.body)
    assert (reply.status, error["code"], error["param"]) == (400, "bad_request", "model")


def test_a_form_without_a_model_goes_to_the_home_channel(stand: Stand) -> None:
    body = form(None)
    before = len(stand.calls("", stand.ch2))
    reply = stand.ask(body, path="/v1/audio/transcriptions", headers=FORM)
    calls = stand.calls("", stand.ch2)[before:]
    assert [(call.target, call.body) for call in calls] == [("/own/audio/transcriptions", body)]
    assert reply.status == 200


DEAR = '{"model":"dear","input":"x"}'


@pytest.mark.parametrize("path", [MODERATIONS, "/v1/audio/transcriptions"])
@pytest.mark.parametrize(
    ("body", "type"),
    [
        (b"\xef\xbb\xbf" + DEAR.encode(), "text/plain"),
        (DEAR.encode("utf-16"), "text/plain"),
        (DEAR.encode("utf-16-le"), "text/plain"),
        (DEAR.encode("utf-32"), "text/plain"),
        (DEAR.encode("utf-16"), "audio/wav"),
        (b"RIFF", "audio/wav"),
        (b'[{"model":"dear"}]', "text/plain"),
        (form("dear"), FORM["content-type"].replace("form-data", "mixed")),
        (DEAR.encode(), "multipart/mixed; boundary=x"),
        (b'{"Model":"dear"}', "application/json"),
    ],
)
def test_nothing_unread_goes_to_the_home_channel(stand: Stand, path: str, body: bytes, type: str) -> None:
    """Else a key that is limited to cheap models could name a dear one where only the upstream reads it."""
    before = [len(stand.calls("", channel)) for channel in (stand.ch1, stand.ch2)]
    reply = stand.ask(body, path=path, headers={"content-type": type}, key=NARROW)
    assert (reply.status, error_in(reply.body)["code"]) == (400, "bad_request")
    assert [len(stand.calls("", channel)) for channel in (stand.ch1, stand.ch2)] == before


@pytest.mark.parametrize("type", ["text/plain", "application/octet-stream", "application/x-www-form-urlencoded"])
def test_a_model_in_json_counts_whatever_the_body_is_called(stand: Stand, type: str) -> None:
    """Else a key could reach a model that it may not use, by way of its home channel."""
    body = json.dumps({"model": "renamed", "input": "x"}).encode()
    reply = stand.ask(body, path=MODERATIONS, key=NARROW, headers={"content-type": type})
    assert (reply.status, error_in(reply.body)["code"]) == (403, "model_not_allowed")


# ---- the relay


def test_bytes_pass_as_they_come_and_a_stall_aborts(stand: Stand) -> None:
    model = stand.model("one", {"text": ["a", "b"], "cut": {"after_events": 1, "how": "stall"}})
    with stand.connect() as client:
        reply = stand.send(client, speak(model), path=SPEECH)
        assert reply.header("x-accel-buffering") == "no"
        assert client.read(until=speech_from("a")).end is End.OPEN
        assert client.rest().end is End.RESET
    assert reply.body == speech_from("a"), "nothing was put in, though it was silent for long"
    entry = stand.entry(model)
    assert (entry.end, entry.reason, entry.wire.keepalives, entry.wire.inserted) == ("stalled", "stall", 0, 0)


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_a_break_aborts(stand: Stand, how: str) -> None:
    model = stand.model(
        "pair", {"text": ["a", "b"], "gap": 0.05, "cut": {"after_events": 1, "extra": 9, "how": how}}, {}
    )
    reply = stand.ask(speak(model), path=SPEECH)
    assert reply.end is End.RESET
    assert reply.body.startswith(speech_from("a"))
    entry = stand.entry(model)
    assert (entry.end, len(entry.attempts)) == ("interrupted", 1)


def test_nothing_is_sent_early(stand: Stand) -> None:
    model = stand.model("one", {"text": "a", "first_delay": 0.3})
    with stand.connect() as client:
        client.send(request(speak(model), path=SPEECH))
        reply = client.head()
        assert client.rest().body == speech_from("a")
    assert reply.status == 200
    assert not stand.entry(model).early_open


@pytest.mark.parametrize("first", [{"status": 503}, {"refuse": "body"}, {"body": "", "content_type": "audio/mpeg"}])
def test_failover_before_the_first_byte(stand: Stand, first: dict[str, object]) -> None:
    model = stand.model("pair", first, {"text": "b"})
    reply = stand.ask(speak(model), path=SPEECH)
    assert (reply.status, reply.body) == (200, speech_from("b"))
    assert [one.channel for one in stand.entry(model).attempts][-1] == "ch2"


def test_json_that_holds_an_error_is_judged(stand: Stand) -> None:
    model = stand.model("pair", {"body": {"error": {"message": "no", "code": "slow_down"}}}, {})
    assert json.loads(stand.ask(embed(model), path=EMBEDDINGS).body)["object"] == "list"
    assert stand.entry(model).attempts[0].verdict == "upstream_error"


def test_a_fault_of_the_client_passes_as_it_came(stand: Stand) -> None:
    body = {"error": {"message": "bad voice", "type": "invalid_request_error", "param": "voice", "code": None}}
    model = stand.model("pair", {"status": 400, "body": body}, {})
    reply = stand.ask(speak(model), path=SPEECH)
    assert (reply.status, json.loads(reply.body)) == (400, body)
    assert len(stand.entry(model).attempts) == 1


IMAGE_EVENTS = [
    'event: image_generation.partial_image\ndata: {"type":"image_generation.partial_image","b64_json":"AAAA"}\n\n',
    'event: image_generation.completed\ndata: {"type":"image_generation.completed","b64_json":"AAAA",'
    '"usage":{"total_tokens":30,"input_tokens":10,"output_tokens":20}}\n\n',
]


@pytest.mark.parametrize("writes", ["event", "byte"])
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_event_streams_pass_unchanged_and_are_metered(stand: Stand, writes: str, encoding: str) -> None:
    scenario = {"events": IMAGE_EVENTS, "gap": 0.15, "content_encoding": encoding}
    model = stand.model("one", scenario | ({"writes": "byte", "gap": 0} if writes == "byte" else {}))
    reply = stand.ask({"model": model, "prompt": "a cat", "stream": True}, path="/v1/images/generations")
    body = gzip.decompress(reply.body) if encoding == "gzip" else reply.body
    assert body == "".join(IMAGE_EVENTS).encode()
    assert reply.header("content-type") == "text/event-stream; charset=utf-8"
    assert reply.header("content-encoding") == (None if encoding == "identity" else encoding)
    entry = stand.entry(model)
    assert (entry.usage.input_total, entry.usage.output_total, entry.usage_origin) == (10, 20, "upstream")
    assert (entry.end, entry.stream, entry.wire.keepalives) == ("completed", True, 0)


def test_an_error_event_is_a_failure_that_passes(stand: Stand) -> None:
    events = [IMAGE_EVENTS[0], 'data: {"error":{"message":"no","code":"slow_down"}}\n\n']
    model = stand.model("one", {"events": events})
    reply = stand.ask({"model": model, "stream": True}, path="/v1/images/generations")
    assert (reply.body, reply.end) == ("".join(events).encode(), End.FRAMED)
    assert (stand.entry(model).end, stand.entry(model).reason) == ("failed", "upstream_error")


def test_encoded_json_passes_raw_and_is_metered(stand: Stand) -> None:
    model = stand.model("one", {"content_encoding": "gzip"})
    reply = stand.ask(embed(model), path=EMBEDDINGS)
    assert reply.header("content-encoding") == "gzip"
    assert json.loads(gzip.decompress(reply.body))["object"] == "list"
    assert stand.entry(model).usage.input_total == 3


def test_a_length_passes(stand: Stand) -> None:
    model = stand.model("one", {"text": "a", "framing": "length"})
    reply = stand.ask(speak(model), path=SPEECH)
    assert reply.header("content-length") == str(len(reply.body)) == "1024"


def test_a_client_that_leaves_takes_the_upstream_with_it(stand: Stand) -> None:
    model = stand.model("one", {"text": ["a", "b"], "cut": {"after_events": 1, "how": "stall"}})
    with stand.connect() as client:
        client.send(request(speak(model), path=SPEECH))
        client.read(until=speech_from("a"))
    assert stand.entry(model).end == "client_gone"
    assert stand.calls(model)[0].end.value == "client_closed"


# ---- endpoints like Azure's, and credentials in the query


@pytest.mark.parametrize("model", ["deployed", "deployed-x@evil/..y"])
def test_an_endpoint_with_deployments_in_its_path(stand: Stand, model: str) -> None:
    named = "my-deployment" if model == "deployed" else model
    stand.ch1.scenario(named, {"text": TEXT})
    assert stand.ask(embed(model), path=f"{EMBEDDINGS}?api-version=1999&x=y").status == 200
    assert texts(stand.ask(chat(model)).body) == TEXT
    embedded, chatted = stand.calls(named)[-2:]
    place = "my-deployment" if model == "deployed" else "deployed-x%40evil%2F..y"
    assert embedded.target == f"/openai/deployments/{place}/embeddings?x=y&api-version=2024-10-21"
    assert chatted.target == f"/openai/deployments/{place}/chat/completions?api-version=2024-10-21"
    for call in (embedded, chatted):
        headers = dict(call.headers)
        assert headers["api-key"] == "sk-azure"
        assert not {"authorization", "x-api-key"} & set(headers)


def test_a_credential_in_the_query(stand: Stand) -> None:
    model = stand.model("queried", {"text": TEXT})
    assert stand.ask(embed(model), path=f"{EMBEDDINGS}?x=y&tok%65n=canary&tenant=z&key={KEY}", key=None).status == 200
    assert texts(stand.ask(chat(model)).body) == TEXT
    embedded, chatted = stand.calls(model)
    assert embedded.target == "/v1/embeddings?x=y&token=sk-queried%26%2B&tenant=a%20b"
    assert chatted.target == "/v1/chat/completions?token=sk-queried%26%2B&tenant=a%20b"
    assert "authorization" not in dict(embedded.headers)


# ---- security


def ask_from(stand: Stand, model: str, port: int, line: str, **headers: str) -> Reply:
    body = embed(model, api_base=f"http://127.0.0.1:{port}", base_url=f"http://127.0.0.1:{port}/v1")
    sent = request(body, path="/", headers={name.replace("_", "-"): value for name, value in headers.items()})
    with stand.connect() as client:
        client.send(sent.replace(b"POST / HTTP/1.1", f"POST {line} HTTP/1.1".encode(), 1))
        client.head()
        return client.rest()


def test_b108_no_address_of_the_clients_has_any_effect(stand: Stand) -> None:
    """Case B108: what names an address goes up as data, or is refused; nothing but the channel is connected to."""
    with socket.create_server(("127.0.0.1", 0)) as evil:
        evil.setblocking(False)
        port = evil.getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        for line in (
            EMBEDDINGS,
            f"{EMBEDDINGS}?base_url={address}&api_base={address}",
            f"{address}{EMBEDDINGS}",
        ):
            model = stand.model("one", {})
            named = {"x_upstream_base_url": address, "x_base_url": address, "host": f"127.0.0.1:{port}"}
            reply = ask_from(stand, model, port, line, **named, x_forwarded_host=f"127.0.0.1:{port}")
            assert reply.status == 200
            (call,) = stand.calls(model)
            headers = dict(call.headers)
            assert headers["host"] == stand.ch1.origin.removeprefix("http://")
            assert "x-forwarded-host" not in headers
        for line in ("//127.0.0.1/v1/embeddings", "/v1/../v1/embeddings", "/v1/%2e%2e/v1/embeddings", "/v1/evil@x"):
            assert ask_from(stand, "one-x", port, line).status in (400, 404)
        with pytest.raises(BlockingIOError):
            evil.accept()


CARRIERS = {
    "x-api-key": {"x-api-key": KEY},
    "x-goog-api-key": {"x-goog-api-key": KEY},
    "bearer": {"authorization": f"Bearer {KEY}"},
    "query": {},
}
CANARIES = {
    "api-key": "canary",
    "xi-api-key": "canary",
    "cookie": "session=canary",
    "cookie2": "canary",
    "proxy-authorization": "Basic canary",
    "x-secret": "canary",
    "x-forwarded-for": "canary",
    "forwarded": "for=canary",
    "openai-organization": "canary",
    "openai-project": "canary",
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize(
    ("pattern", "credential"),
    [
        ("one", ("authorization", "Bearer sk-up-1")),
        ("deployed", ("api-key", "sk-azure")),
        ("odd", ("x-secret", "sk-odd")),
        ("queried", None),
    ],
)
def test_b112_the_upstream_sees_one_credential_and_it_is_the_channels(
    stand: Stand, carrier: str, pattern: str, credential: tuple[str, str] | None
) -> None:
    """Case B112, for each form of a channel's credential and each carrier of the client's key."""
    model = stand.model(pattern, {})
    path = f"{EMBEDDINGS}?key={KEY}" if carrier == "query" else EMBEDDINGS
    headers = CANARIES | CARRIERS[carrier]
    if credential is not None and credential[0] != "x-secret":
        # On any other channel this is a header like others, and the client's own business.
        del headers["x-secret"]
    assert stand.ask(embed(model), path=path, key=None, headers=headers).status == 200
    (call,) = stand.calls(model)
    seen = str(call.headers) + call.target
    assert KEY not in seen
    if credential is not None:
        assert "canary" not in seen and "sk-up-2" not in seen
        assert [(name, value.removesuffix("b")) for name, value in call.headers if "sk-" in value] == [credential]
        assert "?" not in call.target or "key" not in call.target.partition("?")[2]
    else:
        assert "token=sk-queried%26%2B" in call.target
        assert [name for name, value in call.headers if "sk-" in value] == []
