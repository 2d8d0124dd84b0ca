import pytest

from headrace.upstream.fault import Fault, fault_from_body, fault_from_value, read_json


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"null", b"[]", b"[1]", b'"x"', b"{}", b'{"error":null}',
     b'{"object":"response","error":{"code":1}}', b"[" * 100_000, b"\xff\xfe", b'{"error":'],
)  # fmt: skip
def test_what_is_no_error_object(body: bytes) -> None:
    assert fault_from_body(body) is None


@pytest.mark.parametrize(
    ("body", "words", "status"),
    [
        (b'{"error":{"code":"A","type":"b","status":"C"}}', ("a", "b", "c"), None),
        (b'{"error":{"code":503,"status":"UNAVAILABLE"}}', ("unavailable",), 503),
        (b'[{"error":{"code":503}}]', (), 503),
        (b'{"error":{"code":true,"status":700}}', (), None),
        (b'{"error":{"code":"429","type":1.5}}', ("429",), 429),
        (b'{"error":{"code":"\xc2\xb2\xc2\xb2\xc2\xb2"}}', ("²²²",), None),
        (b'{"error":{"details":[{"reason":"R"},3],"type":"t"}}', ("t", "r"), None),
        (b'{"error":{"details":{"error_code":"E"},"type":"t"}}', ("t", "e"), None),
        (b'{"error":"text"}', (), None),
        (b'{"error":{"code":"x","message":"\\ud800"}}', ("x",), None),
    ],
)
def test_words_and_status(body: bytes, words: tuple[str, ...], status: int | None) -> None:
    fault = fault_from_body(body)
    assert fault is not None and (fault.words, fault.status) == (words, status)
    assert fault.summary == "/".join(words)


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [("37s", 37.0), ("1.5s", 1.5), ("s", None), ("x", None), (3, None), ("-1s", None), ("infs", None), ("nans", None)],
)
def test_google_says_how_long_to_wait(delay: object, seconds: float | None) -> None:
    fault = fault_from_value({"error": {"details": [{"@type": "x"}, {"retryDelay": delay}]}})
    assert fault is not None and fault.retry_delay_s == seconds


def test_what_it_names() -> None:
    assert Fault(("model_not_found",), None, "", None).names_model
    assert not Fault(("not_found_error",), None, "a model: x", None).names_model
    assert not Fault(("other",), None, "models/x", None).names_model
    assert Fault(("billing_error",), None, "", None).names_account
    assert not Fault(("rate_limit_error",), None, "quota of the organization", None).names_account
    assert Fault(("api_key_invalid",), None, "", None).names_bad_key
    assert len(Fault(("x" * 999,), None, "", None).summary) == 200


def test_lone_surrogates_are_read_by_the_standard_library() -> None:
    assert read_json(b'{"a":"\\ud800"}') == {"a": "\ud800"}
