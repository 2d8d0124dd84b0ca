"""Chat Completions: what is read from a request, what is spliced into it, and how failure is spoken of."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.channel import BaseUrl, Channel, Credential, UsagePolicy
from headrace.model.problem import FACTS, Kind, Problem, Source
from headrace.model.request import Call, ReplyHead, RequestHead
from headrace.model.wire import Asked, Dialect, WireProtocol
from headrace.protocols.chat import Chat
from headrace.protocols.chat_observer import ChatObserver

CHAT = Chat()
HEAD = RequestHead("POST", "/v1/chat/completions", "", [])
CHANNEL = Channel(
    "a", BaseUrl("https", "a.example", 443, "/v1"), frozenset({WireProtocol.CHAT}), (Credential("main", "secret"),)
)


def channel(usage: UsagePolicy = UsagePolicy.INJECT, paths: tuple[tuple[str, str], ...] = ()) -> Channel:
    return Channel(
        "a",
        BaseUrl("https", "a.example", 443, "/v1"),
        frozenset({WireProtocol.CHAT}),
        (Credential("main", "secret"),),
        usage=usage,
        paths=paths,
    )


def inspect(body: bytes) -> Call | Problem:
    return CHAT.inspect(HEAD, body, "chat.completions")


def call(body: bytes) -> Call:
    read = inspect(body)
    assert isinstance(read, Call), read
    return read


def sent(body: bytes, upstream_model: str = "m", usage: UsagePolicy = UsagePolicy.INJECT) -> tuple[bytes, bool]:
    """The body as it goes up, and whether usage was added."""
    request = CHAT.address(call(body), HEAD, channel(usage), upstream_model)
    assert request.length == len(b"".join(request.body))
    return b"".join(request.body), request.added_usage


# ---- inspect


def test_what_is_read() -> None:
    read = call(
        b'{"model":"gpt-x","stream":true,"n":3,"max_tokens":7,"max_completion_tokens":9,'
        b'"stream_options":{"include_usage":true,"include_obfuscation":false},"unknown":{"a":[1]}}'
    )
    assert (read.model, read.asked, read.stream, read.wants_usage, read.max_output, read.choices) == (
        "gpt-x",
        Asked.EVENTS,
        True,
        True,
        9,
        3,
    )
    assert read.protocol is WireProtocol.CHAT and read.operation == "chat.completions"


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ("", (False, False, None, 1)),
        (',"stream":null,"n":null,"max_tokens":null,"stream_options":null', (False, False, None, 1)),
        (',"stream":false', (False, False, None, 1)),
        (',"stream":true,"max_tokens":5', (True, False, 5, 1)),
        (',"n":"2","max_tokens":"5","max_completion_tokens":1.5', (False, False, None, 1)),
        (',"n":true,"max_tokens":-1,"max_completion_tokens":0', (False, False, None, 1)),
        (',"stream_options":{"include_usage":"true"}', (False, False, None, 1)),
        (',"stream_options":{"include_usage":1}', (False, False, None, 1)),
        (',"stream_options":[]', (False, False, None, 1)),
        (',"stream":false,"stream":true', (True, False, None, 1)),
    ],
)
def test_odd_members_are_the_upstreams_to_judge(members: str, expected: tuple[bool, bool, int | None, int]) -> None:
    read = call(b'{"model":"m"' + members.encode() + b"}")
    assert (read.stream, read.wants_usage, read.max_output, read.choices) == expected


def test_the_last_of_two_models_counts() -> None:
    """case B107: what routing uses is what the upstream will use."""
    assert call(b'{"model":"a","model":"b"}').model == "b"


def test_lone_surrogates_in_content_are_real_traffic() -> None:
    body = b'{"messages":[{"role":"user","content":"\\ud83d"}],"model":"m","stream":true}'
    read = call(body)
    assert read.model == "m" and read.stream and read.body is body


def test_a_model_of_300_kb_is_a_name() -> None:
    assert len(call(b'{"model":"' + b"x" * 300_000 + b'"}').model) == 300_000


BAD: list[tuple[bytes, str | None]] = [
    (b"", None),
    (b" ", None),
    (b"null", None),
    (b"[]", None),
    (b"[1]", None),
    (b"5", None),
    (b'"x"', None),
    (b"true", None),
    (b"{}", "model"),
    (b'{"model":null}', "model"),
    (b'{"model":""}', "model"),
    (b'{"model":5}', "model"),
    (b'{"model":["a"]}', "model"),
    (b'{"model":{}}', "model"),
    (b'{"model":"m","stream":"true"}', "stream"),
    (b'{"model":"m","stream":1}', "stream"),
    (b'{"model":"m","stream":[]}', "stream"),
    ('{"model":"m"}'.encode("utf-16"), None),
    ('{"model":"m"}'.encode("utf-16-le"), None),
    ('{"model":"m"}'.encode("utf-32"), None),
    (b'\xef\xbb\xbf{"model":"m"}', None),
    (b'{"model":"m","temperature":NaN}', None),
    (b'{"model":"m","temperature":Infinity}', None),
    (b'{"model":"m","temperature":-Infinity}', None),
    (b'{"model":"m"', None),
    (b'{"model":"m"}}', None),
    (b'{"model":"m"}x', None),
    (b'{"model":"m",}', None),
    (b"{'model':'m'}", None),
    (b'{"model":"m","x":"\x00"}', None),
    (b'{"model":"m","x":"\xff"}\xff', None),
    (b'{"model":"m","x":01}', None),
    (b'{"model":"m","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
    (b'{"model":"\\ud800"}', "model"),
    (b'{"stream":"yes","model":"\\ud83d\\ude00","x":"\\ud800"}', "stream"),
    (b"\x1f\x8b\x08\x00", None),
    (b"model=m&stream=true", None),
    (b"<html></html>", None),
]


@pytest.mark.parametrize(("body", "param"), BAD)
def test_bad_bodies(body: bytes, param: str | None) -> None:
    """case B107: 400 with the dialect's error, never 500; the message says what to do."""
    problem = inspect(body)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.http_status, problem.param) == (Kind.BAD_REQUEST, 400, param)
    reply = CHAT.refuse(problem, "hr_1")
    error = json.loads(reply.body)["error"]
    assert reply.status == 400 and error["code"] == "bad_request" and error["type"] == "invalid_request_error"
    assert error["param"] == param and len(error["message"]) < 500


