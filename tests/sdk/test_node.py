"""The official SDKs for Node through the gateway: text, usage, end and thrown errors.

openai 7 and 6, @anthropic-ai/sdk 1, @google/genai 3 and 2, and the deprecated @google/generative-ai.
"""

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from headrace.model.entry import Entry
from tests.sdk.node_calls import INSTALLED, Call, Error, Node, Told, calls
from tests.stand.gateway import GatewayProcess
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand, until
from tests.stand.wire import BRISK, CHAT, TEXT

pytestmark = [
    pytest.mark.sdk,
    pytest.mark.skipif(
        not INSTALLED.exists(), reason="the npm packages are not installed: `make setup`, with a network"
    ),
]

Fields = Mapping[str, object]
GOOD: Fields = {"text": ["A", "北", "C"], "usage": {"prompt": 1, "completion": 3}}
FINISH = {"chat": "stop", "responses": "completed", "messages": "end_turn", "gemini": "STOP"}
EVENTS = {"chat": 2, "responses": 5, "messages": 3, "gemini": 1}
"""How many events a stream begins with until its first piece of text is whole."""
GAP_S = 0.15
"""Room for a keepalive of the key BRISK, also on a busy machine."""
SMALL = "models:\n  small-*: {routes: [{channel: ch1}], max_attempts: 1, max_event: 64KiB}\n"
SETTINGS = CONFIG.replace("protocols: [chat]", "protocols: [chat, responses, messages, gemini]").replace(
    "models:\n", SMALL, 1
)
LEGACY = Call("generative-ai", "gemini.stream")


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A stand whose channels speak all protocols."""
    with Stand(tmp_path_factory.mktemp("node"), SETTINGS) as one:
        yield one


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """Started once."""
    with Node() as one:
        yield one


def at_once(stand: Stand, node: Node, model_for: Callable[[Call], str]) -> list[tuple[Call, str, Told]]:
    """All calls that stream, side by side, where a test takes its time: (call, its model, what it was told)."""
    begun = {}
    for call in calls("streams"):
        model = model_for(call)
        begun[node.begin(stand, call, model, BRISK)] = (call, model)
    told = [node.told() for _ in begun]
    return [(*begun[one.id], one) for one in told]


streams = pytest.mark.parametrize("call", calls("streams"), ids=str)
plain = pytest.mark.parametrize("call", calls("plain"), ids=str)


def good(told: Told, call: Call, text: str = TEXT) -> None:
    """The whole answer, without an error."""
    assert told.error is None
    finish = FINISH[call.protocol]
    assert (told.text, told.finish, told.usage) == (text, finish, (1, 3))
    assert told.final == (finish if call.is_helper else None)


def broke(told: Told, call: Call, text: str, code: str = "upstream_interrupted", status: int = 503) -> None:
    """The error event, as each SDK tells it, behind all that came before."""
    assert told.text == text
    error = told.error
    match call.protocol:
        case "chat":
            assert error is not None
            assert (error.kind, error.status, error.code, error.type) == ("APIError", None, code, "server_error")
            assert told.finish is None
        case "responses":
            assert error is None, "a response.failed is an event like others"
            assert (told.events[-1], told.finish) == ("response.failed", "failed")
            assert told.final == ("failed" if call.is_helper else None)
        case "messages":
            assert error is not None
            assert (error.kind, error.status, error.type) == ("APIError", None, "api_error")
            assert told.finish is None
        case _:
            assert error is not None
            assert (error.kind, error.status) == ("ApiError", status)
            assert error_in(error)["status"] == "UNAVAILABLE"


def error_in(error: Error) -> dict[str, object]:
    """What @google/genai makes a message of."""
    found = json.loads(error.message[error.message.index("{") :])["error"]
    assert isinstance(found, dict)
    return found


def refused(told: Told, call: Call, status: int, kind: str, entry: Entry) -> None:
    """An HTTP error, with the gateway's id where the SDK reads one."""
    error = told.error
    assert error is not None
    assert not told.events
    if call.protocol == "gemini":
        assert (error.kind, error.status, error_in(error)["code"]) == ("ApiError", status, status)
    else:
        assert (error.kind, error.status, error.request_id) == (kind, status, entry.id)


# ---- good streams


def test_keepalives_in_every_gap(stand: Stand, node: Node) -> None:
    """Case B011 among them. An early head, keepalives before the first event, between all others and behind the last
    one."""
    fields = {**GOOD, "first_delay": 0.3, "gap": GAP_S, "tail_hold": GAP_S}
    for call, model, told in at_once(stand, node, lambda _: stand.model("early-one", fields)):
        good(told, call)
        entry = stand.entry(model)
        assert entry.early_open
        assert entry.wire.keepalives > EVENTS[call.protocol]
        assert (entry.end, entry.usage.output_total) == ("completed", 3)


