"""Request targets: what is routed by, what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.http.target import split_target, without_fields
from headrace.model.problem import Kind, Problem


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        (b"/", ("/", "")),
        (b"/?", ("/", "")),
        (b"/v1/chat/completions", ("/v1/chat/completions", "")),
        (b"/v1/messages?beta=true", ("/v1/messages", "beta=true")),
        (b"/v1beta/models/a/b:c?alt=sse&key=x?y", ("/v1beta/models/a/b:c", "alt=sse&key=x?y")),
        (b"/v1//chat", ("/v1//chat", "")),
        (b"/a%2Fb/%41%c3%a4", ("/a%2Fb/%41%c3%a4", "")),
        (b"/a?x=%zz&y=../..&z=//", ("/a", "x=%zz&y=../..&z=//")),
        (b"/.well-known/x", ("/.well-known/x", "")),
        (b"/a./b..c/...", ("/a./b..c/...", "")),
        (b"/a%2e/b%252e%252e/", ("/a%2e/b%252e%252e/", "")),
        (b'/<>"{}|^`', ('/<>"{}|^`', "")),
        (b"http://host/p?q", ("/p", "q")),
        (b"HTTPS://host:8/p", ("/p", "")),
        (b"http://host", ("/", "")),
        (b"http://host?q", ("/", "q")),
    ],
)
def test_taken(target: bytes, parts: tuple[str, str]) -> None:
    assert split_target("GET", target) == parts


@pytest.mark.parametrize(
    ("target", "word"),
    [
        (b"//evil", "doubled slash"),
        (b"//evil/../x", "doubled slash"),
        (b"http://host//evil", "doubled slash"),
        (b"/a\\b", "backslash"),
        (b"/a%5Cb", "backslash"),
        (b"/a%5cb", "backslash"),
        (b"/..", "segments"),
        (b"/.", "segments"),
        (b"/a/../b", "segments"),
        (b"/a/./b", "segments"),
        (b"/a/..", "segments"),
        (b"/a/..?q", "segments"),
        (b"/%2e%2E/b", "segments"),
        (b"/.%2e/b", "segments"),
        (b"/a/%2e", "segments"),
        (b"/a%2f..%2Fb", "segments"),
        (b"/models/..%2F..%2fevil:generateContent", "segments"),
        (b"/a%2f%2e%2e", "segments"),
        (b"/a%00", "control"),
        (b"/a%0d%0Ab", "control"),
        (b"/a%1F", "control"),
        (b"/a%7f", "control"),
        (b"/a%", "percent"),
        (b"/a%4", "percent"),
        (b"/a%zz", "percent"),
        (b"/a#b", "fragment"),
        (b"/a?b#c", "fragment"),
        (b"/a b", "percent-encoded"),
        (b"/a\0", "percent-encoded"),
        (b"/a\x7f", "percent-encoded"),
        (b"/\xc3\xa4", "percent-encoded"),
        (b"/a?\xff", "percent-encoded"),
        (b"", "percent-encoded"),
        (b"*", "OPTIONS"),
        (b"a/b", "begin with"),
        (b"?a", "begin with"),
        (b"host:443", "begin with"),
        (b"ftp://host/p", "begin with"),
        (b"http:/p", "begin with"),
        (b"http://", "host"),
        (b"http:///p", "host"),
        (b"http://user@host/p", "user information"),
    ],
)
def test_refused(target: bytes, word: str) -> None:
    problem = split_target("GET", target)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.http_status) == (Kind.BAD_REQUEST, 400)
    assert word in problem.message


def test_asterisk_belongs_to_options() -> None:
    assert split_target("OPTIONS", b"*") == ("*", "")


@pytest.mark.parametrize("method", ["CONNECT", "TRACE"])
@pytest.mark.parametrize("target", [b"/", b"host:443", b"//"])
def test_methods_that_are_never_served(method: str, target: bytes) -> None:
    problem = split_target(method, target)
    assert isinstance(problem, Problem)
    assert (problem.http_status, method in problem.message) == (405, True)
    assert problem.allow is not None
    assert method not in problem.allow


@given(st.binary(max_size=30).map(lambda tail: b"/" + tail))
def test_what_is_taken_is_safe_and_unchanged(target: bytes) -> None:
    parts = split_target("GET", target)
    if isinstance(parts, Problem):
        return
    path, query = parts
    assert (f"{path}?{query}" if b"?" in target else path).encode() == target
    assert path.startswith("/") and not path.startswith("//")
    assert not {".", ".."} & set(path.split("/"))
    assert target.isascii() and b"#" not in target and b" " not in target


@given(st.text(alphabet="/.%2eEfF5cC0aA?:x", max_size=12).map(lambda tail: ("/" + tail).encode()))
def test_no_spelling_of_a_dot_segment_passes(target: bytes) -> None:
    parts = split_target("GET", target)
    if isinstance(parts, Problem):
        return
    decoded = parts[0].lower().replace("%2e", ".").replace("%2f", "/")
    assert not {".", ".."} & set(decoded.split("/"))
    assert "%5c" not in decoded and "%0" not in decoded


def test_fields_leave_a_query_however_their_names_are_spelled() -> None:
    query = "a=1&tok%65n=x&token=y&b&token&c=token&+token=z"
    assert without_fields(query, {"token"}) == "a=1&b&c=token&+token=z"
    assert without_fields("", {"token"}) == ""