@given(
    st.binary(max_size=60)
    | st.text(max_size=40).map(lambda text: b'{"model":"m","x":"' + text.encode("utf-8", "replace"))
)
def test_no_body_makes_it_raise(body: bytes) -> None:
    assert isinstance(inspect(body), Call | Problem)


# ---- address


def test_nothing_is_changed_without_need() -> None:
    body = b' {"model": "m" ,"stream" : true, "stream_options":{"include_usage":true}}\n'
    request = CHAT.address(call(body), HEAD, channel(), "m")
    assert request.body == (body,) and request.body[0] is body and not request.added_usage
    assert (request.method, request.path, request.query, request.headers) == ("POST", "/chat/completions", "", [])
    assert sent(b'{"model":"m"}') == (b'{"model":"m"}', False)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (b'{"model":"m","stream":true}', b'{"stream_options":{"include_usage":true},"model":"m","stream":true}'),
        (
            b' \n{ "model":"m","stream":true}',
            b' \n{"stream_options":{"include_usage":true}, "model":"m","stream":true}',
        ),
        (
            b'{"model":"m","stream":true,"stream_options":null}',
            b'{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
        ),
        (
            b'{"stream_options" : { } ,"model":"m","stream":true}',
            b'{"stream_options" : {"include_usage":true } ,"model":"m","stream":true}',
        ),
        (
            b'{"stream_options":{},"model":"m","stream":true}',
            b'{"stream_options":{"include_usage":true},"model":"m","stream":true}',
        ),
        (
            b'{"model":"m","stream":true,"stream_options":{"include_obfuscation":false}}',
            b'{"model":"m","stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}}',
        ),
        (
            b'{"model":"m","stream":true,"stream_options":{"include_usage": false ,"x":1}}',
            b'{"model":"m","stream":true,"stream_options":{"include_usage": true ,"x":1}}',
        ),
        (
            b'{"model":"m","stream":true,"stream_options":{"include_usage":null}}',
            b'{"model":"m","stream":true,"stream_options":{"include_usage":true}}',
        ),
        (
            b'{"model":"m","stream":true,"stream_options":{"x":{"include_usage":true},"include_usage":false}}',
            b'{"model":"m","stream":true,"stream_options":{"x":{"include_usage":true},"include_usage":true}}',
        ),
        (
            b'{"model":"m","stream":true,"stream_options":{"include_usage":true,"include_usage":false}}',
            b'{"model":"m","stream":true,"stream_options":{"include_usage":true,"include_usage":true}}',
        ),
        (
            b'{"stream_options":{"include_usage":false},"model":"m","stream":true,"stream_options":{}}',
            b'{"stream_options":{"include_usage":false},"model":"m","stream":true,"stream_options":{"include_usage":true}}',
        ),
        (
            b'{"a":{"stream_options":null},"model":"m","stream":true}',
            b'{"stream_options":{"include_usage":true},"a":{"stream_options":null},"model":"m","stream":true}',
        ),
        (
            b'{"stream\\u005foptions":{"include\\u005fusage":false},"model":"m","stream":true}',
            b'{"stream\\u005foptions":{"include\\u005fusage":true},"model":"m","stream":true}',
        ),
        (
            b'{"messages":["\\ud83d"],"model":"m","stream":true,"stream_options":{"include_usage":false}}',
            b'{"messages":["\\ud83d"],"model":"m","stream":true,"stream_options":{"include_usage":true}}',
        ),
        (
            b'{"messages":["\\ud83d"],"model":"m","stream":true}',
            b'{"stream_options":{"include_usage":true},"messages":["\\ud83d"],"model":"m","stream":true}',
        ),
    ],
)
def test_usage_is_asked_for(body: bytes, after: bytes) -> None:
    """case B019: every form of stream_options; no other byte moves."""
    assert sent(body) == (after, True)


