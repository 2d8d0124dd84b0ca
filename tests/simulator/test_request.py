import pytest

from headrace.simulator.request import Request, model_and_stream, text_of


def request(**headers: str) -> Request:
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Request("POST", "/v1/x?a=1", "1.1", pairs)


def test_headers_are_found_in_any_case_and_the_path_has_no_query() -> None:
    made = Request("GET", "/v1/x?a=1", "1.1", (("X-A", "1"), ("x-a", "2")))
    assert (made.path, made.header("x-a"), made.header("x-b")) == ("/v1/x", "1", None)


@pytest.mark.parametrize(
    ("headers", "credential"),
    [
        ({"Authorization": "Bearer sk-1"}, "sk-1"),
        ({"Authorization": "bearer  sk-1 "}, "sk-1"),
        ({"Authorization": "Basic abc"}, None),
        ({"x_api_key": "k"}, "k"),
        ({"X_Goog_Api_Key": "g"}, "g"),
        ({}, None),
    ],
)
def test_the_credential_in_its_forms(headers: dict[str, str], credential: str | None) -> None:
    assert request(**headers).credential == credential


def test_the_text_of_a_content() -> None:
    assert text_of("a") == "a"
    assert text_of([{"type": "text", "text": "a"}, {"type": "image_url"}, 5, {"text": 7}, {"text": "b"}]) == "ab"
    assert text_of(None) == ""


def test_an_envelope_is_read_from_any_body() -> None:
    assert model_and_stream(b'{"model":"m","stream":true,"messages":"odd"}') == ("m", True)
    assert model_and_stream(b"\xff") == ("", False)
