"""Reading and addressing requests of the passthrough families."""

import json

import pytest

from headrace.model.channel import BaseUrl, Channel
from headrace.model.headers import Headers
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call, ReplyHead, RequestHead
from headrace.model.wire import Asked, WireProtocol
from headrace.protocols.passthrough import FAMILIES, Passthrough

API = Passthrough(WireProtocol.IMAGES)
JSON = b"application/json"
FORM = b'multipart/form-data; boundary="B"'


def head(*types: bytes, query: str = "") -> RequestHead:
    headers: Headers = [(b"content-type", type) for type in types]
    return RequestHead("POST", "/v1/images/edits", query, headers)


def channel(**paths: str) -> Channel:
    named = tuple((name.replace("_", "."), path) for name, path in paths.items())
    return Channel("c", BaseUrl("https", "a.example", 443, "/v1"), frozenset(FAMILIES), (), paths=named)


def form(model: bytes) -> bytes:
    return (
        b'--B\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n\0model\r\n'
        b'--B\r\nContent-Disposition: form-data; name="model"\r\n\r\n' + model + b"\r\n--B--\r\n"
    )


def inspect(body: bytes, *types: bytes) -> Call | Problem:
    return API.inspect(head(*types), body, "images.edits")


def call(body: bytes, *types: bytes) -> Call:
    read = inspect(body, *types)
    assert isinstance(read, Call)
    return read


@pytest.mark.parametrize(
    ("body", "type", "model", "streams"),
    [
        (b'{"model":"m","stream":true}', JSON, "m", True),
        (b'{"model":"m","stream":false}', b"Application/JSON; charset=utf-8", "m", False),
        (b'{"model":"m"}', b"application/vnd.x+json", "m", False),
        (b' \r\n\t{"model":"m"}', b"text/plain", "m", False),
        (b'{"model":"a","model":"b"}', JSON, "b", False),
        (b'{"model":"m","input":"\\ud800"}', JSON, "m", False),
        (b"{}", JSON, "", False),
        (b'{"model":null,"stream":null}', JSON, "", False),
        (form("mödel".encode()), FORM, "mödel", False),
    ],
)
def test_the_model_is_read_where_it_stands(body: bytes, type: bytes, model: str, streams: bool) -> None:
    read = call(body, type)
    assert (read.model, read.asks_stream, read.asked, read.stream) == (model, streams, Asked.ANYTHING, False)
    assert (read.protocol, read.operation) == (WireProtocol.IMAGES, "images.edits")
    assert read.body is body


def test_a_request_without_a_type() -> None:
    assert call(b'{"model":"m"}').model == "m"
    assert inspect(b"bytes") == inspect(b"")
    assert isinstance(inspect(b""), Problem)


@pytest.mark.parametrize(
    ("body", "types", "param"),
    [
        (b'{"model":["m"]}', (JSON,), "model"),
        (b'{"model":""}', (JSON,), "model"),
        (b'{"model":"\\ud800"}', (JSON,), "model"),
        (b'{"model":"m","stream":1}', (JSON,), "stream"),
        (b'{"x":"\\ud800","model":1}', (JSON,), "model"),
        (b"null", (JSON,), None),
        (b"", (JSON,), None),
        (b"[" * 100_000, (JSON,), None),
        (b'{"x":NaN}', (JSON,), None),
        ('{"model":"m"}'.encode("utf-16"), (JSON,), None),
        (b'\xef\xbb\xbf{"model":"m"}', (JSON,), None),
        (b"model=m", (b"application/x-www-form-urlencoded",), None),
        ('{"model":"m"}'.encode("utf-16"), (b"text/plain",), None),
        (b'\xef\xbb\xbf{"model":"m"}', (b"text/plain",), None),
        (b"RIFF", (b"audio/wav",), None),
        (form(b"m"), (b"multipart/mixed; boundary=B",), None),
        (b'{"model":"m"}', (b"multipart/related; boundary=B",), None),
        (b'{"model":"m","Model":"dear"}', (JSON,), "Model"),
        (b'{"model":"m","\\u004dODEL":"dear","x":"\\ud800"}', (JSON,), "MODEL"),
        (b'{"Model":"dear"}', (JSON,), "Model"),
        (b'{"model":".."}', (JSON,), "model"),
        (b'{"model":"a/../b"}', (JSON,), "model"),
        (form(b"m").replace(b'"model"', b'"Model"'), (FORM,), None),
        (form(b"a/./b"), (FORM,), "model"),
        (form(b"m"), (FORM, JSON), None),
        (form(b""), (FORM,), "model"),
        (form(b"\xff"), (FORM,), "model"),
        (form(b"m")[:-4], (FORM,), None),
        (form(b"m"), (b"multipart/form-data",), None),
    ],
)
def test_what_cannot_be_read_is_the_clients_fault(body: bytes, types: tuple[bytes, ...], param: str | None) -> None:
    problem = inspect(body, *types)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.param) == (Kind.BAD_REQUEST, param)


