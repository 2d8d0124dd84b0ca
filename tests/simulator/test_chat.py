import json
from typing import Any

import pytest

from headrace.simulator import chat
from headrace.simulator.answer import Asked, answer_from
from headrace.simulator.fields import Place
from headrace.simulator.reading import scenario_from_fields
from headrace.simulator.request import RequestError
from headrace.simulator.scenario import ErrorSpec


def spelled(asked: Asked | None = None, **fields: object) -> list[Any]:
    scenario = scenario_from_fields({"text": ["A", "北", "C"], **fields}, Place(), "s")
    answer = answer_from(scenario.content, asked or Asked("m", prompt_tokens=1), "chatcmpl-1", 5)
    return [json.loads(event.lines[0][1]) for event in chat.events(answer, scenario)]


def whole(**fields: object) -> Any:
    scenario = scenario_from_fields({"text": ["A", "北"], **fields}, Place(), "s")
    answer = answer_from(scenario.content, Asked("m", prompt_tokens=1), "chatcmpl-1", 5)
    return json.loads(chat.whole(answer, scenario))


def deltas(chunks: list[Any]) -> list[Any]:
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]


def finishes(chunks: list[Any]) -> list[Any]:
    return [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"]]


def usages(chunks: list[Any]) -> list[Any]:
    """Per chunk: the completion tokens, None for null, '-' for no member."""
    found = [chunk.get("usage", "-") for chunk in chunks]
    return [usage["completion_tokens"] if isinstance(usage, dict) else usage for usage in found]


def test_a_request_is_read() -> None:
    body = {
        "model": "m",
        "stream": True,
        "n": 2,
        "stream_options": {"include_usage": True, "include_obfuscation": False},
        "messages": [
            {"role": "system", "content": "1234"},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": None},
            {"role": "user", "content": [{"type": "text", "text": "last"}, {"type": "image_url", "image_url": {}}]},
        ],
        "unknown": {"deep": []},
    }
    assert chat.read_request(json.dumps(body).encode()) == Asked("m", True, True, False, 2, "last", 4)


def test_stream_options_may_be_null_or_empty() -> None:
    assert chat.read_request(b'{"model":"m","stream_options":null}') == Asked("m")
    assert chat.read_request(b'{"model":"m","stream_options":{}}') == Asked("m")


def test_lone_surrogates_are_read() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"a\\ud83d"}]}'
    assert chat.read_request(body).input == "a?"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "We could not parse the JSON body"),
        (b"{", "We could not parse the JSON body"),
        (b'{"a":' * 100_000, "We could not parse the JSON body"),
        (b"[]", "Invalid type in request"),
        (b'{"model":1}', "Invalid type in request"),
        (b'{"model":"\\ud83d","messages":1}', "Invalid type in request"),
        (b"{}", "you must provide a model parameter"),
        (b'{"model":"m","n":0}', "Invalid 'n'"),
        (b'{"model":"m","n":129}', "Invalid 'n'"),
    ],
)
def test_a_bad_request_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        chat.read_request(body)


def test_the_order_is_role_deltas_finish() -> None:
    chunks = spelled()
    assert deltas(chunks) == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "A"},
        {"content": "北"},
        {"content": "C"},
        {},
    ]
    assert finishes(chunks) == [None, None, None, None, "stop"]
    assert {(c["id"], c["object"], c["created"], c["model"]) for c in chunks} == {
        ("chatcmpl-1", "chat.completion.chunk", 5, "m")
    }


def test_role_styles() -> None:
    assert deltas(spelled(role="joined"))[0] == {"role": "assistant", "content": "A"}
    assert deltas(spelled(role="none"))[0] == {"content": "A"}


ASKS = Asked("m", include_usage=True, prompt_tokens=1)


@pytest.mark.parametrize(
    ("style", "asked", "expected"),
    [
        ("asked", None, ["-", "-", "-", "-", "-"]),
        ("asked", ASKS, [None, None, None, None, None, 2]),
        ("final", None, ["-", "-", "-", "-", "-", 2]),
        ("zero", None, ["-", "-", "-", "-", "-", 0]),
        ("null_after", None, ["-", "-", "-", "-", "-", 2, None]),
        ("every", None, [0, 1, 1, 2, 2]),
        ("finish", ASKS, ["-", "-", "-", "-", 2]),
        ("none", ASKS, ["-", "-", "-", "-", "-"]),
    ],
)
def test_usage_styles(style: str, asked: Asked | None, expected: list[object]) -> None:
    assert usages(spelled(asked, usage=style)) == expected


