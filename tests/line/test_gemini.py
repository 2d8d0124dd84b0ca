"""Gemini through the whole line on raw sockets, where an SDK would not show the bytes: arrays, paths, dialects."""

import json
from collections.abc import Iterator

import pytest

from tests.line.body import delivered
from tests.stand.client import End
from tests.stand.gemini import ARRAY, BODY, CONFIG, GEM, KEEPALIVE, PAYLOADS, ask, call, chunk, error, error_in, event
from tests.stand.gemini import path as target
from tests.stand.stand import Stand
from tests.stand.wire import KEY, request

WHOLE = "".join(GEM).encode()
WHOLE_ARRAY = "".join(ARRAY).encode()
JSON_TYPE = "application/json; charset=UTF-8"
GO = {"x-goog-api-client": "google-genai-sdk/1.69.0 gl-go/go1.24"}
LEGACY = {"x-goog-api-client": "genai-js/0.24.1"}


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with Stand(tmp_path_factory.mktemp("gemini"), CONFIG) as one:
        yield one


def array(pieces: list[str] = ARRAY, **fields: object) -> dict[str, object]:
    """A scenario that streams an array."""
    return {"stream": True, "events": pieces, "content_type": JSON_TYPE, **fields}


# ---- events


def test_a_stream_passes_byte_by_byte(stand: Stand) -> None:
    model = stand.model("one", {"events": GEM, "writes": "byte"})
    reply = ask(stand, model)
    assert (reply.status, reply.body, reply.end) == (200, WHOLE, End.FRAMED)
    assert all(piece.data.endswith((b"\r\n\r", b"\n")) for piece in reply.pieces)
    assert stand.entry(model).wire.events == 3


def test_a_carriage_return_apart_from_its_line_feed(stand: Stand) -> None:
    """Case B005: no keepalive stands between CR and LF, and nothing is an event twice."""
    writes = {"in_event": 0, "at": {-3: 0.3, -1: 0.02}}
    model = stand.model("one", {"events": GEM, "writes": writes})
    reply = ask(stand, model)
    assert delivered(stand, model, reply) == WHOLE
    for insertion in reply.body.split(WHOLE[:40])[0], reply.body[len(GEM[0].encode()) :][:4]:
        assert insertion in (b"", KEEPALIVE, b"data"), insertion
    assert stand.entry(model).usage.output_total == 3


def test_no_keepalive_within_an_event(stand: Stand) -> None:
    """Case B009: an event that hangs is held, and keepalives stand before it."""
    model = stand.model("one", {"events": GEM, "writes": {"in_event": 1, "at": {20: 0.35}}})
    reply = ask(stand, model)
    count = stand.entry(model).wire.keepalives
    assert count > 0
    assert reply.body == GEM[0].encode() + count * KEEPALIVE + "".join(GEM[1:]).encode()


@pytest.mark.parametrize("headers", [GO, LEGACY], ids=["go", "legacy"])
def test_clients_that_are_spared_an_early_head(stand: Stand, headers: dict[str, str]) -> None:
    model = stand.model("early", {"events": GEM, "first_delay": 0.3, "gap": 0.25})
    reply = ask(stand, model, headers=headers)
    entry = stand.entry(model)
    assert not entry.early_open
    assert delivered(stand, model, reply) == WHOLE
    assert (entry.wire.keepalives > 0) is (headers is GO)


def test_stop_in_every_chunk_ends_nothing(stand: Stand) -> None:
    """Case B041."""
    events = [event(chunk(letter, "STOP", number)) for number, letter in enumerate("ABCDE", 1)]
    model = stand.model("one", {"events": events, "gap": 0.05})
    reply = ask(stand, model)
    assert delivered(stand, model, reply) == "".join(events).encode()
    assert stand.entry(model).usage.output_total == 5


def test_an_end_without_a_reason_is_good(stand: Stand) -> None:
    """Case B100; closed instead of framed it is not (B101)."""
    model = stand.model("one", {"events": GEM[:2]})
    assert ask(stand, model).body == "".join(GEM[:2]).encode()
    assert (stand.entry(model).end, stand.entry(model).reason) == ("completed", "none")
    model = stand.model("one", {"events": GEM[:2], "framing": "close"})
    body = ask(stand, model).body
    assert body.startswith("".join(GEM[:2]).encode())
    assert error_in(body.removeprefix("".join(GEM[:2]).encode()))["code"] == 503
    model = stand.model("one", {"events": GEM, "framing": "close"})
    assert ask(stand, model).body == WHOLE
    assert stand.entry(model).end == "completed"


