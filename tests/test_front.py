"""The line's entrance: pages, model lists, and who gets as far as an exchange."""

import json
from pathlib import Path

import pytest

from headrace.model.entry import Entry
from tests.stand.fixtures import stand
from tests.stand.gateway import GatewayThread
from tests.stand.stand import Stand
from tests.stand.wire import CHAT, KEY, TEXT, chat, error_in, request, texts

__all__ = ["stand"]
NARROW = "sk-hr-narrow-0123456789abcdef"


# ---- pages


@pytest.mark.parametrize(
    ("path", "member", "value"),
    [("/healthz", "status", "ok"), ("/readyz", "status", "ready"), ("/", "name", "headrace")],
)
def test_pages_need_no_key(stand: Stand, path: str, member: str, value: str) -> None:
    reply = stand.ask(method="GET", path=path, key=None)
    assert (reply.status, reply.header("content-type")) == (200, "application/json")
    assert json.loads(reply.body)[member] == value
    assert reply.id
    with stand.connect() as client:
        client.send(request(method="HEAD", path=path, key=None))
        assert client.head(method="HEAD").header("content-length") == str(len(reply.body))
        stand.send(client, method="GET", path=path, key=None)
        assert client.rest().body == reply.body, "the connection goes on"


def test_the_front_page_says_where_the_docs_are(stand: Stand) -> None:
    assert json.loads(stand.ask(method="GET", path="/").body)["docs"].startswith("README.md")


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
def test_models_are_those_that_the_key_may_use(stand: Stand, path: str) -> None:
    every = json.loads(stand.ask(method="GET", path=path).body)
    assert every["object"] == "list"
    assert [one["id"] for one in every["data"]] == ["exact", "renamed", "twin", "responses-only"]
    few = json.loads(stand.ask(method="GET", path=path, key=NARROW).body)
    assert [one["id"] for one in few["data"]] == ["exact"]


@pytest.mark.parametrize("path", ["/v1/models/exact", "/models/exact"])
def test_one_model(stand: Stand, path: str) -> None:
    one = json.loads(stand.ask(method="GET", path=path).body)
    listed = json.loads(stand.ask(method="GET", path="/v1/models").body)["data"][0]
    assert one == listed
    assert one["accepted_request_formats"] == ["openai_chat_completions"]


def test_a_model_that_is_not_there_says_which_was_meant(stand: Stand) -> None:
    error = error_in(stand.ask(method="GET", path="/v1/models/exakt").body)
    assert (error["code"], error["param"], error["did_you_mean"]) == ("model_not_found", "model", "exact")


# ---- keys


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {KEY}"},
        {"authorization": f"bearer   {KEY} "},
        {"x-api-key": KEY},
        {"x-goog-api-key": KEY},
        {"x-api-key": KEY, "authorization": f"Bearer {KEY}"},
    ],
)
def test_a_key_is_taken_from_wherever_an_sdk_puts_it(stand: Stand, headers: dict[str, str]) -> None:
    assert stand.ask(method="GET", path="/v1/models", key=None, headers=headers).status == 200


def test_a_key_in_the_query(stand: Stand) -> None:
    assert stand.ask(method="GET", path=f"/v1/models?a=b&key={KEY}", key=None).status == 200


def test_a_request_without_a_valid_key_is_only_counted(stand: Stand) -> None:
    gateway = stand.gateway
    assert isinstance(gateway, GatewayThread)
    worker = gateway.worker
    assert worker is not None
    front = worker._front
    before = front.counts["invalid_api_key"]
    entries = len([one for one in stand.records() if isinstance(one, Entry)])
    reply = stand.ask(chat("exact"), key="sk-wrong")
    assert reply.status == 401
    assert front.counts["invalid_api_key"] == before + 1
    assert len([one for one in stand.records() if isinstance(one, Entry)]) == entries


ELSEWHERE = """
server: {listen: "127.0.0.1:0", drain_notice: 0s, trusted_proxies: 127.0.0.0/8}
state: {directory: $STATE}
keys: [{name: far, secret: sk-hr-far-0123456789abcdef, ips: 192.0.2.0/24}]
"""


def test_a_key_works_from_its_own_networks_only(tmp_path: Path) -> None:
    with Stand(tmp_path, ELSEWHERE) as behind:

        def status(*told: str) -> int:
            headers = {"x-forwarded-for": ", ".join(told)} if told else {}
            return behind.ask(method="GET", path="/v1/models", key="sk-hr-far-0123456789abcdef", headers=headers).status

        assert [status(), status("192.0.2.7"), status("192.0.2.7", "198.51.100.1")] == [403, 200, 403]


PRICED = f"""
server: {{listen: "127.0.0.1:0", drain_notice: 0s}}
state: {{directory: $STATE}}
channels:
  a: {{base_url: https://a.example, protocols: [chat], credentials: [{{name: m, secret: sssssssssssssssssssss}}]}}
models:
  m:
    routes: [{{channel: a, price: {{input: 9}}}}]
    price: [{{input: 1}}, {{from: 2020-01-01, input: 1.25}}, {{from: 2999-01-01, input: 5}}]
keys: [{{name: dev, secret: {KEY}}}]
"""


def test_a_list_tells_what_a_model_costs_now(tmp_path: Path) -> None:
    with Stand(tmp_path, PRICED) as priced:
        (told,) = json.loads(priced.ask(method="GET", path="/v1/models").body)["data"]
    assert told["pricing"] == {"input": "1.25"}


# ---- exchanges


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions"])
def test_both_paths_lead_to_the_line(stand: Stand, path: str) -> None:
    model = stand.model("one", {"events": CHAT})
    reply = stand.ask(chat(model), path=path)
    assert texts(reply.body) == TEXT
    entry = stand.entry(model)
    assert (entry.id, entry.operation, entry.protocol, entry.key) == (reply.id, "chat.completions", "chat", "dev")
    assert stand.calls(model)[0].target == "/v1/chat/completions"


def test_an_exchange_that_is_over_is_forgotten(stand: Stand) -> None:
    gateway = stand.gateway
    assert isinstance(gateway, GatewayThread)
    worker = gateway.worker
    assert worker is not None
    model = stand.model("one", {"events": CHAT, "gap": 0.05})
    with stand.connect() as client:
        client.send(request(chat(model)))
        client.read(until=b"data: ")
        assert len(worker._front.running) == 1
        client.rest()
    stand.entry(model)
    assert gateway.call(lambda: len(worker._front.running)) == 0
