"""The channel's credential stays on the channel's side, whatever an upstream does with it."""

import pytest

from tests.stand.stand import Stand
from tests.stand.wire import CHAT, chat

SECRET = "sk-upstream-1"
LEAKS = {
    "location": f"https://elsewhere.example/?key={SECRET}",
    "x-goog-api-key": SECRET,
    "x-api-key": SECRET,
    "authorization": f"Bearer {SECRET}",
    "set-cookie": f"session={SECRET}",
    "www-authenticate": f'Bearer realm="{SECRET}"',
    "openai-organization": "org-secret",
    "anthropic-organization-id": "org-secret",
    "x-ratelimit-limit-requests": "5",
    "alt-svc": 'h3=":443"',
    "link": f"<https://elsewhere.example/{SECRET}>",
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [200, 400, 404])
def test_no_header_gives_the_key_back(stand: Stand, status: int, stream: bool) -> None:
    """Case B111: the list of headers that pass has no field that may hold a credential or name the account."""
    body = {"error": {"message": "no", "type": "invalid_request_error", "param": None, "code": None}}
    said: dict[str, object] = {"headers": LEAKS}
    said |= {"status": status, "body": body} if status != 200 else {"events": CHAT} if stream else {}
    model = stand.model("one", said)
    reply = stand.ask(chat(model, stream=stream))
    assert reply.status == status
    assert not LEAKS.keys() & {name for name, _ in reply.headers}
    assert SECRET not in repr(reply.headers) + repr(reply.body)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_not_passed_on(stand: Stand, status: int) -> None:
    """Case B111: following it would carry the credential elsewhere."""
    model = stand.model("one", {"status": status, "headers": {"location": f"{stand.ch2.origin}/v1/?key={SECRET}"}})
    reply = stand.ask(chat(model))
    assert (reply.status, reply.header("location")) == (502, None)
    assert SECRET not in repr(reply.headers) + repr(reply.body)
    assert not stand.calls(model, stand.ch2)
    assert [one.verdict for one in stand.entry(model).attempts] == ["upstream_bad_reply"]


def test_a_refused_credential_is_not_named(stand: Stand) -> None:
    """Case B111: OpenAI repeats part of the key in its 401, which is the gateway's own affair."""
    body = {"error": {"message": f"Incorrect API key provided: {SECRET}.", "type": "x", "code": "invalid_api_key"}}
    model = stand.model("one", {"status": 401, "body": body})
    reply = stand.ask(chat(model))
    assert reply.status == 502
    assert SECRET not in repr(reply.headers) + repr(reply.body)
    assert SECRET not in repr(stand.entry(model))
