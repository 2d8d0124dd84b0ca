"""Limits and budgets on the whole line: who is let in, who waits, who is refused in which words, and that whatever ends
an exchange gives back what it took."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.line.spending import SPENDING, balance, secret_of
from tests.stand.client import End, Reply
from tests.stand.stand import Stand, until
from tests.stand.wire import CHAT, TEXT, chat, error_in, request, texts

GEMINI_PATH = "/v1beta/models/{}:streamGenerateContent?alt=sse"


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with Stand(Path(tmp_path_factory.mktemp("limits")), SPENDING) as made:
        yield made


def running(stand: Stand, key: str, whose: str = "key") -> object:
    return balance(stand, key)[whose]["concurrent"]["used"]


# ---- rates


def test_ten_a_minute_are_ten_of_thirty(stand: Stand) -> None:
    """Case B124: the others are told at once, and the upstream never hears of them."""
    model = stand.model("priced", {"events": CHAT})
    with ThreadPoolExecutor(30) as pool:
        replies = list(pool.map(lambda _: stand.ask(chat(model), key=secret_of("minute")), range(30)))
    refused = [reply for reply in replies if reply.status == 429]
    assert (len(refused), sum(texts(reply.body) == TEXT for reply in replies if reply.status == 200)) == (20, 10)
    assert len(stand.calls(model)) == 10
    for reply in refused:
        assert error_in(reply.body)["code"] == "rate_limit_exceeded"
        assert 1 <= int(reply.header("retry-after") or "0") <= 60


def test_tokens_count_when_they_are_known(stand: Stand) -> None:
    used = {"prompt_tokens": 60, "completion_tokens": 60, "total_tokens": 120}
    model = stand.model("priced", {"text": "hello", "usage": {"style": "final", "object": used}})
    assert stand.ask(chat(model), key=secret_of("tokens")).status == 200
    stand.entry(model)
    refused = stand.ask(chat(model), key=secret_of("tokens"))
    assert (refused.status, error_in(refused.body)["code"]) == (429, "rate_limit_exceeded")
    assert "tokens per minute" in str(error_in(refused.body)["message"])


def test_a_limited_key_is_told_what_is_left(stand: Stand) -> None:
    model = stand.model("priced", {"events": CHAT})
    reply = stand.ask(chat(model), key=secret_of("single"))
    assert reply.header("x-ratelimit-limit-requests") is None, "places are no rate"
    reply = stand.ask(chat(model), key=secret_of("fresh"))
    assert reply.header("x-ratelimit-limit-requests") == "10"
    assert reply.header("x-ratelimit-remaining-requests") == "9"
    assert (reply.header("x-ratelimit-reset-requests") or "").endswith("s")


# ---- places


@pytest.mark.parametrize(
    "scenario",
    [
        {"status": 500},
        {"refuse": {}},
        {"events": CHAT, "cut": {"after_events": 2, "how": "rst"}},
        {"events": CHAT},
        {"status": 400},
    ],
    ids=["500", "refused", "cut", "good", "400"],
)
def test_every_end_gives_its_place_back(stand: Stand, scenario: dict[str, object]) -> None:
    """Case B061."""
    model = stand.model("priced", scenario)
    for _ in range(40):
        assert stand.ask(chat(model), key=secret_of("single")).status != 429
    good = stand.model("priced", {"events": CHAT})
    assert texts(stand.ask(chat(good), key=secret_of("single")).body) == TEXT
    assert running(stand, "single") == 0


def test_clients_that_leave_give_their_places_back(stand: Stand) -> None:
    """Case B061: after an event, before the head, and with a request that cannot be read."""
    slow = stand.model("priced", {"events": CHAT, "first_delay": 0.3, "gap": 5})
    for number in range(20):
        with stand.connect() as client:
            client.send(request(chat(slow), key=secret_of("single")))
            if number % 2:
                client.head()
        until(lambda: running(stand, "single") == 0, "the place")
        assert stand.ask(b"{", key=secret_of("single")).status == 400
    good = stand.model("priced", {"events": CHAT})
    assert texts(stand.ask(chat(good), key=secret_of("single")).body) == TEXT


def test_a_second_call_beside_an_open_stream(stand: Stand) -> None:
    """Case B061: refused where there is no wait, with a time to come back; it waits where there is one."""
    slow = stand.model("priced", {"events": CHAT, "gap": 0.3})
    good = stand.model("priced", {"events": CHAT})
    with stand.connect() as client:
        stand.send(client, chat(slow), key=secret_of("single"))
        refused = stand.ask(chat(good), key=secret_of("single"))
        assert (refused.status, error_in(refused.body)["code"]) == (429, "concurrency_limit_exceeded")
        assert int(refused.header("retry-after") or "0") >= 1
        assert running(stand, "single") == 1
    with stand.connect() as client:
        stand.send(client, chat(slow), key=secret_of("patient-single"))
        waited = stand.ask(chat(good), key=secret_of("patient-single"))
        assert texts(waited.body) == TEXT
    assert len(stand.calls(good)) == 1


def test_an_owner_s_limit_holds_over_its_keys(stand: Stand) -> None:
    slow = stand.model("priced", {"events": CHAT, "gap": 0.3})
    good = stand.model("priced", {"events": CHAT})
    with stand.connect() as client:
        stand.send(client, chat(slow), key=secret_of("shared-1"))
        refused = stand.ask(chat(good), key=secret_of("shared-2"))
        assert refused.status == 429
        assert "owner" in str(error_in(refused.body)["message"])
        assert running(stand, "shared-2", "owner") == 1
    until(lambda: running(stand, "shared-2", "owner") == 0, "the place")
    assert texts(stand.ask(chat(good), key=secret_of("shared-2")).body) == TEXT


# ---- budgets


def ask_as(stand: Stand, dialect: str, model: str, key: str) -> Reply:
    match dialect:
        case "chat":
            return stand.ask(chat(model), key=secret_of(key))
        case "responses":
            return stand.ask({"model": model, "input": "hi", "stream": True}, path="/v1/responses", key=secret_of(key))
        case "messages":
            body = {"model": model, "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
            return stand.ask(body, path="/v1/messages", key=secret_of(key), headers={"anthropic-version": "2023-06-01"})
        case _:
            body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
            return stand.ask(body, path=GEMINI_PATH.format(model), key=secret_of(key))


def word_in(reply: Reply, dialect: str) -> object:
    """The dialect's own word for what is wrong."""
    value = json.loads(reply.body)
    match dialect:
        case "messages":
            return value["error"]["type"]
        case "gemini":
            return value["error"]["status"]
        case _:
            assert value["error"]["type"] == value["error"]["code"]
            return value["error"]["code"]


