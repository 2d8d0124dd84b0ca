import json
from typing import Any

import pytest

from headrace.simulator.gemini import Speaker, speaker
from headrace.simulator.recorded import Recorded
from headrace.simulator.reply import Reply
from headrace.simulator.request import Request, RequestError
from headrace.simulator.responder import Responder
from headrace.simulator.script import Script

BODY = {"contents": [{"role": "user", "parts": [{"text": "hi "}, {"text": "there"}]}]}
STREAM = "streamGenerateContent?alt=sse"


def reply(
    verb: str = STREAM, scenario: object = None, body: object = BODY, model: str = "m", method: str = "POST"
) -> tuple[Reply, Recorded]:
    responder = Responder(Script.parse({"keys": ["sk-good"]}))
    headers = [("x-goog-api-key", "sk-good"), ("x-simulate", json.dumps(scenario or {"text": "one two"}))]
    request = Request(method, f"/v1beta/models/{model}:{verb}", "1.1", tuple(headers), json.dumps(body).encode())
    record = Recorded(1, 1)
    action = responder.reply(request, responder.choose_early(request, record), record)
    assert isinstance(action, Reply)
    return action, record


def played(verb: str = STREAM, scenario: object = None, **how: object) -> bytes:
    return b"".join(step.data for step in reply(verb, scenario, **how)[0].steps)  # type: ignore[arg-type]


def chunks(body: bytes) -> list[dict[str, Any]]:
    events = body.split(b"\r\n\r\n")
    assert events.pop() == b""
    return [json.loads(event.removeprefix(b"data: ")) for event in events]


def candidate(chunk: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = chunk["candidates"][0]
    return made


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("/v1beta/models/m:generateContent", True),
        ("/x/v1/models/org/a%20b:c:streamGenerateContent?alt=sse", True),
        ("/models/m:countTokens", True),
        ("/v1beta/models/m:predict", False),
        ("/v1beta/models/m", False),
        ("/v1beta/models/m:generateContent/x", False),
    ],
)
def test_paths(target: str, found: bool) -> None:
    assert isinstance(speaker(Request("POST", target, "1.1", ())), Speaker) is found


def test_the_path_names_the_model() -> None:
    asked = speaker(Request("POST", "/v1/models/org/a%20b:c:streamGenerateContent?alt=sse", "1.1", ()))
    assert asked is not None
    read = asked.read_request(json.dumps(BODY | {"generationConfig": {"candidateCount": 2}}).encode())
    assert (read.model, read.stream, read.n, read.input) == ("org/a b:c", True, 2, "hi there")
    assert read.prompt_tokens == 2


def test_a_stream() -> None:
    action, record = reply()
    assert b"Content-Type: text/event-stream" in action.head
    assert b"server-timing" in action.head
    first, last = chunks(b"".join(step.data for step in action.steps))
    assert candidate(first) == {"content": {"parts": [{"text": "one"}], "role": "model"}, "index": 0}
    assert candidate(last)["finishReason"] == "STOP"
    assert last["modelVersion"] == "m"
    assert first["responseId"] == last["responseId"]
    usage = {"promptTokenCount": 2, "candidatesTokenCount": 2, "totalTokenCount": 4}
    assert last["usageMetadata"] == usage | {"promptTokensDetails": [{"tokenCount": 2, "modality": "TEXT"}]}
    assert record.truth.completion == 2


def test_other_line_ends_and_an_end_that_gemini_has_not() -> None:
    body = played(scenario={"text": "one", "line_end": "lf", "done": True})
    assert body.endswith(b"}\n\ndata: [DONE]\n\n")
    assert played(scenario={"text": "one", "events": [{"data": "x"}]}) == b"data: x\r\n\r\n"


def test_an_array() -> None:
    action, _ = reply("streamGenerateContent")
    body = b"".join(step.data for step in action.steps)
    assert b"Content-Type: application/json" in action.head
    assert b"Transfer-Encoding: chunked" in action.head
    assert [candidate(one).get("finishReason") for one in json.loads(body)] == [None, "STOP"]
    assert body.startswith(b"[{") and b"},\r\n{" in body and body.endswith(b"}\r\n]")
    assert not played("streamGenerateContent", {"text": "one", "done": False}).endswith(b"]")


