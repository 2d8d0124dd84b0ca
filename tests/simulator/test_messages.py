import json
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.simulator import Simulator, messages
from headrace.simulator.answer import Asked, answer_from
from headrace.simulator.fields import Place
from headrace.simulator.reading import scenario_from_fields
from headrace.simulator.request import RequestError
from headrace.simulator.scenario import ErrorSpec
from headrace.simulator.spelling import Event
from tests.simulator.wire import Heard, ask


def events(**fields: object) -> list[Event]:
    scenario = scenario_from_fields({"text": ["A", "北", "C"], **fields}, Place(), "s")
    answer = answer_from(scenario.content, Asked("m", prompt_tokens=9), "msg_1", 5)
    return list(messages.events(answer, scenario))


def spelled(**fields: object) -> list[Any]:
    """The data of each event; its name must be its type."""
    made = []
    for event in events(**fields):
        (_, name), (_, data) = event.lines
        value = json.loads(data)
        assert value["type"] == name.decode()
        made.append(value)
    return made


def whole(**fields: object) -> Any:
    scenario = scenario_from_fields({"text": ["A", "北"], **fields}, Place(), "s")
    answer = answer_from(scenario.content, Asked("m", prompt_tokens=9), "msg_1", 5)
    return json.loads(messages.whole(answer, scenario))


def types(made: list[Any]) -> list[str]:
    return [value["type"] for value in made]


def test_a_request_is_read() -> None:
    body = {
        "model": "m",
        "stream": True,
        "max_tokens": 5,
        "system": [{"type": "text", "text": "1234"}],
        "messages": [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "y"}]},
            {"role": "user", "content": [{"type": "text", "text": "last"}, {"type": "image", "source": {}}]},
        ],
    }
    assert messages.read_request(json.dumps(body).encode()) == Asked("m", True, input="last", prompt_tokens=4)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "JSON body"),
        (b'{"max_tokens":1}', "model: Field required"),
        (b'{"model":"m"}', "max_tokens: Field required"),
        (b'{"model":"m","max_tokens":"x"}', "Invalid type"),
    ],
)
def test_a_bad_request_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        messages.read_request(body)


def test_the_order_is_start_block_delta_stop() -> None:
    made = spelled(usage={"prompt": 9, "completion": 3, "cached": 4})
    assert types(made) == [
        "message_start",
        "content_block_start",
        *["content_block_delta"] * 3,
        "content_block_stop",
        "message_delta",
    ]
    message = made[0]["message"]
    assert (message["id"], message["type"], message["role"], message["model"]) == ("msg_1", "message", "assistant", "m")
    assert (message["content"], message["stop_reason"]) == ([], None)
    assert message["usage"] == {
        "input_tokens": 5,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 4,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": 1,
        "service_tier": "standard",
    }
    assert made[1] == {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    assert [value["delta"] for value in made[2:5]] == [{"type": "text_delta", "text": text} for text in "A北C"]
    assert made[6]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert made[6]["usage"]["output_tokens"] == 3


def test_thinking_comes_first_and_is_signed() -> None:
    made = spelled(reasoning="hm hm", usage={"completion": 9, "reasoning": 5})
    first = [value for value in made if value.get("index") == 0]
    assert first[0]["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}
    assert [value["delta"]["type"] for value in first[1:-1]] == ["thinking_delta", "thinking_delta", "signature_delta"]
    signature = first[-2]["delta"]["signature"]
    assert len(signature) == 256 and signature == messages.signature("hm hm") != messages.signature("hm")
    assert made[-1]["usage"]["output_tokens_details"] == {"thinking_tokens": 5}
    assert whole(reasoning="hm hm")["content"][0] == {"type": "thinking", "thinking": "hm hm", "signature": signature}


def test_tool_calls_are_blocks() -> None:
    made = spelled(
        text=None, tool_calls=[{"name": "f", "arguments": {"a": "北"}}, {"name": "g", "id": "x", "pieces": 1}]
    )
    starts = [value["content_block"] for value in made if value["type"] == "content_block_start"]
    assert [(one["type"], one["name"], one["input"]) for one in starts] == [
        ("tool_use", "f", {}),
        ("tool_use", "g", {}),
    ]
    assert starts[0]["id"].startswith("toolu_") and starts[1]["id"] == "x"
    deltas = [value["delta"] for value in made if value.get("index") == 0 and "delta" in value]
    assert {one["type"] for one in deltas} == {"input_json_delta"} and len(deltas) == 3
    assert json.loads("".join(one["partial_json"] for one in deltas)) == {"a": "北"}
    assert made[-1]["delta"]["stop_reason"] == "tool_use"
    block = whole(text=None, tool_calls=[{"name": "f", "arguments": {"a": "北"}}])["content"][0]
    assert (block["type"], block["input"]) == ("tool_use", {"a": "北"})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "end_turn"),
        ({"finish_reason": "length"}, "max_tokens"),
        ({"finish_reason": "content_filter"}, "refusal"),
        ({"finish_reason": "pause_turn"}, "pause_turn"),
        ({"text": None, "refusal": "no"}, "refusal"),
    ],
)
def test_finish_reasons_have_anthropics_names(fields: dict[str, object], reason: str) -> None:
    assert spelled(**fields)[-1]["delta"]["stop_reason"] == reason
    assert whole(**fields)["stop_reason"] == reason