@pytest.mark.parametrize("line_end", ["lf", "crlf", "cr"])
def test_keepalives_between_line_ends_of_all_kinds(stand: Stand, node: Node, line_end: str) -> None:
    fields = {**GOOD, "gaps": {1: 0.3, 2: 0.3}, "line_end": line_end}
    for call, model, told in at_once(stand, node, lambda _: stand.model("one", fields)):
        good(told, call)
        assert stand.entry(model).wire.keepalives >= 2


def test_keepalives_behind_ids(stand: Stand, node: Node) -> None:
    """Case B010's kind: once the upstream used an `id:` the keepalive is one line."""
    ids = [f"id: {number}\n{event}" for number, event in enumerate(CHAT)]
    for sdk in ("openai", "openai-6"):
        call = Call(sdk, "chat.create")
        model = stand.model("one", {"events": ids, "gaps": {1: 0.3, 4: 0.3, 5: 0.3}})
        good(node.ask(stand, call, model, BRISK), call)
        assert stand.entry(model).wire.keepalives >= 3


def test_an_early_open_that_goes_well_on_the_second_channel(stand: Stand, node: Node) -> None:
    second = {**GOOD, "first_delay": 0.1}
    models = at_once(stand, node, lambda _: stand.model("early", {"status": 503, "head_delay": 0.35}, second))
    for call, model, told in models:
        good(told, call)
        entry = stand.entry(model)
        assert entry.early_open
        assert [one.channel for one in entry.attempts] == ["ch1", "ch2"]


def test_tool_calls(stand: Stand, node: Node) -> None:
    arguments = {"city": "北京", "unit": "celsius"}
    made = [{"name": "get_weather", "arguments": arguments}, {"name": "now", "arguments": {}}]
    for call, model, told in at_once(stand, node, lambda _: stand.model("one", {"tool_calls": made, "gap": GAP_S})):
        assert told.error is None, call
        found = [(one.name, json.loads(one.arguments or "{}")) for one in told.tools]
        assert found == [("get_weather", arguments), ("now", {})], call
        entry = stand.entry(model)
        assert entry.end == "completed"
        assert entry.wire.keepalives


# ---- broken streams


@streams
@pytest.mark.parametrize(
    "cut", [{"how": "rst"}, {"how": "clean"}, {"how": "rst", "extra": -9}], ids=["reset", "clean", "in an event"]
)
def test_a_cut(stand: Stand, node: Node, call: Call, cut: Fields) -> None:
    """Cases B039, B042, B043: no silent truncation, and no SyntaxError in place of ours."""
    model = stand.model("pair", {**GOOD, "cut": {"after_events": EVENTS[call.protocol], **cut}}, GOOD)
    told = node.ask(stand, call, model)
    entry = stand.entry(model)
    if call.protocol == "gemini" and cut["how"] == "clean":
        assert (told.error, told.text, entry.end, entry.reason) == (None, "A", "completed", "none")
        return  # an end without a finishReason is a good one there
    broke(told, call, "A")
    assert entry.end == "interrupted"
    assert not stand.calls(model, stand.ch2)


def test_a_stall(stand: Stand, node: Node) -> None:
    def model_for(call: Call) -> str:
        return stand.model("impatient", {**GOOD, "cut": {"after_events": EVENTS[call.protocol], "how": "stall"}})

    for call, model, told in at_once(stand, node, model_for):
        broke(told, call, "A", "upstream_stalled")
        entry = stand.entry(model)
        assert entry.end == "stalled"
        assert entry.wire.keepalives


@streams
def test_an_error_in_the_stream_is_the_upstreams(stand: Stand, node: Node, call: Call) -> None:
    """Case B046."""
    error = {"message": "their words", "type": "overloaded_error", "code": 503 if call.protocol == "gemini" else "slow"}
    model = stand.model("one", {**GOOD, "error_at": EVENTS[call.protocol], "error": error})
    told = node.ask(stand, call, model)
    assert told.text == "A"
    assert stand.entry(model).end == "failed"
    if call.sdk == "openai-6" and call.protocol == "responses":
        assert told.events[-1] == "error", "6 yields it, 7 throws it"
        assert told.error is None or (call.is_helper and told.error.kind == "Object"), "its helper throws the event"
        return
    assert told.error is not None
    assert "their words" in told.error.message
    assert told.error.kind == ("ApiError" if call.protocol == "gemini" else "APIError")


@streams
def test_an_error_first_is_a_status(stand: Stand, node: Node, call: Call) -> None:
    """Case B051; with a second channel it is invisible."""
    overloaded = {"gemini": {"code": 503}, "messages": {"type": "overloaded_error"}}
    fields = {**GOOD, "error_first": overloaded.get(call.protocol, {"code": "server_is_overloaded"})}
    model = stand.model("pair", fields, GOOD)
    good(node.ask(stand, call, model), call)
    model = stand.model("one", fields)
    told = node.ask(stand, call, model)
    entry = stand.entry(model)
    refused(
        told, call, *((529, "OverloadedError") if call.protocol == "messages" else (503, "InternalServerError")), entry
    )