@pytest.mark.parametrize(
    "members",
    [
        b'"stream":true,"stream_options":{"include_usage":true}',
        b'"stream":true,"stream_options":[]',
        b'"stream":true,"stream_options":"x"',
        b'"stream":true,"stream_options":{"include_usage":"no"}',
        b'"stream":true,"stream_options":{"include_usage":0}',
        b'"stream":false',
        b'"n":1',
    ],
)
def test_usage_is_not_asked_for(members: bytes) -> None:
    """It was asked for, it cannot be, or its shape is the client's own fault, which the upstream will tell."""
    body = b'{"model":"m",' + members + b"}"
    assert sent(body) == (body, False)


def test_an_upstream_that_refuses_the_option() -> None:
    body = b'{"model":"m","stream":true}'
    assert sent(body, usage=UsagePolicy.ESTIMATE) == (body, False)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (b'{"model":"m"}', b'{"model":"up/1"}'),
        (b'{ "x" :{"model":"m"} , "model" : "m" }', b'{ "x" :{"model":"m"} , "model" : "up/1" }'),
        (b'{"model":"a","model":"m"}', b'{"model":"a","model":"up/1"}'),
        (b'{"m\\u006fdel":"m"}', b'{"m\\u006fdel":"up/1"}'),
        (b'{"x":"\\ud83d","model":"m"}', b'{"x":"\\ud83d","model":"up/1"}'),
        (b'{"x":"\\ud83d\\\\","mo":"model","model":"\\u006d"}', b'{"x":"\\ud83d\\\\","mo":"model","model":"up/1"}'),
    ],
)
def test_the_upstreams_name(body: bytes, after: bytes) -> None:
    assert sent(body, "up/1") == (after, False)


def test_both_edits_in_any_order() -> None:
    body = b'{"stream_options":{"include_usage":false},"stream":true,"model":"m"}'
    assert sent(body, 'q"uote') == (b'{"stream_options":{"include_usage":true},"stream":true,"model":"q\\"uote"}', True)
    body = b'{"model":"m","stream":true}'
    assert sent(body, "up") == (b'{"stream_options":{"include_usage":true},"model":"up","stream":true}', True)


@given(
    before=st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=9), max_size=3),
    options=st.none() | st.dictionaries(st.sampled_from(["include_usage", "x"]), st.booleans(), max_size=2),
    indent=st.none() | st.integers(0, 2),
    ascii_only=st.booleans(),
)
def test_the_upstream_reads_what_was_meant(
    before: dict[str, object], options: dict[str, bool] | None, indent: int | None, ascii_only: bool
) -> None:
    """Read as JSON, only the two members differ, whatever surrounds them."""
    value = {
        **before,
        "stream_options": options,
        "model": "m",
        "stream": True,
        "z": {"model": "m", "stream_options": 1},
    }
    body = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    if isinstance(inspect(body), Problem):
        return
    after, added = sent(body, "up")
    wanted = {**(options or {}), "include_usage": True}
    asked = (options or {}).get("include_usage") is True
    read = json.loads(after.decode("utf-8", "surrogatepass"))
    assert read == {**value, "model": "up", "stream_options": options if asked else wanted}
    assert added is not asked


