import json

import pytest

from headrace.simulator.errors import bad_key, error_json, unknown_model
from headrace.simulator.scenario import ErrorSpec


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", None),
        (401, "invalid_request_error", "invalid_api_key"),
        (418, "invalid_request_error", None),
        (429, "requests", "rate_limit_exceeded"),
        (500, "server_error", None),
        (529, "server_error", None),
    ],
)
def test_a_status_has_its_error(status: int, kind: str, code: str | None) -> None:
    error = json.loads(error_json(status))["error"]
    assert list(error) == ["message", "type", "param", "code"]
    assert (error["type"], error["code"], error["param"]) == (kind, code, None)
    assert error["message"]


def test_members_can_be_given() -> None:
    made = json.loads(error_json(500, ErrorSpec("", "t", 7, "p")))
    assert made == {"error": {"message": "", "type": "t", "param": "p", "code": 7}}


def test_the_errors_of_models_and_keys() -> None:
    assert json.loads(unknown_model("m"))["error"]["code"] == "model_not_found"
    assert json.loads(bad_key(None))["error"]["code"] is None
    error = json.loads(bad_key("sk-0123456789abcdef"))["error"]
    assert error["code"] == "invalid_api_key"
    assert "sk-0********cdef" in error["message"]
    assert "short" not in json.loads(bad_key("short"))["error"]["message"]