@streams
def test_a_failure_behind_an_early_head(stand: Stand, node: Node, call: Call) -> None:
    model = stand.model("early-one", {"status": 503, "head_delay": 0.35})
    told = node.ask(stand, call, model)
    assert stand.entry(model).early_open
    if call.protocol == "responses" and call.is_helper:
        assert told.error is not None
        assert (told.error.kind, "response.failed" in told.error.message) == ("OpenAIError", True)
        return  # it wants a response.created first
    broke(told, call, "", "upstream_error", 502)  # before any event the cause's own status


@streams
def test_a_large_event_that_breaks_off_throws(stand: Stand, node: Node, call: Call) -> None:
    """Case B086: past `max_event` there is no place for an error event, so the connection is aborted."""
    long = {**GOOD, "text": ["A", "x" * 200_000, "C"]}
    cut = {"after_events": EVENTS[call.protocol], "extra": 100_000}
    model = stand.model("small", {**long, "cut": cut})
    told = node.ask(stand, call, model)
    terminated(told, call)
    assert told.text == "A"
    assert stand.entry(model).end == "interrupted"


def test_a_gateway_that_dies_is_no_end(tmp_path: Path) -> None:
    """Case B086: with `Connection: close` in the head these SDKs would take it for one."""
    with Stand(tmp_path, SETTINGS, process=True) as stand, Node() as node:
        begun = {}
        for call in calls("streams"):
            model = stand.model("one", {"text": "word ", "repeat": 1000, "gap": 0.02})
            begun[node.begin(stand, call, model)] = call
            until(lambda name=model: [one.events_written > 5 for one in stand.ch1.calls(name)] == [True], "the stream")  # type: ignore[misc]
        assert isinstance(stand.gateway, GatewayProcess)
        os.kill(stand.gateway.child("worker 0"), signal.SIGKILL)
        for _ in range(len(begun)):
            told = node.told()
            terminated(told, begun[told.id])
            assert told.text.startswith("word ")


def terminated(told: Told, call: Call) -> None:
    """A connection that broke throws."""
    error = told.error
    assert error is not None
    assert "terminated" in error.message + (error.cause or ""), error
    assert told.final is None


# ---- without streaming


@plain
def test_whole_answers(stand: Stand, node: Node, call: Call) -> None:
    model = stand.model("one", GOOD)
    told = node.ask(stand, call, model)
    assert told.error is None
    assert (told.text, told.finish, told.usage) == (TEXT, FINISH[call.protocol], (1, 3))
    assert stand.entry(model).end == "completed"


@plain
def test_whole_tool_calls(stand: Stand, node: Node, call: Call) -> None:
    model = stand.model("one", {"tool_calls": [{"name": "get_weather", "arguments": {"city": "北京"}}]})
    told = node.ask(stand, call, model)
    assert told.error is None
    assert [(one.name, json.loads(one.arguments)) for one in told.tools] == [("get_weather", {"city": "北京"})]


@plain
@pytest.mark.parametrize(
    ("fields", "status", "kind"),
    [
        ({"status": 400}, 400, "BadRequestError"),
        ({"status": 429}, 429, "RateLimitError"),
        ({"cut": {"at_byte": 9, "how": "stall"}}, 504, "InternalServerError"),
        ({"cut": {"at_byte": 9}}, 502, "InternalServerError"),
    ],
    ids=["400", "429", "stall", "cut"],
)
def test_errors(stand: Stand, node: Node, call: Call, fields: Fields, status: int, kind: str) -> None:
    model = stand.model("impatient", fields, fields)
    told = node.ask(stand, call, model)
    if call.protocol == "messages" and status == 504:
        kind = "GatewayTimeoutError"
    refused(told, call, status, kind, stand.entry(model))


# ---- the legacy Gemini client


def test_no_keepalive_reaches_the_legacy_client(stand: Stand, node: Node) -> None:
    """its parser fails on a blank line. Nor has it an early head."""
    model = stand.model("early-one", {**GOOD, "first_delay": 0.3, "gap": 0.2})
    told = node.ask(stand, LEGACY, model, BRISK)
    assert told.error is None
    assert (told.text, told.finish, told.usage) == (TEXT, "STOP", (1, 3))
    entry = stand.entry(model)
    assert (entry.wire.keepalives, entry.early_open, entry.end) == (0, False, "completed")


def test_the_legacy_client_is_refused_by_status(stand: Stand, node: Node) -> None:
    model = stand.model("one", {"status": 429})
    error = node.ask(stand, LEGACY, model).error
    assert error is not None
    assert error.status == 429