def test_what_is_thought_said_and_called() -> None:
    scenario = {
        "reasoning": "hm",
        "text": "so",
        "tool_calls": [{"name": "f", "arguments": {"a": "北"}, "id": "c1"}, {"name": "g"}],
    }
    parts = [candidate(one)["content"]["parts"][0] for one in chunks(played(scenario=scenario))]
    expected = [
        {"text": "hm", "thought": True},
        {"text": "so"},
        {"functionCall": {"id": "c1", "name": "f", "args": {"a": "北"}}},
    ]
    assert parts[:3] == expected
    assert parts[3]["functionCall"]["args"] == {}
    whole = json.loads(played("generateContent", scenario))
    assert candidate(whole)["content"]["parts"][:3] == expected
    usage = whole["usageMetadata"]
    assert usage["thoughtsTokenCount"] == 1
    assert usage["totalTokenCount"] == usage["promptTokenCount"] + usage["candidatesTokenCount"] + 1


@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ({"finish_reason": "length"}, "MAX_TOKENS"),
        ({"finish_reason": "content_filter"}, "SAFETY"),
        ({"refusal": "no"}, "SAFETY"),
        ({"finish_reason": "RECITATION"}, "RECITATION"),
        ({"text": ""}, "STOP"),
    ],
)
def test_finish_reasons(scenario: dict[str, object], reason: str) -> None:
    assert candidate(chunks(played(scenario=scenario))[-1])["finishReason"] == reason
    assert candidate(json.loads(played("generateContent", scenario)))["finishReason"] == reason


def test_candidates_take_turns() -> None:
    said = chunks(played(scenario={"text": "one two", "n": 2}))
    assert [candidate(one)["index"] for one in said] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("style", "told"),
    [
        ("asked", [1, 2]),
        ("every", [1, 2]),
        ("finish", [None, 2]),
        ("final", [None, None, 2]),
        ("zero", [None, None, 0]),
        ("null_after", [None, None, 2, None]),
        ("none", [None, None]),
    ],
)
def test_where_usage_stands(style: str, told: list[int | None]) -> None:
    usages = [one.get("usageMetadata") for one in chunks(played(scenario={"text": "one two", "usage": style}))]
    assert [usage["candidatesTokenCount"] if usage else None for usage in usages] == told


def test_usage_of_a_whole_answer() -> None:
    def usage(value: object) -> object:
        return json.loads(played("generateContent", {"usage": value})).get("usageMetadata")

    assert usage("none") is None
    assert usage("zero") == {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0}
    assert usage({"object": {"promptTokenCount": None}}) == {"promptTokenCount": None}
    assert usage({"prompt": 9, "completion": 5, "cached": 4, "reasoning": 2}) == {
        "promptTokenCount": 9,
        "candidatesTokenCount": 3,
        "totalTokenCount": 14,
        "cachedContentTokenCount": 4,
        "promptTokensDetails": [{"tokenCount": 9, "modality": "TEXT"}],
        "thoughtsTokenCount": 2,
    }


def test_counts_and_vectors() -> None:
    assert json.loads(played("countTokens")) == {"totalTokens": 2}
    counted = json.loads(played("countTokens", body={"generateContentRequest": {}}))
    assert counted == {"totalTokens": 0}
    one = json.loads(played("embedContent", body={"content": {"parts": [{"text": "a"}]}}))
    assert len(one["embedding"]["values"]) == 768
    many = json.loads(played("batchEmbedContents", body={"requests": [{"content": {"parts": [{"text": "a"}]}}, {}]}))
    assert [vector["values"] for vector in many["embeddings"]] == [one["embedding"]["values"]]


def test_errors() -> None:
    action, _ = reply(scenario={"status": 429, "error": {"code": "QUOTA", "message": "slow"}})
    (step,) = action.steps
    assert json.loads(step.data)["error"] == {
        "code": 429,
        "message": "slow",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "QUOTA", "domain": "googleapis.com"}
        ],
    }
    first = chunks(played(scenario={"error_first": {"code": 503, "type": "UNAVAILABLE"}}))
    assert [one["error"]["code"] for one in first] == [503]
    assert "error" in chunks(played(scenario={"text": "one two", "error_at": 1}))[1]
    assert json.loads(played("streamGenerateContent", {"error_first": True}))[0]["error"]["code"] == 500
    late = json.loads(played("streamGenerateContent", {"text": "one two", "error_at": 1}))
    assert [next(iter(one)) for one in late] == ["candidates", "error"]
    assert json.loads(played("generateContent", {"error_first": True}))["error"]["status"] == "INTERNAL"


def test_bad_requests_are_googles() -> None:
    bodies: list[object] = [{}, 5]
    for body in bodies:
        action, _ = reply(body=body)
        (step,) = action.steps
        assert (action.status, json.loads(step.data)["error"]["status"]) == (400, "INVALID_ARGUMENT")
    action, _ = reply(method="GET")
    assert action.status == 405
    with pytest.raises(RequestError):
        Speaker("m", "generateContent", True).read_request(b"{")
