"""The line's entrance: ids, pages, model lists, and who gets as far as an exchange."""

import json
import re

import pytest

from headrace.front import Ids, base32
from headrace.model.entry import Entry
from tests.stand.fixtures import stand
from tests.stand.gateway import GatewayThread
from tests.stand.stand import Stand
from tests.stand.wire import CHAT, KEY, TEXT, chat, error_in, request, texts

__all__ = ["stand"]
NARROW = "sk-hr-narrow-0123456789abcdef"


# ---- ids


def test_base32_has_a_fixed_width_and_sorts_as_its_numbers_do() -> None:
    numbers = [0, 1, 31, 32, 33, 1023, 1024, 2**60 - 1]
    written = [base32(number, 12) for number in numbers]
    assert written == sorted(written)
    assert {len(one) for one in written} == {12}
    assert written[:3] == ["0" * 12, "0" * 11 + "1", "0" * 11 + "z"]
    assert not set("ilou") & set("".join(base32(number, 1) for number in range(32)))


def test_ids_are_unique_and_carry_time_and_incarnation(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_800_000_000_000_000_000
    monkeypatch.setattr("headrace.front.time.time_ns", lambda: now)
    one, other = Ids(0x1234), Ids(0x1334)
    made = [one.new() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert all(re.fullmatch(r"hr_[0-9a-hjkmnp-tv-z]{26}", id) for id in made)
    head = base32(((now // 1_000_000) << 16 | 0x1234) << 64, 26)
    assert {id[3:16] for id in made} == {head[:13]}
    assert made[0][3:16] != other.new()[3:16]
    now += 1_000_000
    assert one.new() > max(made)


def test_an_incarnation_is_cut_to_its_16_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.front.time.time_ns", lambda: 0)
    assert Ids(0x10002).new()[3:16] == Ids(2).new()[3:16]


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
    assert json.loads(stand.ask(method="GET", path="/").body)["docs"].startswith("https://")


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
def test_models_are_those_that_the_key_may_use(stand: Stand, path: str) -> None:
    every = json.loads(stand.ask(method="GET", path=path).body)
    assert every["object"] == "list"
    assert [one["id"] for one in every["data"]] == ["exact", "renamed", "responses-only"]
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