def test_the_usage_object_is_openais_or_the_scripts() -> None:
    made = spelled(usage={"style": "final", "prompt": 10, "completion": 20, "cached": 3, "reasoning": 4})[-1]
    assert made["choices"] == []
    assert made["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 20,
        "total_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 4,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    assert spelled(usage={"style": "final", "object": {"odd": 1}})[-1]["usage"] == {"odd": 1}


def test_tool_calls_start_with_id_and_name_and_go_on_with_arguments() -> None:
    chunks = spelled(
        text=None,
        tool_calls=[{"name": "f", "arguments": '{"a":1}', "pieces": 2}, {"name": "g", "id": "x", "pieces": 1}],
    )
    first, start, *arguments, second, last, finish = deltas(chunks)
    assert first["content"] is None
    call = start["tool_calls"][0]
    assert (call["index"], call["type"], call["function"]) == (0, "function", {"name": "f", "arguments": ""})
    pieces = [delta["tool_calls"][0] for delta in arguments]
    assert {tuple(piece) for piece in pieces} == {("index", "function")}
    assert "".join(piece["function"]["arguments"] for piece in pieces) == '{"a":1}'
    assert second["tool_calls"][0]["id"] == "x"
    assert last["tool_calls"][0]["index"] == 1
    assert (finish, finishes(chunks)[-1]) == ({}, "tool_calls")


def test_choices_take_turns_and_end_for_themselves() -> None:
    chunks = spelled(choices=[{"text": ["a"], "finish_reason": "length"}, {"text": ["b", "c"]}])
    order = [(choice["index"], choice["finish_reason"]) for chunk in chunks for choice in chunk["choices"]]
    assert order == [(0, None), (1, None), (0, None), (1, None), (0, "length"), (1, None), (1, "stop")]


def test_usage_on_the_finish_chunk_is_on_the_last_one() -> None:
    assert usages(spelled(choices=[{"text": ["a"]}, {"text": ["b"]}], usage="finish")) == ["-", "-", "-", "-", "-", 1]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_and_refusal(field: str) -> None:
    made = deltas(spelled(text=None, refusal="no", reasoning="hm", reasoning_field=field))
    assert made[1:3] == [{field: "hm"}, {"refusal": "no"}]
    message = whole(text=None, refusal="no", reasoning="hm", reasoning_field=field)["choices"][0]["message"]
    assert (message[field], message["refusal"], message["content"]) == ("hm", "no", None)


def test_obfuscation_pads_deltas_unless_declined() -> None:
    assert ["obfuscation" in chunk for chunk in spelled(obfuscation=True)] == [True, True, True, True, False]
    declined = Asked("m", include_obfuscation=False)
    assert not any("obfuscation" in chunk for chunk in spelled(declined, obfuscation=True))


def test_tokens_said_so_far_go_with_the_events() -> None:
    scenario = scenario_from_fields({"text": ["1234", "5678", "9"]}, Place(), "s")
    answer = answer_from(scenario.content, Asked("m"), "i", 1)
    assert [event.tokens for event in chat.events(answer, scenario)] == [0, 1, 2, 3, 3]


def test_a_whole_reply_has_the_same_content() -> None:
    made = whole(tool_calls=[{"name": "f", "arguments": {"a": 1}}])
    assert (made["object"], made["id"], made["created"], made["model"]) == ("chat.completion", "chatcmpl-1", 5, "m")
    choice = made["choices"][0]
    assert choice["message"]["content"] == "A北"
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a":1}'}
    assert choice["finish_reason"] == "tool_calls"
    assert made["usage"]["total_tokens"] == 1 + made["usage"]["completion_tokens"]


def test_a_whole_reply_without_calls_has_no_member_for_them() -> None:
    assert "tool_calls" not in whole()["choices"][0]["message"]
    assert "usage" not in whole(usage="none")
    assert whole(usage="zero")["usage"]["total_tokens"] == 0


def test_an_error_event_is_one_data_line() -> None:
    event = chat.error_event(500, ErrorSpec("m", "t", "c", "p"), 3, 0)
    assert event.lines == ((b"data", b'{"error":{"message":"m","type":"t","param":"p","code":"c"}}'),)
    assert event.tokens == 3
