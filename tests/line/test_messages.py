"""Messages through real sockets: the request that goes up, the bytes that come back, ends, failover and refusals."""

import hashlib
import json
from collections.abc import Iterator, Mapping

import pytest

from headrace.simulator.recorded import End as UpstreamEnd
from tests.stand.client import End
from tests.stand.messages import (
    ANTH,
    BLOCK,
    CONFIG,
    DELTA,
    ERROR,
    PATH,
    PING,
    START,
    STOP,
    STOP_BLOCK,
    ask,
    error_event,
    error_in,
    event,
    message,
    text,
)
from tests.stand.stand import Stand
from tests.stand.wire import KEEPALIVE, KEY, request, without_keepalives

Fields = Mapping[str, object]
COUNT = f"{PATH}/count_tokens"
WHOLE: Fields = {"text": "whole", "usage": {"prompt": 9, "completion": 3}}


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A stand whose channels speak Messages."""
    with Stand(tmp_path_factory.mktemp("messages"), CONFIG) as one:
        yield one


# ---- what goes up


def test_the_request_goes_up_as_it_came(stand: Stand) -> None:
    """B022, B025, B097: body, query, versions and betas; one credential, in Anthropic's form."""
    model = stand.model("one", {"events": ANTH})
    signature = "EqQB" * 150
    body = json.dumps(message(model, zzz={"deep": [1.0]}, messages=[{"role": "assistant", "content": [
        {"type": "thinking", "thinking": "", "signature": signature}, {"type": "redacted_thinking", "data": "x"}]}]),
        indent=1).encode()  # fmt: skip
    lines = [
        f"POST {PATH}?beta=true&key={KEY} HTTP/1.1", "host: gateway", f"content-length: {len(body)}",
        f"authorization: Bearer {KEY}", "anthropic-version: 2026-10-21", "anthropic-beta: a-1,b-2",
        "anthropic-beta: zzz-unknown-9", "x-stainless-lang: python",
    ]  # fmt: skip
    with stand.connect() as client:
        client.send("\r\n".join([*lines, "", ""]).encode() + body)
        assert client.rest().status == 200
    call = stand.calls(model)[0]
    assert (call.body, call.target) == (body, f"{PATH}?beta=true")
    assert [value for name, value in call.headers if name == "anthropic-beta"] == ["a-1,b-2", "zzz-unknown-9"]
    up = dict(call.headers)
    assert (up["x-api-key"], up["anthropic-version"], up["x-stainless-lang"]) == (
        "sk-upstream-1",
        "2026-10-21",
        "python",
    )
    assert "authorization" not in up
    assert KEY not in str(call.headers) + call.target


def test_only_the_model_is_replaced(stand: Stand) -> None:
    stand.ch1.scenario("upstream-name", {"events": ANTH})
    body = json.dumps(message("renamed")).encode()
    assert ask(stand, body).status == 200
    assert stand.calls("upstream-name")[0].body == body.replace(b'"renamed"', b'"upstream-name"')


# ---- what comes back

STREAMS: dict[str, Fields] = {
    "plain": {"events": ANTH},
    "one write": {"events": ANTH, "writes": "joined"},
    "byte by byte": {"events": ANTH, "writes": "byte"},
    "CRLF": {"events": [one.replace("\n", "\r\n") for one in ANTH], "writes": {"size": 7}},
    "unnamed": {"events": [one.partition("\n")[2] for one in ANTH]},
    "pings": {"events": [START, PING, *ANTH[1:3], PING, PING, *ANTH[3:]]},
    "vertex_event": {
        "events": [START, event("vertex_event", usage={"input_tokens": 999, "output_tokens": 999}), *ANTH[1:]]
    },
    "held open": {"events": ANTH, "tail_hold": 30},
    "generated": {"text": ["A", "北", "C"], "usage": {"prompt": 9, "completion": 3}},
}


@pytest.mark.parametrize("name", STREAMS)
def test_the_body_is_the_upstreams(stand: Stand, name: str) -> None:
    """B001, B004, B016, B021, B022, B038: the bytes, the usage and the end, whatever it looks like."""
    model = stand.model("one", STREAMS[name])
    reply = ask(stand, message(model))
    assert (reply.status, reply.end) == (200, End.FRAMED)
    call = stand.calls(model)[0]
    assert hashlib.sha256(reply.body).hexdigest() == call.sent_sha256
    entry = stand.entry(model)
    assert (entry.end, entry.reason, entry.usage_origin) == ("completed", "end_turn", "upstream")
    assert (entry.usage.input_total, entry.usage.output_total) == (9, 3)
    assert (entry.protocol, entry.operation, entry.wire.keepalives) == ("messages", "messages", 0)
    assert entry.duration_s < 10


def test_a_reply_without_streaming_is_the_upstreams(stand: Stand) -> None:
    model = stand.model("one", WHOLE)
    reply = ask(stand, message(model, stream=False))
    assert reply.body == stand.calls(model)[0].sent
    entry = stand.entry(model)
    assert (entry.end, entry.usage.input_total, entry.usage.output_total) == ("completed", 9, 3)


