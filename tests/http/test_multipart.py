"""Finding one field of a form: what every parser agrees on is found, what two read differently is refused."""

import time
from collections.abc import Callable
from email.parser import BytesParser

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.http.multipart import MOST_BOUNDARIES, MultipartError, boundary_of, field_span

B = b"xYz"


def part(name: str, value: bytes, *lines: str, more: str = "") -> bytes:
    head = "\r\n".join([f'Content-Disposition: form-data; name="{name}"{more}', *lines])
    return b"--" + B + b"\r\n" + head.encode() + b"\r\n\r\n" + value + b"\r\n"


def raw(head: str, value: bytes = b"v") -> bytes:
    return b"--" + B + b"\r\n" + head.encode() + b"\r\n\r\n" + value + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--" + B + b"--\r\n"


FILE = part("file", b"\x00\r\n\r\n--xY\r\n--", "Content-Type: audio/wav", more='; filename="a;b.wav"')
MODEL = part("model", b"whisper-1")


def model(body: bytes) -> bytes | None:
    span = field_span(body, B, b"model")
    return None if span is None else body[slice(*span)]


# ---- what is found


@pytest.mark.parametrize(
    "body",
    [
        form(MODEL),
        form(FILE, MODEL),
        form(MODEL, FILE, part("prompt", b"model")),
        b"\r\n" + form(MODEL),
        form(MODEL).removesuffix(b"\r\n"),
        form(MODEL) + b"an epilogue",
        form(part("model", b"whisper-1", "Content-Type: text/plain", "Content-Transfer-Encoding: 8BIT")),
        form(raw("content-disposition: Form-Data; NAME=model", b"whisper-1")),
        form(raw('Content-Disposition: form-data; name="model";', b"whisper-1")),
        form(MODEL).replace(b"--xYz\r\n", b"--xYz \t\r\n"),
        form(FILE.replace(b"a;b.wav", b'a\\"; name=\\"model.wav'), MODEL),
    ],
)
def test_the_field_is_found_wherever_it_stands(body: bytes) -> None:
    assert model(body) == b"whisper-1"


@pytest.mark.parametrize("body", [form(FILE), form(part("models", b"x")), form()])
def test_a_form_without_it(body: bytes) -> None:
    assert model(body) is None


@pytest.mark.parametrize("value", [b"", b"\r\n", b"a\r\n\r\nb", b"--xY", b"x--xYzx", b"--xYz\r"])
def test_a_value_may_hold_nearly_anything(value: bytes) -> None:
    if value.startswith(b"--xYz"):
        with pytest.raises(MultipartError):
            model(form(part("model", value)))
    else:
        assert model(form(part("model", value))) == value


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(["a", "file", "prompt", "model"]), st.binary(max_size=200)), st.binary(max_size=300)
)
def test_it_agrees_with_other_implementations(fields: dict[str, bytes], content: bytes) -> None:
    """Written by httpx, as openai-python's are; read by the standard library's mail parser."""
    files = [("image", ("a.png", content)), *((name, (None, value)) for name, value in fields.items())]
    sent = httpx2.Request("POST", "http://x", files=files)
    body, type = sent.read(), sent.headers["content-type"]
    span = field_span(body, boundary_of(type.encode()), b"model")
    assert (None if span is None else body[slice(*span)]) == fields.get("model")
    read = BytesParser().parsebytes(b"Content-Type: " + type.encode() + b"\r\n\r\n" + body)
    names = [one.get_param("name", header="content-disposition") for one in read.walk()]
    assert ("model" in names) == (span is not None)


# ---- what is refused

