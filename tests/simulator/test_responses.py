import json
from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from headrace.simulator import responses
from headrace.simulator.answer import Answer, Asked, answer_from
from headrace.simulator.fields import Place
from headrace.simulator.reading import scenario_from_fields
from headrace.simulator.request import RequestError
from headrace.simulator.scenario import ErrorSpec, Scenario

STEM = "1"
CALL = {"name": "f", "arguments": '{"a":1}', "id": "call_x", "pieces": 2}
EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


def made(asked: Asked | None = None, **fields: Any) -> tuple[Answer, Scenario]:
    scenario = scenario_from_fields({"text": ["A", "北", "C"], **fields}, Place(), "s")
    return answer_from(scenario.content, asked or Asked("m", prompt_tokens=1), f"resp_{STEM}", 5), scenario


def spelled(asked: Asked | None = None, **fields: Any) -> list[Any]:
    found = []
    for event in responses.events(*made(asked, **fields)):
        (name, value), (data, payload) = event.lines
        assert (name, data) == (b"event", b"data")
        said = json.loads(payload)
        assert said["type"].encode() == value
        found.append(said)
    return found


def whole(**fields: Any) -> Any:
    return json.loads(responses.whole(*made(**fields)))


def types(events: list[Any]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def test_a_request_is_read() -> None:
    body = {
        "model": "m",
        "stream": True,
        "stream_options": {"include_obfuscation": False},
        "instructions": "1234",
        "input": [
            {"role": "user", "content": "first"},
            {"type": "function_call_output", "output": "out"},
            {"role": "user", "content": [{"type": "input_text", "text": "last"}, {"type": "input_image"}]},
        ],
        "unknown": {"deep": []},
    }
    assert responses.read_request(json.dumps(body).encode()) == Asked("m", True, False, False, 1, "last", 4)
    assert responses.read_request(b'{"model":"m","input":"hello"}') == Asked("m", input="hello", prompt_tokens=2)
    assert responses.read_request(b'{"model":"m"}') == Asked("m")


@pytest.mark.parametrize("body", [b"", b"{}", b'{"model":"m","input":5}', b'{"model":"m","stream":"yes"}'])
def test_a_bad_request_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError):
        responses.read_request(body)


def test_the_order_of_a_text() -> None:
    events = spelled()
    assert types(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in events] == list(range(11))
    assert [event["delta"] for event in events[4:7]] == ["A", "北", "C"]
    assert events[7]["text"] == events[8]["part"]["text"] == events[9]["item"]["content"][0]["text"] == "A北C"
    assert (events[2]["item"]["content"], events[2]["item"]["status"]) == ([], "in_progress")
    assert {event["item_id"] for event in events[3:9]} == {f"msg_{STEM}"}
    assert [events[0]["response"]["status"], events[-1]["response"]["status"]] == ["in_progress", "completed"]
    assert events[0]["response"]["usage"] is None
    assert events[-1]["response"]["output"] == [events[9]["item"]]


def test_usage_stands_in_the_last_event() -> None:
    usage = {"prompt": 10, "completion": 20, "cached": 3, "reasoning": 4}
    assert spelled(usage=usage)[-1]["response"]["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 30,
    }
    assert spelled()[-1]["response"]["usage"]["output_tokens"] == 2
    assert spelled(usage="none")[-1]["response"]["usage"] is None
    assert spelled(usage="zero")[-1]["response"]["usage"]["total_tokens"] == 0
    assert spelled(usage={"object": {"odd": 1}})[-1]["response"]["usage"] == {"odd": 1}


def test_reasoning_refusal_and_calls_are_items_of_their_own() -> None:
    events = spelled(text=None, reasoning="hm", refusal="no", tool_calls=[CALL, CALL])
    assert [item["type"] for item in events[-1]["response"]["output"]] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert types(events)[2:16] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
    ]
    assert [event["output_index"] for event in events if event["type"].endswith("item.done")] == [0, 1, 2, 3]
    arguments = [event["delta"] for event in events if event["type"].endswith("arguments.delta")]
    assert "".join(arguments) == 2 * '{"a":1}'
    added = next(event["item"] for event in events if event.get("item", {}).get("type") == "function_call")
    assert (added["arguments"], added["name"], added["call_id"]) == ("", "f", "call_x")


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
        ("failed", "failed", None),
    ],
)
def test_how_it_ends(finish: str, status: str, reason: str | None) -> None:
    event = spelled(finish_reason=finish, error={"code": "rate_limit_exceeded", "message": "slow"})[-1]
    response = event["response"]
    assert (event["type"], response["status"]) == (f"response.{status}", status)
    assert (response["incomplete_details"] or {"reason": None})["reason"] == reason
    assert response["error"] == ({"code": "rate_limit_exceeded", "message": "slow"} if status == "failed" else None)
    assert whole(finish_reason=finish)["status"] == status


def test_a_whole_reply_is_the_last_events_response() -> None:
    fields: dict[str, Any] = {"reasoning": "hm", "tool_calls": [CALL]}
    assert whole(**fields) == spelled(**fields)[-1]["response"]


@pytest.mark.parametrize(
    "fields",
    [{}, {"reasoning": "hm", "refusal": "no", "tool_calls": [CALL]}, {"finish_reason": "length"}],
    ids=["text", "all", "incomplete"],
)
def test_official_types_read_it(fields: dict[str, Any]) -> None:
    """Strictly, so that a member that is missing or of a wrong type shows."""
    for event in spelled(**fields):
        EVENT.validate_python(event)
    Response.model_validate(whole(**fields))


def test_obfuscation_pads_deltas_unless_declined() -> None:
    padded = [event["type"] for event in spelled(obfuscation=True) if "obfuscation" in event]
    assert padded == 3 * ["response.output_text.delta"]
    declined = Asked("m", include_obfuscation=False)
    assert not any("obfuscation" in event for event in spelled(declined, obfuscation=True))


def test_tokens_said_so_far_go_with_the_events() -> None:
    tokens = [event.tokens for event in responses.events(*made(text=["1234", "5678", "9"]))]
    assert tokens == [0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3]


def test_an_error_event_is_flat_and_numbered() -> None:
    event = responses.error_event(500, ErrorSpec("m", "t", None, "p"), 3, 7)
    said = {"type": "error", "sequence_number": 7, "code": "t", "message": "m", "param": "p"}
    assert [name for name, _ in event.lines] == [b"event", b"data"]
    assert json.loads(event.lines[1][1]) == said
    assert event.tokens == 3
    assert json.loads(responses.error_event(429, ErrorSpec(), 0, 0).lines[1][1])["code"] == "rate_limit_exceeded"


def test_done_is_only_said_if_asked_for() -> None:
    assert not responses.ENDS_IN_DONE
    assert responses.done_event("[DONE]", 1).lines == ((b"data", b"[DONE]"),)