def test_a_refusal_is_a_text() -> None:
    assert whole(text=None, refusal="no")["content"] == [{"type": "text", "text": "no"}]
    assert whole(text="", refusal="no")["content"] == [{"type": "text", "text": "no"}]


@pytest.mark.parametrize(
    ("usage", "start", "last"),
    [
        ("zero", (0, 0), (0, 0)),
        ("none", None, None),
        ("final", (9, 1), (9, 2)),
        ({"object": {"odd": 1}}, (9, 1), {"odd": 1}),
    ],
)
def test_usage_styles(usage: object, start: object, last: object) -> None:
    made = spelled(usage=usage)

    def told(value: Any) -> object:
        if value is None or "output_tokens" not in value:
            return value
        return value["input_tokens"], value["output_tokens"]

    assert (told(made[0]["message"].get("usage")), told(made[-1].get("usage"))) == (start, last)
    assert "usage" not in whole(usage="none")
    assert whole(usage={"object": {"odd": 1}})["usage"] == {"odd": 1}


def test_tokens_said_so_far_go_with_the_events() -> None:
    assert [event.tokens for event in events(text=["1234", "5678", "9"])] == [0, 0, 1, 2, 3, 3, 3]


def test_the_end_is_message_stop() -> None:
    assert messages.done_event("[DONE]", 3) == Event(
        ((b"event", b"message_stop"), (b"data", b'{"type":"message_stop"}')), b"", 3
    )
    assert messages.done_event("{}", 3).lines[1] == (b"data", b"{}")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (401, "authentication_error"),
     (418, "invalid_request_error"), (429, "rate_limit_error"),
     (500, "api_error"), (503, "overloaded_error"), (520, "api_error"), (529, "overloaded_error")],
)  # fmt: skip
def test_errors_are_anthropics(status: int, kind: str) -> None:
    body = json.loads(messages.error_body(status, ErrorSpec()))
    assert (body["type"], body["error"]["type"], body["request_id"][:4]) == ("error", kind, "req_")
    (_, name), (_, data) = messages.error_event(status, ErrorSpec(), 3, 1).lines
    assert (name, json.loads(data)) == (b"error", {"type": "error", "error": body["error"]})
    own = json.loads(messages.error_body(status, ErrorSpec("m", "t", "c")))["error"]
    assert own == {"type": "t", "message": "m", "details": {"error_code": "c"}}


# ---- through the simulator's own entrance

PATH = "/v1/messages"
BODY = {"model": "m", "max_tokens": 5, "stream": True, "messages": [{"role": "user", "content": "hi"}]}


async def heard(fields: Mapping[str, object] | None = None, path: str = PATH, **how: object) -> Heard:
    keys = how.pop("keys", [])
    async with Simulator({"keys": keys}) as sim:
        return await ask(sim, fields, path=path, **{"body": BODY, **how})  # type: ignore[arg-type]


def error(one: Heard) -> tuple[int, str]:
    value = json.loads(one.body)
    assert (value["type"], set(value)) == ("error", {"type", "error", "request_id"})
    return one.status, value["error"]["type"]


@pytest.mark.anyio
async def test_a_stream() -> None:
    one = await heard({"text": ["A", "B"]}, path="/a/v1/messages?beta=true")
    assert one.body.startswith(b"event: message_start\ndata: {") and one.body.endswith(
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )
    assert (one.header("request-id") or "").startswith("req_")
    assert one.header("openai-version") is None
    assert b"message_stop" not in (await heard({"done": False})).body


@pytest.mark.anyio
async def test_an_error_event_is_named() -> None:
    first = await heard({"error_first": {"type": "overloaded_error"}})
    assert first.status == 200
    assert first.body.startswith(b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"')
    third = await heard({"text": ["A", "B"], "error_at": 3})
    assert third.body.count(b"event: ") == 4 and b"event: error" in third.body and b"message_stop" not in third.body


@pytest.mark.anyio
@pytest.mark.parametrize("path", [PATH, f"{PATH}/count_tokens"])
async def test_errors_have_anthropics_form(path: str) -> None:
    assert error(await heard({"status": 529}, path)) == (529, "overloaded_error")
    assert error(await heard(path=path, body=b"{")) == (400, "invalid_request_error")
    assert error(await heard(path=path, keys=["sk-a"])) == (401, "authentication_error")
    assert error(await heard(path=path, method="GET")) == (405, "invalid_request_error")
    assert error(await heard({"zzz": 1}, path)) == (400, "invalid_request_error")


@pytest.mark.anyio
async def test_a_count() -> None:
    one = await heard({"usage": {"prompt": 77}}, f"{PATH}/count_tokens")
    assert (one.status, json.loads(one.body)) == (200, {"input_tokens": 77})
