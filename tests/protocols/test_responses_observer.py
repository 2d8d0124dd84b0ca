import json

import pytest

from headrace.model.outcome import End
from headrace.model.problem import Kind
from headrace.model.usage import NOTHING, Calls, Usage
from headrace.model.wire import BodyEnd, Sight
from headrace.protocols.responses_observer import ResponsesObserver, error_of

TEXT_EVENTS = (
    "output_text",
    "refusal",
    "function_call_arguments",
    "custom_tool_call_input",
    "reasoning_summary_text",
    "reasoning_text",
    "code_interpreter_call_code",
    "mcp_call_arguments",
    "shell_call_command",
    "audio.transcript",
)
QUIET_EVENTS = (
    "output_item.done",
    "content_part.added",
    "content_part.done",
    "output_text.done",
    "output_text.annotation.added",
    "reasoning_summary_part.added",
    "file_search_call.searching",
    "web_search_call.in_progress",
    "image_generation_call.generating",
    "image_generation_call.partial_image",
    "mcp_list_tools.failed",
    "shell_call_output_content.delta",
    "compaction.compacting",
    "audio.done",
    "zzz.delta",
    "steer.accepted",
)
USAGE = {
    "input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 2},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 30,
}
READ = Usage(input_total=20, cached_input=8, cache_write=2, output_total=10, reasoning=4)


def event(type_: str, **members: object) -> bytes:
    return f"event: {type_}\ndata: {json.dumps({'type': type_, **members})}\n\n".encode()


def data(value: object) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def seen(*events: bytes) -> ResponsesObserver:
    observer = ResponsesObserver()
    for one in events:
        observer.observe(one)
    return observer


def sight(one: bytes) -> Sight:
    return ResponsesObserver().observe(one)


# ---- what each event is


@pytest.mark.parametrize("name", ["created", "queued", "in_progress"])
def test_the_preamble(name: str) -> None:
    assert sight(event(f"response.{name}", response={"id": "r"})) is Sight.PREAMBLE


@pytest.mark.parametrize("name", TEXT_EVENTS)
def test_text_is_progress_and_counted(name: str) -> None:
    observer = ResponsesObserver()
    assert observer.observe(event(f"response.{name}.delta", sequence_number=1, delta="a北")) is Sight.PROGRESS
    assert observer.observe(event(f"response.{name}.delta", delta="b")) is Sight.PROGRESS
    features = observer.features.counted()
    assert (features.events, features.ascii_bytes, features.other_bytes) == (2, 2, 3)
    assert observer.identity.last_number == 1


@pytest.mark.parametrize("name", QUIET_EVENTS)
def test_other_events_are_progress_and_not_counted(name: str) -> None:
    observer = ResponsesObserver()
    fields = {"delta": {"stdout": "x"}, "usage": USAGE, "response": {"usage": USAGE}, "text": "x"}
    assert observer.observe(event(f"response.{name}", **fields)) is Sight.PROGRESS
    assert (observer.features.events, observer.features.counted().ascii_bytes) == (0, 0)
    assert observer.usage == NOTHING


def test_sound_counts_as_an_event_without_text() -> None:
    observer = seen(event("response.audio.delta", delta="QUJD"))
    assert (observer.features.events, observer.features.counted().ascii_bytes) == (1, 0)


def test_the_name_of_a_called_function_counts() -> None:
    observer = seen(
        event("response.output_item.added", item={"type": "function_call", "name": "get", "arguments": ""}),
        event("response.output_item.added", item={"type": "message", "content": []}),
        event("response.output_item.added", item="odd"),
    )
    assert (observer.features.events, observer.features.counted().ascii_bytes) == (1, 3)