def test_a_cut_behind_everything_loses_nothing(stand: Stand) -> None:
    model = stand.model("one", {"events": GEM, "cut": {"how": "rst"}})
    reply = ask(stand, model)
    assert (reply.body, reply.end) == (WHOLE, End.FRAMED)
    assert stand.entry(model).end == "completed"


def test_held_metadata(stand: Stand) -> None:
    """`commit: first_output`: a chunk of metadata alone does not bind to a channel that then fails."""
    early = event(chunk(tokens=0))
    model = stand.model("held", {"events": [early, event(error(503))]}, {"events": GEM})
    assert ask(stand, model).body == WHOLE
    model = stand.model("held", {"events": [early, *GEM]})
    assert ask(stand, model).body == early.encode() + WHOLE


def test_json_in_place_of_events(stand: Stand) -> None:
    model = stand.model("one", {"stream": False, "text": "A"})
    reply = ask(stand, model)
    assert reply.header("content-type") == "application/json"
    assert json.loads(reply.body)["candidates"][0]["content"]["parts"] == [{"text": "A"}]
    assert stand.entry(model).reason == "STOP"


# ---- arrays (case B103)


def test_an_array_passes_element_by_element(stand: Stand) -> None:
    writes = {"size": 7}
    model = stand.model("one", array(writes=writes))
    reply = ask(stand, model, query="")
    assert (reply.status, reply.body, reply.end) == (200, WHOLE_ARRAY, End.FRAMED)
    assert reply.header("content-type") == JSON_TYPE
    assert reply.header("x-accel-buffering") == "no"
    (seen,) = stand.calls(model)
    assert seen.target == f"/v1beta/models/{model}:streamGenerateContent"
    entry = stand.entry(model)
    assert (entry.stream, entry.end, entry.reason, entry.usage.output_total) == (True, "completed", "STOP", 3)


def test_an_array_is_not_held_and_has_no_keepalives(stand: Stand) -> None:
    model = stand.model("early", array(first_delay=0.2, gap=0.25))
    with stand.connect() as client:
        client.send(call(model, query=""))
        client.read(until=PAYLOADS[0].encode())
        assert PAYLOADS[1].encode() not in client.read(until=PAYLOADS[0].encode()).body
        reply = client.rest()
    assert reply.body == WHOLE_ARRAY
    entry = stand.entry(model)
    assert (entry.wire.keepalives, entry.wire.inserted, entry.early_open) == (0, 0, False)


def test_the_simulators_own_array(stand: Stand) -> None:
    model = stand.model("one", {"text": "one two three"})
    reply = ask(stand, model, query="alt=json")
    chunks = json.loads(reply.body)
    assert (
        "".join(part["text"] for one in chunks for part in one["candidates"][0]["content"]["parts"]) == "one two three"
    )
    assert stand.entry(model).usage.output_total == stand.calls(model)[0].truth.completion


@pytest.mark.parametrize("how", ["rst", "fin", "clean"])
@pytest.mark.parametrize("extra", [0, 9])
def test_an_array_that_breaks_is_aborted(stand: Stand, how: str, extra: int) -> None:
    model = stand.model("one", array(cut={"after_events": 2, "how": how, "extra": extra}))
    reply = ask(stand, model, query="")
    assert reply.end is End.RESET
    assert "".join(ARRAY[:2]).encode().startswith(reply.body)
    assert stand.entry(model).end == "interrupted"


def test_an_array_that_stalls_is_aborted(stand: Stand) -> None:
    model = stand.model("stalling", array(cut={"after_events": 2, "how": "stall"}))
    reply = ask(stand, model, query="")
    assert (reply.body, reply.end) == ("".join(ARRAY[:2]).encode(), End.RESET)
    assert stand.entry(model).end == "stalled"


def test_the_bracket_ends_an_array(stand: Stand) -> None:
    """The upstream's body stays open, the client's does not."""
    model = stand.model("one", array(tail_hold=5))
    reply = ask(stand, model, query="")
    assert (reply.body, reply.end) == (WHOLE_ARRAY, End.FRAMED)
    entry = stand.entry(model)
    assert entry.end == "completed" and entry.duration_s < 4


@pytest.mark.parametrize(
    "first",
    [
        array(["[" + error(503), "]"]),
        array(["[]"]),
        {"stream": True, "events": GEM, "content_type": "text/event-stream"},
        {"body": "<html>"},
        {"body": json.loads(error(503))},
        {"status": 503},
        {"status": 429, "body": [json.loads(error(429))]},
    ],
    ids=["error", "empty", "events", "html", "object", "status", "list"],
)
def test_what_is_no_array_is_replaced(stand: Stand, first: dict[str, object]) -> None:
    if isinstance(first.get("body"), list):
        first = {**first, "body": {"json": first["body"]}}
    model = stand.model("pair", first, array())
    reply = ask(stand, model, query="")
    assert (reply.status, reply.body) == (200, WHOLE_ARRAY)
    assert [one.channel for one in stand.entry(model).attempts] == ["ch1", "ch2"]


