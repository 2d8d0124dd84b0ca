import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.metering.estimate import input_tokens
from headrace.model.estimate import TextCount
from headrace.protocols.sent import count_request, rough_tokens


def body(text: str, escaped: bool = False, spaced: bool = False) -> bytes:
    separators = (", ", ": ") if spaced else (",", ":")
    whole = {"model": "gpt-5.6-sol", "messages": [{"role": "user", "content": text}], "stream": True}
    return json.dumps(whole, ensure_ascii=escaped, separators=separators).encode()


TEXT = 'First line, with words.\n\tSecond “line” 日本語 🎉: print("x")\n' * 20


@pytest.mark.parametrize("spaced", [False, True])
def test_what_json_adds_does_not_count(spaced: bool) -> None:
    plain, escaped = count_request(body(TEXT, False, spaced)), count_request(body(TEXT, True, spaced))
    narrow = len(TEXT.encode("ascii", "ignore"))
    assert abs(plain.ascii_bytes - narrow) <= 30, "tabs stay escaped"
    assert plain.other_bytes == len(TEXT.encode()) - narrow
    assert (escaped.ascii_bytes, escaped.words, escaped.marks) == (plain.ascii_bytes, plain.words, plain.marks)
    assert escaped.other_bytes == plain.other_bytes + 2 * 20, "a surrogate pair takes six bytes instead of four"


def test_messages_are_counted() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "Hi there"}]}] * 5
    count = count_request(json.dumps({"model": "m", "messages": messages}).encode())
    assert count.events == 5
    assert count.words < 30


def test_media_are_no_text() -> None:
    image = "data:image/png;base64," + base64.b64encode(bytes(5_000_000)).decode()
    parts = [{"type": "text", "text": TEXT}, {"type": "image_url", "image_url": {"url": image}}]
    whole = json.dumps({"model": "m", "messages": [{"role": "user", "content": parts}]}).encode()
    count, alone = count_request(whole), count_request(body(TEXT, True))
    assert count.media_tokens == 1_000
    assert abs(count.ascii_bytes - alone.ascii_bytes) < 100


@pytest.mark.parametrize("times", [100, 2_000])
def test_a_long_text_is_sampled(times: int) -> None:
    count, one = count_request(body(TEXT * times)), count_request(body(TEXT))
    for name in ("ascii_bytes", "other_bytes", "words", "marks"):
        assert abs(getattr(count, name) / times / getattr(one, name) - 1) < 0.05


def test_messages_of_a_very_long_request_are_sampled() -> None:
    messages = [{"role": "user", "content": "word " * 20}] * 10_000
    assert abs(count_request(json.dumps({"messages": messages}).encode()).events - 10_000) < 1_000


@pytest.mark.parametrize("text", [b"", b"{}", b"\\", b"\\u", b"\\u12", b'{"a":"\\\\u3042"}', b"\xff\\u3042"])
def test_any_bytes_will_do(text: bytes) -> None:
    assert isinstance(count_request(text), TextCount)


def test_an_escaped_backslash_escapes_nothing() -> None:
    assert count_request(b'{"a":"\\\\u3042 ' + b"word " * 40 + b'"}').other_bytes == 0


@given(st.binary(max_size=300))
def test_it_never_raises(text: bytes) -> None:
    assert min(getattr(count_request(text), name) for name in TextCount.__struct_fields__) >= 0


@pytest.mark.parametrize("escaped", [False, True])
def test_a_short_request_is_measured_by_its_length(escaped: bool) -> None:
    """Rather too many tokens than too few, in any script, however it is written."""
    texts = {
        "english": "Please tell me, in two or three sentences, what a headrace is good for. " * 5,
        "japanese": "水車の導水路について、短く説明してください。" * 5,
        "code": "def add(a: int, b: int) -> int:\n    return a + b\n" * 5,
    }
    for name, text in texts.items():
        whole = body(text, escaped)
        counted, rough = input_tokens(count_request(whole), None), rough_tokens(whole)
        assert rough is not None
        assert 0.85 * counted <= rough <= 2 * counted, name


def test_what_is_long_or_may_have_media_is_counted() -> None:
    assert rough_tokens(body("word " * 500)) is None
    assert rough_tokens(body("data:image/png;base64,AAAA")) is None
    assert rough_tokens(b"{}") == 1