@pytest.mark.parametrize(
    ("block", "what"),
    [
        (event("keepalive", sequence_number=3), Sight.HEARTBEAT),
        (data({"type": "keepalive"}), Sight.HEARTBEAT),
        (b"data: : keepalive\n\n", Sight.HEARTBEAT),
        (b"data:\n\n", Sight.HEARTBEAT),
        (b"data: {\n\n", Sight.HEARTBEAT),
        (b"event: response.completed\n\n", Sight.HEARTBEAT),
        (b"retry: 5\n\n", Sight.HEARTBEAT),
        (b": hi\n\n", Sight.COMMENT),
        (b"\n", Sight.COMMENT),
        (b"data: [DONE]\n\n", Sight.PROGRESS),
        (b"data: 5\n\n", Sight.PROGRESS),
        (b"data: []\n\n", Sight.PROGRESS),
        (b"data: {}\n\n", Sight.PROGRESS),
        (b"event: ping\ndata: {}\n\n", Sight.PROGRESS),
        (data({"error": None}), Sight.PROGRESS),
        (data({"error": {}}), Sight.PROGRESS),
        (data({"type": "response.mcp_call.failed", "error": {"code": "x"}}), Sight.PROGRESS),
    ],
)
def test_what_is_no_event_of_the_api(block: bytes, what: Sight) -> None:
    observer = ResponsesObserver()
    assert observer.observe(block) is what
    assert observer.ended(BodyEnd.FRAMED).end is End.INTERRUPTED


@pytest.mark.parametrize(
    "block",
    [
        data({"type": "response.completed", "response": {"usage": USAGE}}),
        b"event: response.completed\n" + data({"response": {"usage": USAGE}}),
        b"event: other\n" + data({"type": "response.completed", "response": {"usage": USAGE}}),
        b"event:response.completed\r\ndata:" + json.dumps({"response": {"usage": USAGE}}).encode() + b"\r\n\r\n",
        b'id: 1\ndata: {"type":"response.completed",\ndata: "response":{"usage":'
        + json.dumps(USAGE).encode()
        + b"}}\n\n",
        event("response.completed", response={"usage": USAGE, "model": 5, "id": None, "created_at": "x", "error": []}),
        event("response.completed", response={"usage": USAGE, "instructions": "\ud83d"}),
        event("response.completed", sequence_number="x", response={"usage": USAGE}),
    ],
    ids=["unnamed", "only named", "data wins", "crlf, no space", "lines", "odd types", "surrogates", "odd number"],
)
def test_the_end_is_seen_however_it_is_spelled(block: bytes) -> None:
    observer = ResponsesObserver()
    assert observer.observe(block) is Sight.TERMINAL
    assert observer.ended(BodyEnd.FRAMED).end is End.COMPLETED
    assert observer.usage == READ


# ---- usage, and what is kept of the response


def test_per_field_the_last_value_counts_and_null_is_none() -> None:
    observer = seen(
        event("response.created", response={"id": "r", "usage": None}),
        event("response.in_progress", response={"usage": {"input_tokens": 5, "output_tokens": 1}}),
    )
    assert observer.usage == Usage(input_total=5, output_total=1)
    finals = [observer.usage_is_final]
    observer.observe(event("response.output_text.delta", sequence_number=1, delta="a"))
    finals.append(observer.usage_is_final)
    observer.observe(
        event("response.completed", response={"usage": {"input_tokens": None, "output_tokens": 9, "extra": 1}})
    )
    assert observer.usage == Usage(input_total=5, output_total=9)
    assert [*finals, observer.usage_is_final] == [True, False, True]


def test_parts_are_kept_one_by_one() -> None:
    observer = seen(
        event("response.in_progress", response={"usage": USAGE, "tool_usage": {"web_search": {"num_requests": 2}}}),
        event(
            "response.completed",
            response={
                "usage": {"input_tokens_details": {"cached_tokens": 9, "cache_write_tokens": None}},
                "tool_usage": {"web_search": None, "image_gen": {"input_tokens": 0, "output_tokens": 0}},
            },
        ),
    )
    usage = observer.usage
    assert (usage.input_total, usage.cached_input, usage.cache_write, usage.reasoning) == (20, 9, 2, 4)
    assert (usage.calls, usage.extra) == (Calls(web_search=2), ())


def test_without_usage_nothing_is_known() -> None:
    observer = seen(event("response.completed", response={"usage": None}))
    assert not observer.usage.known and not observer.usage_is_final


