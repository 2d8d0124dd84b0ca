import json

import pytest

from headrace.simulator.composition import wants_keep_alive
from headrace.simulator.fields import ScriptError
from headrace.simulator.recorded import Recorded
from headrace.simulator.reply import Reply
from headrace.simulator.request import Request
from headrace.simulator.responder import Responder
from headrace.simulator.scenario import Refuse
from headrace.simulator.script import Script

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi there"}]}
CHAT = "/v1/chat/completions"


class Upstream:
    """A responder, asked as a connection asks it."""

    def __init__(self, **script: object) -> None:
        self.responder = Responder(Script.parse(script))
        self.record = Recorded(1, 1)

    def action(
        self,
        body: object = None,
        path: str = CHAT,
        method: str = "POST",
        simulate: object = None,
        key: str | None = None,
    ) -> Reply | Refuse:
        headers = [("Host", "s")]
        if simulate is not None:
            headers.append(("X-Simulate", simulate if isinstance(simulate, str) else json.dumps(simulate)))
        if key is not None:
            headers.append(("Authorization", f"Bearer {key}"))
        content = body if isinstance(body, bytes) else json.dumps({**BODY, **(body or {})}).encode()  # type: ignore[dict-item]
        request = Request(method, path, "1.1", tuple(headers), content)
        self.record = Recorded(1, 1)
        chosen = self.responder.choose_early(request, self.record)
        return self.responder.reply(request, chosen, self.record)

    def reply(self, body: object = None, **how: object) -> tuple[int, bytes]:
        action = self.action(body, **how)  # type: ignore[arg-type]
        assert isinstance(action, Reply)
        return action.status, b"".join(step.data for step in action.steps)

    def status(self, **how: object) -> int:
        return self.reply(**how)[0]


def payloads(body: bytes) -> list[str]:
    return [line.removeprefix("data: ") for line in body.decode().split("\n\n") if line]


def error(body: bytes) -> dict[str, object]:
    made: dict[str, object] = json.loads(body)["error"]
    return made


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions", "/openai/v1/chat/completions?x=1"])
def test_any_prefix_will_do(path: str) -> None:
    status, body = Upstream().reply(path=path)
    assert (status, json.loads(body)["object"]) == (200, "chat.completion")


def test_models_are_listed_and_found() -> None:
    upstream = Upstream(listed=["a", "org/b c"])
    listed = json.loads(upstream.reply(path="/v1/models", method="GET")[1])
    assert [model["id"] for model in listed["data"]] == ["a", "org/b c"]
    assert json.loads(upstream.reply(path="/v1/models/org/b%20c", method="GET")[1])["id"] == "org/b c"
    status, body = upstream.reply(path="/models/other", method="GET")
    assert (status, error(body)["code"]) == (404, "model_not_found")


def test_embeddings() -> None:
    status, body = Upstream().reply({"input": "a", "dimensions": 2}, path="/v1/embeddings")
    assert (status, len(json.loads(body)["data"])) == (200, 1)
    assert Upstream().status(path="/v1/embeddings", body={"input": 5}) == 400
    assert Upstream().status(path="/v1/embeddings", body={"input": "a", "model": "sim-500"}) == 500
    assert isinstance(Upstream().action({"input": "a", "model": "sim-refuse"}, path="/v1/embeddings"), Refuse)


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", CHAT, 405, "POST"),
        ("GET", "/v1/embeddings", 405, "POST"),
        ("POST", "/v1/models", 405, "GET"),
        ("GET", "/v1/responses", 405, "POST"),
        ("POST", "/v1/unknown", 404, None),
        ("GET", "/v1/modelsx", 404, None),
    ],
)
def test_other_methods_and_paths(method: str, path: str, status: int, allow: str | None) -> None:
    action = Upstream().action(method=method, path=path)
    assert isinstance(action, Reply)
    assert action.status == status
    assert (f"Allow: {allow}\r\n".encode() in action.head) == (allow is not None)


def test_a_bad_body_is_400_in_openais_form() -> None:
    status, body = Upstream().reply(b"{")
    assert (status, error(body)["type"]) == (400, "invalid_request_error")
    assert error(Upstream().reply({"n": 0})[1])["param"] == "n"


