"""Messages through the simulator's own entrance: paths, errors in Anthropic's form, headers."""

import json
from collections.abc import Mapping

import pytest

from headrace.simulator import Simulator
from tests.simulator.wire import Heard, ask

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
