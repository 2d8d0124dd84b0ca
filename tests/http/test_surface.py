import pytest

from headrace.http.surface import Endpoint, Place, dialect_of, find
from headrace.model.problem import Kind, Problem
from headrace.model.request import RequestHead
from headrace.model.wire import Dialect, WireProtocol


def head(path: str, query: str = "", **headers: str) -> RequestHead:
    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return RequestHead("POST", path, query, fields)


@pytest.mark.parametrize(
    ("path", "protocol", "operation"),
    [
        ("/v1/chat/completions", WireProtocol.CHAT, "chat.completions"),
        ("/chat/completions", WireProtocol.CHAT, "chat.completions"),
        ("/v1/messages", WireProtocol.MESSAGES, "messages"),
        ("/messages", WireProtocol.MESSAGES, "messages"),
        ("/v1/messages/count_tokens", WireProtocol.MESSAGES, "messages.count_tokens"),
        ("/messages/count_tokens", WireProtocol.MESSAGES, "messages.count_tokens"),
        ("/v1/models/m:generateContent", WireProtocol.GEMINI, "gemini.generate_content"),
        ("/v1beta/models/a/b:c:streamGenerateContent", WireProtocol.GEMINI, "gemini.stream_generate_content"),
        ("/v1beta/models/m:countTokens", WireProtocol.GEMINI, "gemini.count_tokens"),
    ],
)
def test_paths_have_their_protocol(path: str, protocol: WireProtocol, operation: str) -> None:
    found = find("POST", path)
    assert isinstance(found, Endpoint)
    assert (found.place, found.protocol, found.operation) == (Place.EXCHANGE, protocol, operation)
    wrong = find("GET", path)
    assert isinstance(wrong, Problem)
    assert (wrong.kind, wrong.allow) == (Kind.METHOD_NOT_ALLOWED, "POST")


@pytest.mark.parametrize(
    ("path", "likely"),
    [
        ("/v1/v1/messages", "/v1/messages"),
        ("/anthropic/v1/messages", "/v1/messages"),
        ("/v1/messages/count_tokens/", "/v1/messages/count_tokens"),
        ("/zzz", "/v1/messages"),
    ],
)
def test_an_unknown_path_says_the_likely_one(path: str, likely: str) -> None:
    found = find("POST", path)
    assert isinstance(found, Problem)
    assert found.kind is Kind.NOT_FOUND
    assert likely in found.message


@pytest.mark.parametrize(
    ("asked", "dialect"),
    [
        (head("/v1/messages", x_goog_api_key="k"), Dialect.ANTHROPIC),
        (head("/v1/models/m:generateContent", anthropic_version="1"), Dialect.GEMINI),
        (head("/messages/count_tokens"), Dialect.ANTHROPIC),
        (head("/v1/messages/zzz"), Dialect.ANTHROPIC),
        (head("/v1/messagesx"), Dialect.OPENAI),
        (head("/v1/chat/completions", anthropic_version="1"), Dialect.OPENAI),
        (head("/v1beta/models", anthropic_version="1"), Dialect.GEMINI),
        (head("/v1/models"), Dialect.OPENAI),
        (head("/v1/models", anthropic_version="1"), Dialect.ANTHROPIC),
        (head("/v1/models", anthropic_version="1", x_goog_api_key="k"), Dialect.GEMINI),
        (head("/v1/models", x_goog_api_client="genai-js/1"), Dialect.GEMINI),
        (head("/v1/models", "limit=5&key=k"), Dialect.GEMINI),
        (head("/v1/models", "limit=5", anthropic_version="1"), Dialect.ANTHROPIC),
    ],
)
def test_the_dialect_follows_the_path_then_the_client(asked: RequestHead, dialect: Dialect) -> None:
    assert dialect_of(asked) is dialect


def test_models_of_gemini() -> None:
    assert find("GET", "/v1beta/models") == Endpoint(Place.MODELS, Dialect.GEMINI)
    for path in ("/v1beta/models/a%2Fb", "/v1/models/a%2Fb", "/models/a/b"):
        assert find("GET", path) == Endpoint(Place.MODEL, argument="a/b")
    unknown = find("POST", "/v1beta/models/m:predict")
    assert isinstance(unknown, Problem) and unknown.kind is Kind.NOT_FOUND
    assert "streamGenerateContent" in unknown.message