def test_a_report_without_output_is_not_the_last_word() -> None:
    text = event("response.output_text.delta", sequence_number=1, delta="a")
    report = event("response.in_progress", response={"usage": {"input_tokens": 5}})
    assert not seen(report, text, report).usage_is_final
    zero = event("response.completed", response={"usage": {"input_tokens": 0, "output_tokens": 0}})
    observer = seen(text, zero)
    assert (observer.usage, observer.usage_is_final) == (Usage(input_total=0, output_total=0), True)


def test_what_is_cut_off_is_charged_for_its_calls() -> None:
    """The tier that the response was begun at is the nearest to the one that served it."""
    observer = seen(
        event("response.created", response={"id": "r", "service_tier": "auto"}),
        event("response.output_item.added", item={"type": "web_search_call"}),
        event("response.output_item.added", item={"type": "web_search_call"}),
    )
    assert observer.usage == Usage(calls=Calls(web_search=2), tier="auto")
    assert not observer.usage.known


def test_a_whole_reply_tells_calls_images_and_the_tier() -> None:
    observer = ResponsesObserver()
    reply = {
        "object": "response",
        "status": "completed",
        "service_tier": "flex",
        "tools": [{"type": "image_generation", "model": "gpt-image-2"}],
        "output": [{"type": "image_generation_call"}, {"type": "code_interpreter_call", "code": "1"}],
        "usage": USAGE,
        "tool_usage": {"image_gen": {"input_tokens": 3, "output_tokens": 90}, "web_search": {"num_requests": 0}},
    }
    observer.observe_body(json.dumps(reply).encode())
    usage = observer.usage
    assert (usage.tier, usage.calls) == ("flex", Calls(image_generation=1, code_execution=1))
    (images,) = usage.extra
    assert (images.kind, images.model) == ("image_generation", "gpt-image-2")
    assert images.usage == Usage(input_total=3, output_total=90)


def test_the_identity() -> None:
    observer = seen(
        event("response.created", sequence_number=0, response={"id": "r", "created_at": 7.5, "model": "up"}),
        event("keepalive", sequence_number=4),
        event("response.zzz", response={"id": "other"}),
        event("error", sequence_number=9, message="x"),
    )
    identity = observer.identity
    assert (identity.id, identity.created_at, identity.model) == ("r", 7.5, "up")
    assert (identity.last_number, identity.begun) == (4, True)
    assert observer.served_model == "up"


@pytest.mark.parametrize("block", [event("keepalive", sequence_number=0), event("error", message="x"), b": x\n\n"])
def test_heartbeats_and_errors_begin_nothing(block: bytes) -> None:
    assert not seen(block).identity.begun


def test_an_id_field_is_noted() -> None:
    assert not seen(event("response.created")).saw_id
    assert seen(b"id: 1\n" + event("response.created")).saw_id
    assert seen(event("response.created").removesuffix(b"\n") + b"id\n\n").saw_id


def test_a_name_that_cannot_be_written_again_is_mended() -> None:
    observer = seen(event("response.created", response={"id": "r\ud83d", "model": "m\ud83d"}))
    assert (observer.identity.id, observer.served_model) == ("r?", "m?")


# ---- ends


@pytest.mark.parametrize(
    ("name", "response", "end", "reason"),
    [
        ("completed", {}, End.COMPLETED, "completed"),
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, End.INCOMPLETE, "max_output_tokens"),
        ("incomplete", {"incomplete_details": None}, End.INCOMPLETE, "incomplete"),
        ("incomplete", {"incomplete_details": {"reason": ["odd"]}}, End.INCOMPLETE, "incomplete"),
        ("failed", {"error": {"code": "server_error", "message": "m"}}, End.FAILED, "server_error"),
        ("failed", {"error": {"type": "tokens"}}, End.FAILED, "tokens"),
        ("failed", {"error": None}, End.FAILED, "upstream_error"),
        ("failed", {"error": "text"}, End.FAILED, "upstream_error"),
    ],
)
def test_terminal_events(name: str, response: dict[str, object], end: End, reason: str) -> None:
    observer = ResponsesObserver()
    finished = [observer.finished]
    assert observer.observe(event(f"response.{name}", response={"usage": USAGE, **response})) is Sight.TERMINAL
    assert [*finished, observer.finished] == [False, True]
    assert observer.finish_reasons == (reason,)
    for how in BodyEnd:
        outcome = observer.ended(how)
        assert (outcome.end, outcome.reason) == (end, reason)
        assert (outcome.problem is not None) == (end is End.FAILED)
    assert observer.usage == READ
    assert observer.problem is None


