"""The simulator's completions."""

import json

import pytest

from headrace.simulator import passthrough_completions
from headrace.simulator.answer import answer_from
from headrace.simulator.request import RequestError
from headrace.simulator.scenario import ChoiceSpec, Content, Scenario

SCENARIO = Scenario(content=Content(choices=(ChoiceSpec(text=("a", "北")),)))


def events(**asked: object) -> list[dict[str, object]]:
    read = passthrough_completions.read_request(json.dumps({"model": "m", **asked}).encode())
    answer = answer_from(SCENARIO.content, read, passthrough_completions.id_from("x"), 1)
    return [json.loads(dict(event.lines)[b"data"]) for event in passthrough_completions.events(answer, SCENARIO)]


def test_a_stream() -> None:
    made = events(prompt="hello", stream=True, n=2)
    texts = [(one["choices"][0]["index"], one["choices"][0]["text"]) for one in made]  # type: ignore[index]
    assert texts == [(0, "a"), (0, "北"), (0, ""), (1, "a"), (1, "北"), (1, "")]
    assert all("usage" not in one and one["object"] == "text_completion" for one in made)


def test_usage_comes_last_where_it_is_asked_for() -> None:
    last = events(prompt=["x", "hello"], stream=True, stream_options={"include_usage": True})[-1]
    assert last["choices"] == []
    assert last["usage"]["prompt_tokens"] == 2  # type: ignore[index]


def test_a_whole_completion() -> None:
    asked = passthrough_completions.read_request(b'{"model":"m","prompt":"hi"}')
    answer = answer_from(SCENARIO.content, asked, "cmpl-x", 1)
    made = json.loads(passthrough_completions.whole(answer, SCENARIO))
    assert (made["choices"][0]["text"], made["choices"][0]["finish_reason"]) == ("a北", "stop")
    assert made["usage"]["total_tokens"] == 2


def test_a_model_is_needed() -> None:
    with pytest.raises(RequestError):
        events(model="")