@pytest.mark.parametrize("how", ["rst", "fin", "clean"])
@pytest.mark.parametrize("extra", [0, -12, 40])
def test_a_cut_ends_in_exactly_these_bytes(stand: Stand, how: str, extra: int) -> None:
    """B039, B042, B043, B050."""
    model = stand.model(
        "pair", {"events": ANTH, "cut": {"after_events": 4, "extra": extra, "how": how}}, {"events": ANTH}
    )
    reply = ask(stand, message(model))
    assert (reply.body, reply.end) == ("".join(ANTH[:4]).encode() + ERROR, End.FRAMED)
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin, entry.usage.output_total) == ("interrupted", "upstream_partial", 1)
    assert not stand.calls(model, stand.ch2)


def test_an_end_without_message_stop_is_broken(stand: Stand) -> None:
    model = stand.model("one", {"events": ANTH[:-1]})
    assert ask(stand, message(model)).body == "".join(ANTH[:-1]).encode() + ERROR
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin, entry.usage.output_total) == ("interrupted", "upstream", 3)


def test_pings_do_not_keep_a_dead_stream_alive(stand: Stand) -> None:
    """B066: relayed, but no progress."""
    fields = {"events": ANTH, "cut": {"after_events": 3, "how": "stall"}, "heartbeats": {"form": PING, "every": 0.05}}
    model = stand.model("impatient", fields)
    reply = ask(stand, message(model))
    start = "".join(ANTH[:3]).encode()
    assert reply.body.startswith(start) and reply.body.endswith(ERROR)
    assert reply.body[len(start) : -len(ERROR)].replace(KEEPALIVE, b"").replace(PING.encode(), b"") == b""
    assert stand.entry(model).end == "stalled"
    assert stand.calls(model)[0].end is UpstreamEnd.CLIENT_CLOSED


def test_events_of_every_kind_are_progress(stand: Stand) -> None:
    """B067: longer than the stall limit in all, never in one gap."""
    quiet = [
        STOP_BLOCK,
        BLOCK,
        event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": ""}),
    ]
    model = stand.model("impatient", {"events": [START, *quiet, *quiet, DELTA, STOP], "gap": 0.15})
    reply = ask(stand, message(model))
    assert without_keepalives(reply.body) == stand.calls(model)[0].sent
    assert stand.entry(model).end == "completed"


def test_an_upstreams_error_is_the_last_event(stand: Stand) -> None:
    """B046."""
    model = stand.model("pair", {"events": [*ANTH[:4], error_event("overloaded_error")]}, {"events": ANTH})
    reply = ask(stand, message(model))
    assert reply.body == stand.calls(model)[0].sent
    entry = stand.entry(model)
    assert (entry.end, entry.kind) == ("failed", "upstream_error")


# ---- failover


@pytest.mark.parametrize(
    "fields",
    [
        {"events": [error_event("overloaded_error")]},
        {"events": [PING, error_event("rate_limit_error")]},
        {"events": [error_event("not_found_error", "model: up")]},
        {"status": 529},
        {"status": 404, "error": {"message": "model: up"}},
        {"body": {"type": "error", "error": {"type": "api_error", "message": "m"}}},
        {"body": "<html></html>", "content_type": "text/html"},
    ],
)
def test_a_failure_before_the_first_event_is_invisible(stand: Stand, fields: Fields) -> None:
    """B051."""
    model = stand.model("pair", fields, {"events": ANTH})
    assert ask(stand, message(model)).body == "".join(ANTH).encode()
    assert [one.channel for one in stand.entry(model).attempts] == ["ch1", "ch2"]


@pytest.mark.parametrize("preamble", [[START], [START, PING, BLOCK]])
def test_first_output_holds_the_preamble_back(stand: Stand, preamble: list[str]) -> None:
    """B054: an overload right behind it can still be replaced."""
    model = stand.model("held", {"events": [*preamble, error_event("overloaded_error")]}, {"events": ANTH})
    assert ask(stand, message(model)).body == "".join(ANTH).encode()
    model = stand.model(
        "held", {"events": [START, BLOCK, text("A"), error_event("overloaded_error")]}, {"events": ANTH}
    )
    assert ask(stand, message(model)).body == stand.calls(model)[0].sent


@pytest.mark.parametrize(
    ("kind", "status", "told"),
    [
        ("overloaded_error", 529, "overloaded_error"),
        ("rate_limit_error", 429, "rate_limit_error"),
        ("api_error", 500, "api_error"),
        ("timeout_error", 504, "timeout_error"),
        ("invalid_request_error", 400, "invalid_request_error"),
        ("request_too_large", 413, "request_too_large"),
        ("authentication_error", 502, "api_error"),
    ],
)
def test_an_error_as_the_first_event_is_a_status(stand: Stand, kind: str, status: int, told: str) -> None:
    model = stand.model("one", {"events": [error_event(kind)]})
    reply = ask(stand, message(model))
    assert (reply.status, error_in(reply)[0]) == (status, told)


