"""What tells a conversation apart, so that it stays where its prompt cache is warm: names that clients give it, else
its first words."""

from typing import Any

import msgspec

from headrace.model.request import RequestHead

SESSION_HEADERS = (b"session_id", b"session-id", b"x-session-id", b"x-claude-code-session-id", b"x-conversation-id")
"""Headers by which clients name their session, most specific first."""
SEED_BYTES = 4096
"""How much of the first words counts."""


class _Turn(msgspec.Struct):
    role: Any = None
    content: msgspec.Raw = msgspec.Raw(b"null")


class _Conversation(msgspec.Struct):
    prompt_cache_key: Any = None
    metadata: Any = None
    messages: list[_Turn] = []


_decode = msgspec.json.Decoder(_Conversation).decode


def session(head: RequestHead) -> bytes:
    """The session's name; empty where the client gives none."""
    for name in SESSION_HEADERS:
        value = head.header(name)
        if value:
            return value
    return b""


def first_name(*names: object) -> bytes:
    """The first of `names` that is a text, or bytes, and not empty; empty where none is."""
    for name in names:
        if name and isinstance(name, str | bytes):
            return name if isinstance(name, bytes) else name.encode("utf-8", "surrogatepass")
    return b""


def seed_of_messages(body: bytes, head: RequestHead) -> bytes:
    """Of a body with `messages`: `prompt_cache_key`, else the session, else `metadata.user_id`, else the first 4 KiB
    of the first user message."""
    try:
        read = _decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return session(head)
    user = read.metadata.get("user_id") if isinstance(read.metadata, dict) else None
    name = first_name(read.prompt_cache_key, session(head), user)
    if name:
        return name
    for turn in read.messages:
        if turn.role == "user":
            return bytes(memoryview(turn.content)[:SEED_BYTES])
    return b""