def test_a_body_goes_up_as_it_came() -> None:
    read = call(b'{"model":"m"}', JSON)
    made = API.address(read, head(JSON, query="a=b&key=secret&k%65y=secret&c"), channel(), "m")
    assert (made.method, made.path, made.query, made.headers) == ("POST", "/images/edits", "a=b&c", [])
    assert made.body == (read.body,)
    assert not made.added_usage


@pytest.mark.parametrize(("body", "type"), [(b'{ "n":1, "model" : "m" }', JSON), (form(b"m"), FORM)])
def test_only_the_model_is_replaced(body: bytes, type: bytes) -> None:
    made = API.address(call(body, type), head(type), channel(), "other")
    sent = b"".join(made.body)
    assert sent == (body.replace(b'"m"', b'"other"') if type is JSON else form(b"other"))
    assert made.length == len(body) + 4


def test_a_request_that_names_no_model_stays_as_it_is() -> None:
    assert API.address(call(b"{}", JSON), head(JSON), channel(), "").body == (b"{}",)


def test_a_form_that_lost_its_model_is_a_defect() -> None:
    read = call(form(b"m"), FORM)
    read.body = form(b"m").replace(b'"model"', b'"modal"')
    with pytest.raises(ValueError, match="has a model"):
        API.address(read, head(FORM), channel(), "other")


def test_a_path_of_the_channels_own() -> None:
    made = API.address(call(b'{"model":"m"}', JSON), head(JSON), channel(images_edits="/d/{model}/edits"), "a/b?c")
    assert made.path == "/d/a%2Fb%3Fc/edits"


def test_nothing_is_ever_inserted() -> None:
    read = call(b'{"model":"m"}', JSON)
    problem = Problem(Kind.UPSTREAM_STALLED, "Slow.")
    assert not API.may_open_early(read, head(JSON))
    assert API.keepalive(b"\n", False, head(JSON), "x") == b""
    assert API.interrupt(problem, None, b"\n") == b""
    assert json.loads(API.refuse(problem, "id").body)["error"]["code"] == "upstream_stalled"


def test_requests_that_begin_alike_go_to_one_place() -> None:
    assert API.seed(call(b'{"model":"m","input":"' + b"a" * 9000 + b'"}', JSON), head(JSON)).endswith(b"a" * 4000)


def test_a_fault_in_a_reply() -> None:
    def fault(body: bytes) -> Problem | None:
        return API.classify_fault(ReplyHead(200, []), body)

    found = fault(b'{"error":{"message":"no","code":"rate_limit_exceeded"}}')
    assert found is not None and found.http_status == 429
    for body in (b'{"data":[]}', b'{"error":null}', b"[1]", b"bytes", b""):
        assert fault(body) is None
    assert API.observer(call(b"{}", JSON), False).usage.known is False


def test_a_form_is_taken_where_there_is_a_use_for_it() -> None:
    for family, operation, takes in (
        (WireProtocol.VIDEOS, "videos", True),
        (WireProtocol.AUDIO, "audio.transcriptions", True),
        (WireProtocol.AUDIO, "audio.speech", False),
        (WireProtocol.EMBEDDINGS, "embeddings", False),
    ):
        read = Passthrough(family).inspect(head(FORM), form(b"m"), operation)
        assert isinstance(read, Call) is takes, operation