def test_a_terminal_without_a_response_is_one() -> None:
    assert seen(event("response.completed")).ended(BodyEnd.CUT).end is End.COMPLETED


@pytest.mark.parametrize(
    "block", [event("response.refusal.delta", delta="no"), event("response.refusal.done", refusal="no")]
)
def test_a_refusal_is_incomplete(block: bytes) -> None:
    observer = seen(block, event("response.completed", response={}))
    assert (observer.ended(BodyEnd.FRAMED).end, observer.finish_reasons) == (End.INCOMPLETE, ("refusal",))


def test_the_first_end_stands() -> None:
    observer = seen(event("response.completed", response={}), event("error", code="server_error", message="x"))
    assert observer.ended(BodyEnd.FRAMED).end is End.COMPLETED
    observer = seen(event("error", code="slow_down", message="x"), event("response.failed", response={"usage": USAGE}))
    assert (observer.ended(BodyEnd.FRAMED).reason, observer.usage) == ("slow_down", READ)


@pytest.mark.parametrize("how", list(BodyEnd))
def test_without_a_terminal_event_it_is_interrupted(how: BodyEnd) -> None:
    """Case B039; `[DONE]` alone is no end either."""
    outcome = seen(event("response.created", response={}), b"data: [DONE]\n\n").ended(how)
    assert outcome.end is End.INTERRUPTED
    assert outcome.problem is not None and outcome.problem.kind is Kind.UPSTREAM_INTERRUPTED


# ---- errors


@pytest.mark.parametrize(
    ("value", "kind", "status", "reason"),
    [
        ({"code": "rate_limit_exceeded", "message": "m"}, Kind.UPSTREAM_RATE_LIMITED, 429, "rate_limit_exceeded"),
        ({"code": "server_error", "message": "m"}, Kind.UPSTREAM_ERROR, 500, "server_error"),
        ({"code": "server_is_overloaded", "message": "m"}, Kind.UPSTREAM_ERROR, 503, "server_is_overloaded"),
        ({"code": "insufficient_quota", "message": "m"}, Kind.UPSTREAM_ERROR, 502, "insufficient_quota"),
        ({"code": "invalid_prompt", "message": "m"}, Kind.BAD_REQUEST, 400, "invalid_prompt"),
        ({"code": "context_length_exceeded", "message": "m"}, Kind.BAD_REQUEST, 400, "context_length_exceeded"),
        ({"code": "image_too_large", "message": "m"}, Kind.BAD_REQUEST, 400, "image_too_large"),
        ({"code": "previous_response_not_found"}, Kind.BAD_REQUEST, 400, "previous_response_not_found"),
        ({"code": None, "message": "m"}, Kind.UPSTREAM_ERROR, 500, "upstream_error"),
        ({"message": "m"}, Kind.UPSTREAM_ERROR, 500, "upstream_error"),
        ({}, Kind.UPSTREAM_ERROR, 500, "upstream_error"),
        ({"error": {"code": "slow_down", "message": "m"}}, Kind.UPSTREAM_ERROR, 503, "slow_down"),
        ({"error": {"type": "tokens"}}, Kind.UPSTREAM_RATE_LIMITED, 429, "tokens"),
        ({"error": {"code": "odd"}, "status": 429}, Kind.UPSTREAM_RATE_LIMITED, 429, "odd"),
        ({"error": "text"}, Kind.UPSTREAM_ERROR, 500, "upstream_error"),
        ({"code": 503}, Kind.UPSTREAM_ERROR, 503, "503"),
        ({"code": "\ud83d" + 200 * "x"}, Kind.UPSTREAM_ERROR, 500, "?" + 99 * "x"),
    ],
)
def test_error_events(value: dict[str, object], kind: Kind, status: int, reason: str) -> None:
    """Flat, nested, and what their codes map to."""
    observer = ResponsesObserver()
    assert observer.observe(event("error", sequence_number=0, **value)) is Sight.ERROR
    problem = observer.problem
    assert problem is not None
    assert (problem.kind, problem.http_status) == (kind, status)
    outcome = observer.ended(BodyEnd.FRAMED)
    assert (outcome.end, outcome.reason, outcome.problem) == (End.FAILED, reason, problem)