WORDS = {
    "chat": "insufficient_quota",
    "responses": "insufficient_quota",
    "messages": "billing_error",
    "gemini": "RESOURCE_EXHAUSTED",
}


@pytest.mark.parametrize("dialect", WORDS)
def test_a_spent_budget_in_each_dialect(stand: Stand, dialect: str) -> None:
    model = stand.model("priced", {})
    reply = ask_as(stand, dialect, model, "broke")
    assert (reply.status, word_in(reply, dialect)) == (402, WORDS[dialect])
    assert "this API key" in json.loads(reply.body)["error"]["message"]
    assert not stand.calls(model)
    reply = ask_as(stand, dialect, model, "broke-429")
    assert (reply.status, reply.header("x-should-retry"), word_in(reply, dialect)) == (429, "false", WORDS[dialect])


def test_a_budget_pays_for_so_many_calls_and_no_more(stand: Stand) -> None:
    """Each call's hold is its price: 20 tokens out at 15,000 nano-units are 300,000; the budget is 50 of them."""
    used = {"prompt_tokens": 1, "completion_tokens": 20, "total_tokens": 21}
    model = stand.model("capped", {"text": "hi", "first_delay": 0.5, "usage": {"style": "final", "object": used}})
    with ThreadPoolExecutor(200) as pool:
        replies = list(pool.map(lambda _: stand.ask(chat(model), key=secret_of("fifty")), range(200)))
    assert [sum(reply.status == status for reply in replies) for status in (200, 402)] == [50, 150]
    assert len(stand.calls(model)) == 50
    stand.entries(model, count=200)
    budget = balance(stand, "fifty")["key"]["budget"]
    assert (budget["spent"], budget["held"], budget["remaining"]) == ("0.015", "0", "0")


def test_a_key_with_a_budget_may_use_no_model_without_a_price(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT})
    reply = stand.ask(chat(model), key=secret_of("rich"))
    assert (reply.status, error_in(reply.body)["code"]) == (403, "model_not_allowed")
    assert "no price" in str(error_in(reply.body)["message"])
    assert not stand.calls(model)


def test_a_spent_budget_that_says_so_ends_running_streams(stand: Stand) -> None:
    used = {"prompt_tokens": 1, "completion_tokens": 1000, "total_tokens": 1001}
    slow = stand.model("priced", {"events": CHAT, "gap": 3})
    dear = stand.model("priced", {"text": "hi", "usage": {"style": "final", "object": used}})
    with stand.connect() as client:
        stand.send(client, chat(slow, max_tokens=5), key=secret_of("stopping"))
        client.read(b"data: ")
        assert stand.ask(chat(dear, max_tokens=5), key=secret_of("stopping")).status == 200
        rest = client.rest()
    assert error_in(rest.body)["code"] == "stopped"
    assert rest.end is End.FRAMED
    entry = stand.entry(slow)
    assert (entry.end, entry.reason) == ("stopped", "budget")
    assert stand.ask(chat(dear), key=secret_of("stopping")).status == 402


# ---- credentials


def test_a_full_credential_is_passed_over(stand: Stand) -> None:
    model = stand.model("narrow", {"events": CHAT, "gap": 0.3}, {"events": CHAT})
    with stand.connect() as client:
        stand.send(client, chat(model))
        assert texts(stand.ask(chat(model)).body) == TEXT
    assert [len(stand.calls(model, channel)) for channel in (stand.ch1, stand.ch2)] == [1, 1]


def test_all_credentials_full(stand: Stand) -> None:
    """It waits for the first that has room; who must not wait hears 503 and is no upstream's failure."""
    model = stand.model("narrow", {"events": CHAT, "gap": 0.3}, {"events": CHAT, "gap": 0.3})
    with stand.connect() as one, stand.connect() as other:
        stand.send(one, chat(model))
        stand.send(other, chat(model))
        refused = stand.ask(chat(model), key=secret_of("hurried"))
        assert (refused.status, error_in(refused.body)["code"]) == (503, "channels_busy")
        assert texts(stand.ask(chat(model)).body) == TEXT
    until(lambda: len(stand.calls(model)) == 3, "three calls")


def test_who_leaves_while_all_are_full_waits_no_more(stand: Stand) -> None:
    model = stand.model("narrow", {"events": CHAT, "gap": 2}, {"events": CHAT, "gap": 2})
    with stand.connect() as one, stand.connect() as other:
        stand.send(one, chat(model))
        stand.send(other, chat(model))
        with stand.connect() as third:
            third.send(request(chat(model), key=secret_of("counted")))
            until(lambda: running(stand, "counted") == 1, "a third that waits")
        until(lambda: running(stand, "counted") == 0, "its place", 1.5)
        gone = [entry for entry in stand.entries(model) if entry.key == "counted"]
        assert [(entry.end, entry.attempts) for entry in gone] == [("client_gone", ())]