def test_an_error_element_is_the_arrays_own(stand: Stand) -> None:
    pieces = [ARRAY[0], "\r\n,\r\n" + error(503), "\r\n]"]
    model = stand.model("one", array(pieces))
    reply = ask(stand, model, query="")
    assert (reply.body, reply.end) == ("".join(pieces).encode(), End.FRAMED)
    assert stand.entry(model).end == "failed"


def test_a_first_element_that_is_an_error_is_a_status(stand: Stand) -> None:
    model = stand.model("one", array(["[" + error(400, "INVALID_ARGUMENT") + "]"]))
    reply = ask(stand, model, query="")
    assert (reply.status, error_in(reply.body)["status"]) == (400, "INVALID_ARGUMENT")


def test_an_element_over_the_limit_passes_plainly(stand: Stand) -> None:
    large = chunk("x" * 200_000, tokens=1)
    pieces = ["[" + large, "\r\n,\r\n" + PAYLOADS[2], "\r\n]"]
    model = stand.model("small", array(pieces, writes={"size": 30_000}))
    reply = ask(stand, model, query="")
    assert reply.body == "".join(pieces).encode()
    assert stand.entry(model).usage.output_total == 3


def test_an_array_without_a_type_is_given_one(stand: Stand) -> None:
    model = stand.model("one", array(headers={"Content-Type": None}))
    reply = ask(stand, model, query="")
    assert (reply.header("content-type"), reply.body) == ("application/json; charset=utf-8", WHOLE_ARRAY)


# ---- paths and dialects


def test_names_with_slashes_and_colons(stand: Stand) -> None:
    for name in ("org/renamed:x", "org%2Frenamed%3Ax"):
        reply = ask(stand, name, "generateContent", "key=" + KEY + "&alt=json")
        assert reply.status == 200
    seen = stand.calls("up/stream@1")
    assert [one.target for one in seen] == ["/v1beta/models/up/stream@1:generateContent?alt=json"] * 2
    assert all(one.credential == "sk-upstream-1" for one in seen)
    assert stand.entries("org/renamed:x")[0].attempts[0].upstream_model == "up/stream@1"


@pytest.mark.parametrize("name", ["../../evil", "%2e%2e/evil", "a/%2E%2E/evil", "x%5cy", "x%00y"])
def test_names_that_lead_elsewhere(stand: Stand, name: str) -> None:
    """Case B108."""
    with stand.connect() as client:
        client.send(call(name))
        client.head()
        reply = client.rest()
    assert reply.status == 400
    assert not stand.calls(name)


@pytest.mark.parametrize(
    ("line", "code", "status"),
    [
        (request(BODY, path=target("exact"), key=None), 401, "UNAUTHENTICATED"),
        (request(BODY, path=target("exact", version="v1"), key="sk-wrong"), 401, "UNAUTHENTICATED"),
        (request(BODY, path=target("exact", "predict")), 404, "NOT_FOUND"),
        (request(b"[]", path=target("exact")), 400, "INVALID_ARGUMENT"),
        (request(BODY, path=target("nobody")), 404, "NOT_FOUND"),
        (request(path=target("exact"), method="GET"), 405, "UNIMPLEMENTED"),
        (request(BODY, path="/v1beta/cachedContent"), 404, "NOT_FOUND"),
        (request(path="/v1beta/models/nobody", method="GET"), 404, "NOT_FOUND"),
        (request(path="/v1/models/nobody", method="GET", headers=LEGACY), 404, "NOT_FOUND"),
        (request(b"x" * 1_100_000, path=target("exact")), 413, "INVALID_ARGUMENT"),
    ],
)
def test_refusals_are_googles(stand: Stand, line: bytes, code: int, status: str) -> None:
    with stand.connect() as client:
        client.send(line)
        reply = client.rest()
    found = error_in(reply.body)
    assert (reply.status, found["code"], found["status"]) == (code, code, status)
    assert reply.id


def test_the_clients_fault_is_relayed_as_it_came(stand: Stand) -> None:
    body = {"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT", "details": [{"x": 1}]}}
    model = stand.model("pair", {"status": 400, "body": body}, {})
    reply = ask(stand, model)
    assert (reply.status, json.loads(reply.body)) == (400, body)
    assert len(stand.entry(model).attempts) == 1
