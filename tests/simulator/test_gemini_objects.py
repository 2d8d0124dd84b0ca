import json

import msgspec
import pytest

from headrace.simulator.answer import Counts
from headrace.simulator.gemini_objects import Candidate, Chunk, Content, error_json, usage_object
from headrace.simulator.scenario import ErrorSpec, UsageSpec


def test_what_is_not_set_is_left_out() -> None:
    chunk = Chunk(candidates=[Candidate(Content())], model_version="m", response_id="r")
    assert json.loads(msgspec.json.encode(chunk)) == {
        "candidates": [{"content": {"role": "model"}, "index": 0}],
        "modelVersion": "m",
        "responseId": "r",
    }


def test_a_running_total() -> None:
    usage = msgspec.to_builtins(usage_object(Counts(9, 5, 14, 0, 2), UsageSpec(), 1))
    assert (usage["candidatesTokenCount"], usage["thoughtsTokenCount"], usage["totalTokenCount"]) == (0, 1, 10)


@pytest.mark.parametrize(
    ("status", "code", "name"),
    [
        (400, 400, "INVALID_ARGUMENT"),
        (418, 418, "INVALID_ARGUMENT"),
        (599, 599, "INTERNAL"),
        (504, 504, "DEADLINE_EXCEEDED"),
    ],
)
def test_an_errors_code_and_name(status: int, code: int, name: str) -> None:
    error = json.loads(error_json(status, ErrorSpec()))["error"]
    assert (error["code"], error["status"]) == (code, name)
    assert json.loads(error_json(status, ErrorSpec(code=7)))["error"]["code"] == 7