@pytest.mark.parametrize(
    "block",
    [
        data({"error": {"code": "slow_down"}}),
        b"event: error\n" + data({"code": "slow_down"}),
        b"event: message\n" + data({"error": {"code": "slow_down"}}),
        data(b'{"error":{"code":"slow_down","message":"\\ud83d"}}'),
    ],
)
def test_errors_without_a_type(block: bytes) -> None:
    observer = ResponsesObserver()
    assert observer.observe(block) is Sight.ERROR
    assert observer.finish_reasons == ("slow_down",)


# ---- replies without streaming


def body(**members: object) -> bytes:
    return json.dumps({"object": "response", "id": "r", "model": "up", **members}).encode()


ITEMS = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    {"type": "message", "content": [{"type": "output_text", "text": "a北"}]},
    {"type": "function_call", "name": "f", "arguments": "{}"},
    {"type": "custom_tool_call", "name": "g", "input": "x"},
]


@pytest.mark.parametrize(
    ("members", "end", "reason"),
    [
        ({"status": "completed"}, End.COMPLETED, "completed"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            End.INCOMPLETE,
            "content_filter",
        ),
        ({"status": "failed", "error": {"code": "server_error"}}, End.FAILED, "server_error"),
        ({"status": "cancelled"}, End.INCOMPLETE, "cancelled"),
        ({"status": "in_progress"}, End.COMPLETED, "in_progress"),
        ({}, End.COMPLETED, ""),
    ],
)
def test_whole_replies(members: dict[str, object], end: End, reason: str) -> None:
    observer = ResponsesObserver()
    outcome = observer.observe_body(body(usage=USAGE, output=ITEMS, **members))
    assert (outcome.end, outcome.reason) == (end, reason)
    assert (observer.usage, observer.usage_is_final, observer.served_model) == (READ, True, "up")
    features = observer.features.counted()
    assert (features.events, features.ascii_bytes, features.other_bytes) == (4, 8, 3)


def test_a_refusal_in_a_whole_reply() -> None:
    items = [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]
    assert ResponsesObserver().observe_body(body(status="completed", output=items)).reason == "refusal"


def test_odd_members_of_a_whole_reply_are_left_out() -> None:
    observer = ResponsesObserver()
    assert observer.observe_body(body(status="completed", usage=USAGE, output="odd", model=5)).end is End.COMPLETED
    assert observer.usage == READ
    outcome = ResponsesObserver().observe_body(b"no JSON")
    assert (outcome.end, outcome.reason) == (End.COMPLETED, "unreadable")


def test_a_count_of_tokens_is_no_use_and_a_compaction_is() -> None:
    observer = ResponsesObserver()
    assert observer.observe_body(b'{"object":"response.input_tokens","input_tokens":11}').end is End.COMPLETED
    assert observer.usage == NOTHING
    observer = ResponsesObserver()
    compaction = {"object": "response.compaction", "output": [], "usage": USAGE}
    assert observer.observe_body(json.dumps(compaction).encode()).end is End.COMPLETED
    assert observer.usage == READ


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"error": {"code": "slow_down"}}, True),
        ({"error": "text"}, True),
        ({"error": None}, False),
        ({"object": "response", "error": {"code": "server_error"}}, False),
        ([], False),
    ],
)
def test_error_bodies(value: object, found: bool) -> None:
    assert (error_of(json.dumps(value).encode()) is not None) == found
    assert error_of(b"{") is None
