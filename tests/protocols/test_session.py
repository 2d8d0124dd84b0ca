"""What tells a conversation apart, in its order, for each protocol."""

import json

import pytest

from headrace.model.headers import Headers
from headrace.model.problem import Problem
from headrace.model.request import RequestHead
from headrace.model.wire import WireProtocol
from headrace.protocols.chat import Chat
from headrace.protocols.gemini import Gemini
from headrace.protocols.interface import Api
from headrace.protocols.messages import Messages
from headrace.protocols.passthrough import Passthrough
from headrace.protocols.responses import Responses
from headrace.protocols.session import SESSION_HEADERS, session

TURN = {"role": "user", "content": "北 hello", "parts": [{"text": "北 hello"}]}
BODY = {"model": "m", "messages": [TURN], "input": "北 hello", "contents": [TURN]}
APIS: dict[str, Api] = {
    "chat": Chat(),
    "responses": Responses(),
    "messages": Messages(),
    "gemini": Gemini(),
    "embeddings": Passthrough(WireProtocol.EMBEDDINGS),
}


def seed(api: Api, fields: dict[str, object], headers: Headers) -> bytes:
    """The seed of a request with these members and headers."""
    head = RequestHead("POST", "/v1beta/models/m:generateContent", "", headers)
    call = api.inspect(head, json.dumps(BODY | fields, ensure_ascii=False).encode(), "any.generate_content")
    assert not isinstance(call, Problem)
    return api.seed(call, head)


@pytest.mark.parametrize("name", APIS)
def test_a_session_header_comes_before_the_first_words(name: str) -> None:
    api = APIS[name]
    plain = seed(api, {}, [])
    assert "北".encode() in plain
    assert seed(api, {}, [(b"session_id", b"s-1")]) == b"s-1"
    assert seed(api, {}, [(b"session_id", b"")]) == plain


@pytest.mark.parametrize("name", ["chat", "responses", "messages"])
def test_a_cache_key_comes_first_and_a_user_id_after_the_session(name: str) -> None:
    api = APIS[name]
    user: dict[str, object] = {"metadata": {"user_id": "u"}}
    assert seed(api, user, []) == b"u"
    assert seed(api, user, [(b"x-session-id", b"s")]) == b"s"
    assert seed(api, user | {"prompt_cache_key": "k"}, [(b"x-session-id", b"s")]) == b"k"


@pytest.mark.parametrize("odd", [5, None, "", ["x"]])
def test_odd_members_are_passed_over(odd: object) -> None:
    assert seed(APIS["chat"], {"prompt_cache_key": odd, "metadata": {"user_id": odd}}, []) == seed(APIS["chat"], {}, [])


def test_the_most_specific_header_counts() -> None:
    head = RequestHead("POST", "/", "", [(name, name) for name in reversed(SESSION_HEADERS)])
    assert session(head) == SESSION_HEADERS[0]
    assert session(RequestHead("POST", "/", "", [])) == b""