def test_after_an_early_open_it_is_said_in_the_stream(stand: Stand) -> None:
    model = stand.model("early-one", {"status": 529, "head_delay": 0.4})
    reply = ask(stand, message(model))
    assert reply.status == 200
    last = without_keepalives(reply.body)
    assert last.startswith(b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"')
    assert stand.entry(model).end == "refused"


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_the_clients_fault_is_relayed_as_it_came(stand: Stand, status: int) -> None:
    """B025, B097: no hidden repetition, no new words."""
    model = stand.model(
        "pair", {"status": status, "error": {"message": "messages.1: Invalid signature"}}, {"events": ANTH}
    )
    reply = ask(stand, message(model))
    assert (reply.status, reply.body) == (status, stand.calls(model)[0].sent)
    assert not stand.calls(model, stand.ch2)


# ---- counting


def test_a_count_passes_and_costs_nothing(stand: Stand) -> None:
    model = stand.model("one", {"usage": {"prompt": 77}})
    reply = ask(stand, message(model), f"{COUNT}?beta=true")
    assert (reply.status, json.loads(reply.body)) == (200, {"input_tokens": 77})
    assert stand.calls(model)[0].target == f"{COUNT}?beta=true"
    entry = stand.entry(model)
    assert (entry.operation, entry.end, entry.stream, entry.usage.known) == (
        "messages.count_tokens",
        "completed",
        False,
        False,
    )


def test_a_missing_count_touches_nothing_else(stand: Stand) -> None:
    """B098."""
    model = stand.model("twice", {"sequence": [*[{"status": 404}] * 20, {"events": ANTH}]})
    for _ in range(20):
        reply = ask(stand, message(model), COUNT)
        assert (reply.status, json.loads(reply.body)["error"]["type"]) == (404, "not_found_error")
    assert ask(stand, message(model)).body == "".join(ANTH).encode()
    assert len(stand.calls(model)) == 21


# ---- refusals in Anthropic's words


@pytest.mark.parametrize("path", [PATH, "/messages", COUNT, "/messages/count_tokens"])
def test_errors_before_the_exchange_have_the_paths_dialect(stand: Stand, path: str) -> None:
    reply = ask(stand, message("x"), path, headers={"x-api-key": "sk-hr-wrong"})
    assert (reply.status, error_in(reply)[0]) == (401, "authentication_error")
    reply = ask(stand, message("nope"), path)
    assert (reply.status, error_in(reply)[0]) == (404, "not_found_error")
    reply = ask(stand, message("responses-only"), path)
    assert (reply.status, error_in(reply)[0]) == (400, "invalid_request_error")
    assert "openai_responses" in error_in(reply)[1]
    reply = ask(stand, b"", path, method="GET")
    assert (reply.status, error_in(reply)[0], reply.header("allow")) == (405, "invalid_request_error", "POST")
    reply = ask(stand, b"{", path)
    assert (reply.status, error_in(reply)[0]) == (400, "invalid_request_error")
    reply = ask(stand, b"x" * (1 << 21), path)
    assert (reply.status, error_in(reply)[0]) == (413, "request_too_large")


@pytest.mark.parametrize("path", ["/v1/messages/zzz", "/v1/v1/messages", "/zzz"])
def test_an_unknown_path_is_told_to_anthropics_clients_in_their_words(stand: Stand, path: str) -> None:
    reply = ask(stand, message("x"), path)
    assert (reply.status, error_in(reply)[0]) == (404, "not_found_error")
    assert "/v1/messages" in error_in(reply)[1]


def test_a_disabled_key_and_a_narrow_one(stand: Stand) -> None:
    reply = ask(stand, message("x"), headers={"x-api-key": "sk-hr-disabled-0123456789abcdef"})
    assert (reply.status, error_in(reply)[0]) == (403, "permission_error")
    reply = ask(stand, message("renamed"), headers={"x-api-key": "sk-hr-narrow-0123456789abcdef"})
    assert (reply.status, error_in(reply)[0]) == (403, "permission_error")


# ---- lists


def test_the_models_are_listed_for_whoever_asks(stand: Stand) -> None:
    def listed(path: str = "/v1/models", **headers: str) -> dict[str, object]:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        with stand.connect() as client:
            client.send(request(path=path, method="GET", headers=fields))
            reply = client.head(method="GET")
            client.rest()
        made = json.loads(reply.body)
        assert reply.status == 200 and isinstance(made, dict)
        return made

    ours = listed(anthropic_version="2023-06-01")
    assert (ours["first_id"], ours["last_id"], ours["has_more"]) == ("exact", "twin", False)
    one = listed("/v1/models/exact", anthropic_version="2023-06-01")
    assert ours["data"][0] == one  # type: ignore[index]
    assert (one["type"], one["accepted_request_formats"]) == ("model", ["anthropic_messages"])
    openai = listed()
    assert [model["id"] for model in openai["data"]] == ["responses-only"]  # type: ignore[attr-defined]
    reply = ask(stand, b"", "/v1/models/responses-only", method="GET")
    assert (reply.status, error_in(reply)[0]) == (404, "not_found_error")