NAMED = "Content-Disposition: form-data; name=model"
BAD = {
    "nothing": b"",
    "no boundary": b"abc",
    "a preamble": b"hello\r\n" + form(MODEL),
    "a blank before it": b" \n" + form(MODEL),
    "cut": form(FILE, MODEL)[:-9],
    "cut in a header": (form(FILE) + b"")[:40],
    "no close": MODEL,
    "two": form(MODEL, part("model", b"other")),
    "two, one quoted": form(MODEL, raw("Content-Disposition: form-data; name=model")),
    "behind the end": form(MODEL) + form(MODEL),
    "LF": form(MODEL).replace(b"\r\n", b"\n"),
    "LF before a boundary": form(part("file", b"x\n--xYz\nContent-Disposition: form-data; name=model\n\nevil"), MODEL),
    "CR before a boundary": form(part("file", b"x\r--xYz\r\n"), MODEL),
    "a longer line": form(part("file", b"x\r\n--xYzz\r\n\r\n"), MODEL),
    "a boundary with LF": form(MODEL).replace(b"--xYz\r\n", b"--xYz\n"),
    "a file": form(part("model", b"x", more='; filename="m"')),
    "a file in another alphabet": form(part("model", b"x", more="; filename*=utf-8''m")),
    "base64": form(part("model", b"eA==", "Content-Transfer-Encoding: base64")),
    "no disposition": form(raw("Content-Type: text/plain")),
    "no headers": form(b"--xYz\r\n\r\n\r\nv\r\n"),
    "no headers' end": form(b"--xYz\r\nContent-Disposition: form-data; name=model\r\n"),
    "an empty part": form(b"--xYz\r\n"),
    "two dispositions": form(raw("Content-Disposition: form-data; name=a\r\n" + NAMED)),
    "two names": form(raw("Content-Disposition: form-data; name=a; name=model")),
    "no name": form(raw('Content-Disposition: form-data; filename="model"')),
    "name*": form(raw("Content-Disposition: form-data; name*=utf-8''model")),
    "an escaped name": form(raw('Content-Disposition: form-data; name="mod\\el"')),
    "an attachment": form(raw("Content-Disposition: attachment; name=model")),
    "an open quote": form(raw('Content-Disposition: form-data; name="model')),
    "bare words": form(raw("Content-Disposition: form-data; name model")),
    "folded": form(raw("Content-Disposition: form-data;\r\n name=model")),
    "a line without a colon": form(raw("model")),
    "a CR in a header": form(raw("Content-Disposition: form-data; name=a\r" + NAMED)),
    "long headers": form(raw("Content-Disposition: form-data; name=model\r\nx: " + "y" * 20_000)),
}  # fmt: skip


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_what_two_parsers_read_differently_is_refused(body: bytes) -> None:
    with pytest.raises(MultipartError, match=r"[a-z]{3}"):
        field_span(body, B, b"model")


@pytest.mark.parametrize("at", range(len(form(FILE, MODEL)) - 4))
def test_a_form_that_was_cut_anywhere_is_refused(at: int) -> None:
    with pytest.raises(MultipartError):
        field_span(form(FILE, MODEL)[:at], B, b"model")


def test_work_is_bounded() -> None:
    with pytest.raises(MultipartError, match="too many"):
        model(form(part("file", b"x--xYz" * MOST_BOUNDARIES), MODEL))
    large = form(part("file", b"\r\n--x" * 1_000_000), MODEL)
    assert fastest(lambda: model(large)) < 5 * fastest(lambda: large.count(b"--xYz")), "one search through it"


def fastest(work: Callable[[], object]) -> float:
    """The least CPU time, in seconds, of some runs."""
    times = []
    for _ in range(5):
        began = time.thread_time()
        work()
        times.append(time.thread_time() - began)
    return min(times)


# ---- boundaries


@pytest.mark.parametrize(
    ("type", "boundary"),
    [
        (b"multipart/form-data; boundary=abc", b"abc"),
        (b'multipart/form-data; charset=utf-8; Boundary="a b"', b"a b"),
        (b'multipart/form-data;x="; boundary=no";boundary=yes', b"yes"),
        (b"multipart/form-data; boundary=----WebKitFormBoundary7MA", b"----WebKitFormBoundary7MA"),
    ],
)  # fmt: skip
def test_boundaries(type: bytes, boundary: bytes) -> None:
    assert boundary_of(type) == boundary


@pytest.mark.parametrize(
    "type",
    [
        b"multipart/form-data",
        b"multipart/form-data; boundary=",
        b'multipart/form-data; boundary=""',
        b'multipart/form-data; boundary="a "',
        b'multipart/form-data; boundary="a\\b"',
        b"multipart/form-data; boundary=a; boundary=b",
        b"multipart/form-data; boundary=" + b"a" * 201,
        b"multipart/form-data; nonsense",
    ],
)
def test_unusable_boundaries(type: bytes) -> None:
    with pytest.raises(MultipartError):
        boundary_of(type)


@pytest.mark.parametrize("other", ["MODEL", "Model"])
def test_a_field_in_another_case_is_refused(other: str) -> None:
    """Some upstreams read names without regard to case, and would take it for the field."""
    for body in (form(part(other, b"x")), form(MODEL, part(other, b"x")), form(part(other, b"x"), MODEL)):
        with pytest.raises(MultipartError, match=f"'{other}' must be called 'model'"):
            model(body)