def test_keys_are_checked_if_there_are_any() -> None:
    upstream = Upstream(keys=["sk-good"])
    assert upstream.status(key="sk-good") == 200
    assert [upstream.status(key=key) for key in ("sk-bad", None)] == [401, 401]
    assert upstream.status(path="/v1/models", method="GET") == 401


def test_header_path_and_model_choose_in_that_order() -> None:
    upstream = Upstream(
        scenarios={name: {"body": {"text": name}} for name in ("one", "two", "three")},
        models={"m": "three"},
        paths={"/p": "two"},
    )
    assert upstream.reply(path="/p/v1/chat/completions", simulate="one") == (200, b"one")
    assert upstream.record.scenario == "one"
    assert upstream.reply(path="/p/v1/chat/completions") == (200, b"two")
    assert upstream.reply() == (200, b"three")
    with pytest.raises(ScriptError):
        upstream.action(simulate="nobody")


def test_a_sequence_moves_on_by_one_and_repeats_its_last() -> None:
    upstream = Upstream(scenarios={"s": {"sequence": [{"status": 401}, {"status": 500}, {}]}})
    assert [upstream.status(simulate="s") for _ in range(4)] == [401, 500, 200, 200]
    assert upstream.record.scenario == "s"
    upstream.responder.reset("s")
    assert upstream.status(simulate="s") == 401
    upstream.responder.reset()
    assert upstream.status(simulate="s") == 401


def test_by_credential_and_its_sequences_count_apart() -> None:
    case = {"sequence": [{"status": 500}, {}]}
    upstream = Upstream(scenarios={"s": {"status": 403, "by_credential": {"a": case, "b": {**case, "status": 200}}}})
    assert [upstream.status(simulate="s", key=key) for key in ("a", "b", "a", "b", "c", None)] == [
        500,
        500,
        403,
        200,
        403,
        403,
    ]


STREAM = {"stream": True}


def test_a_stream_ends_with_done_unless_told_otherwise() -> None:
    assert payloads(Upstream().reply(STREAM)[1])[-1] == "[DONE]"
    assert payloads(Upstream().reply(STREAM, simulate={"done": "[DONE] "})[1])[-1] == "[DONE] "
    assert payloads(Upstream().reply(STREAM, simulate={"done": False})[1])[-1].startswith('{"id"')


def test_errors_in_a_stream() -> None:
    first = payloads(Upstream().reply(STREAM, simulate={"error_first": {"code": 429}})[1])
    assert [json.loads(payload)["error"]["code"] for payload in first] == [429]
    middle = payloads(Upstream().reply(STREAM, simulate={"error_at": 2, "done": True})[1])
    assert ["error" in payload for payload in middle] == [False, False, True, False]
    assert middle[-1] == "[DONE]"
    late = payloads(Upstream().reply(STREAM, simulate={"events": [{"data": "a"}], "error_at": 9})[1])
    assert (late[0], "error" in late[1]) == ("a", True)


def test_an_error_first_without_streaming_is_a_200_with_an_error() -> None:
    status, body = Upstream().reply(simulate={"error_first": True})
    assert (status, error(body)["type"]) == (200, "server_error")


def test_an_error_status_has_openais_body_or_the_scripts() -> None:
    status, body = Upstream().reply(STREAM, simulate={"status": 429, "error": {"code": "slow_down"}})
    assert (status, error(body)["code"]) == (429, "slow_down")
    assert Upstream().reply(STREAM, simulate={"status": 502, "body": "<html>"}) == (502, b"<html>")
    assert Upstream().reply(simulate={"status": 500, "body": ""}) == (500, b"")


def test_an_error_status_can_come_as_a_stream() -> None:
    status, body = Upstream().reply(STREAM, simulate={"status": 429, "error_first": True})
    assert (status, json.loads(payloads(body)[0])["error"]["code"]) == (429, "rate_limit_exceeded")