def test_a_path_of_the_channels_own() -> None:
    own = channel(paths=(("chat.completions", "/deployments/{model}/chat"), ("embeddings", "/e")))
    request = CHAT.address(call(b'{"model":"a/b?x=1"}'), HEAD, own, "a/b?x=1")
    assert request.path == "/deployments/a%2Fb%3Fx%3D1/chat", "a model's name moves no path"
    other = channel(paths=(("embeddings", "/e"),))
    assert CHAT.address(call(b'{"model":"m"}'), HEAD, other, "m").path == "/chat/completions"


# ---- seed


@pytest.mark.parametrize(
    ("body", "seed"),
    [
        (b'{"model":"m","prompt_cache_key":"k","metadata":{"user_id":"u"}}', b"k"),
        (b'{"model":"m","prompt_cache_key":"","metadata":{"user_id":"u"}}', b"u"),
        (b'{"model":"m","prompt_cache_key":5,"metadata":{"user_id":7}}', b""),
        (b'{"model":"m","metadata":[]}', b""),
        (b'{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"first"},'
         b'{"role":"user","content":"second"}]}', b'"first"'),
        (b'{"model":"m","messages":[{"role":"user"}]}', b"null"),
        (b'{"model":"m","messages":[{"role":"user","content":[{"type":"text"}]}]}', b'[{"type":"text"}]'),
        (b'{"model":"m","messages":"x"}', b""),
        (b'{"model":"m","x":"\\ud800"}', b""),
    ],
)  # fmt: skip
def test_seed(body: bytes, seed: bytes) -> None:
    assert CHAT.seed(call(body), HEAD) == seed


def test_a_seed_is_bounded() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"' + b"x" * 10_000 + b'"}]}'
    assert CHAT.seed(call(body), HEAD) == b'"' + b"x" * 4095


# ---- speaking


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r", None])
@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_as_an_error_event(kind: Kind, line_end: bytes | None) -> None:
    event = CHAT.interrupt(Problem(kind, "What to do."), None, line_end)
    end = 2 * (line_end or b"\n")
    assert event.startswith(b'data: {"error":{"message":"What to do.","type":"server_error","param":null,"code":"')
    assert event.endswith(b"}}" + end) and b"[DONE]" not in event and b"event:" not in event
    error = json.loads(event.removeprefix(b"data: "))["error"]
    assert error == {"message": "What to do.", "type": "server_error", "param": None, "code": kind.value}
    observer = ChatObserver(False)
    observer.observe(event)
    assert observer.problem is not None, "the gateway itself would take it for what it is"


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_as_a_reply(kind: Kind) -> None:
    reply = CHAT.refuse(Problem(kind, "What to do."), "hr_1")
    error = json.loads(reply.body)["error"]
    status = FACTS[kind].status
    assert reply.status == status and error["code"] == kind.value and error["message"] == "What to do."
    assert (error["type"] == "server_error") == (status >= 500)
    assert (b"content-type", b"application/json") in reply.headers


def test_keepalive() -> None:
    go = RequestHead("POST", "/", "", [(b"user-agent", b"Go-http-client/1.1")])
    assert CHAT.keepalive(b"\r\n", False, HEAD, "hopbase-keepalive") == b": hopbase-keepalive\n\n"
    assert CHAT.keepalive(None, True, HEAD, "hopbase-keepalive") == b": hopbase-keepalive\n"
    assert CHAT.keepalive(b"\n", False, go, "hopbase-keepalive") == b": hopbase-keepalive\n"


def test_what_it_is() -> None:
    assert (CHAT.protocol, CHAT.dialect, CHAT.keeps_comments) == (WireProtocol.CHAT, Dialect.OPENAI, True)
    assert CHAT.may_open_early(call(b'{"model":"m"}'), HEAD)
    assert isinstance(CHAT.observer(call(b'{"model":"m"}'), True), ChatObserver)


def test_a_fault_in_a_body() -> None:
    problem = CHAT.classify_fault(ReplyHead(400, []), b'{"error":{"message":"long","code":"context_length_exceeded"}}')
    assert problem is not None and (problem.http_status, problem.fault) == (400, Source.UPSTREAM)
    assert CHAT.classify_fault(ReplyHead(200, []), b'{"choices":[]}') is None