def test_scripted_events_and_raw_bytes_replace_everything() -> None:
    events = ["data: 1\r\n\r\n", {"data": {"a": 1}}, {"event": "x", "data": "two\nlines", "repeat": 2}]
    assert Upstream().reply(STREAM, simulate={"events": events})[1] == (
        b'data: 1\r\n\r\ndata: {"a":1}\n\n' + b"event: x\ndata: two\ndata: lines\n\n" * 2
    )
    raw = "data: 1\r\rdata: 2"
    assert Upstream().reply(STREAM, simulate={"raw": raw})[1] == raw.encode()
    assert Upstream().reply(simulate={"raw": raw})[1] == raw.encode()
    assert json.loads(Upstream().reply(simulate={"events": events})[1])["object"] == "chat.completion"


def test_a_scenario_can_stream_or_not_whatever_is_asked() -> None:
    assert json.loads(Upstream().reply(STREAM, simulate={"stream": False})[1])["object"] == "chat.completion"
    assert payloads(Upstream().reply(simulate={"stream": True})[1])[-1] == "[DONE]"


def test_the_truth_is_what_was_said() -> None:
    upstream = Upstream()
    upstream.reply(STREAM, simulate={"text": ["12345678"]})
    assert (upstream.record.truth.prompt, upstream.record.truth.completion) == (2, 2)
    upstream.reply(STREAM, simulate={"events": ["data: 1\n\n"], "usage": {"completion": 3}})
    assert upstream.record.truth.completion == 3
    for nothing in ({"status": 500}, {"error_first": True}, {"raw": "x"}):
        upstream.reply(STREAM, simulate=nothing)
        assert upstream.record.truth.completion == 0
    assert (upstream.record.model, upstream.record.stream) == ("m", True)


def test_a_told_length_is_that_of_the_whole_body_unless_the_end_is_clean() -> None:
    def length(**fields: object) -> int:
        action = Upstream().action(STREAM, simulate={"text": ["abc"], "framing": "length", **fields})
        assert isinstance(action, Reply)
        head = action.head.decode().lower()
        return int(head.partition("content-length: ")[2].split("\r\n")[0])

    whole = length()
    assert length(cut={"at_byte": 10}) == whole
    assert length(cut={"at_byte": 10, "how": "clean"}) == 10
    assert length(preamble="abc") == whole + 3


def test_a_body_has_the_type_that_it_looks_like() -> None:
    for body, kind in (("<p>", "text/html"), ("{}", "application/json"), ("hello", "text/plain")):
        action = Upstream().action(simulate={"body": body})
        assert isinstance(action, Reply)
        assert f"Content-Type: {kind}".encode() in action.head


def test_an_unknown_endpoint_plays_bytes_of_the_script() -> None:
    upstream = Upstream(scenarios={"r": {"events": [{"event": "e", "data": {}}]}}, models={"r-1": "r"})
    status, body = upstream.reply({"model": "r-1", **STREAM}, path="/v1/unknown")
    assert (status, body) == (200, b"event: e\ndata: {}\n\n")
    assert upstream.status(body={"model": "r-1"}, path="/v1/unknown") == 404
    assert upstream.status(path="/v1/files", method="GET", body=b"", simulate="sim-500") == 500
    assert isinstance(upstream.action(path="/v1/files", simulate="sim-refuse"), Refuse)


@pytest.mark.parametrize(
    ("body", "fields"), [({}, {}), (STREAM, {"framing": "length"}), (STREAM, {"writes": "joined"})]
)
def test_what_must_be_made_whole_must_fit_into_memory(body: dict[str, object], fields: dict[str, object]) -> None:
    status, reply = Upstream().reply(body, simulate={"repeat": 10**9, **fields})
    assert (status, error(reply)["code"]) == (400, "bad_scenario")


def test_faults_hold_for_model_lists_too() -> None:
    assert Upstream().status(path="/v1/models", method="GET", simulate="sim-500") == 500
    assert isinstance(Upstream().action(path="/v1/models", method="GET", simulate="sim-refuse"), Refuse)


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [("1.1", None, True), ("1.1", "close", False), ("1.0", None, False), ("1.0", "Keep-Alive", True)],
)
def test_keep_alive_by_version_and_header(version: str, connection: str | None, kept: bool) -> None:
    headers = (("Connection", connection),) if connection else ()
    assert wants_keep_alive(Request("GET", "/", version, headers)) is kept
