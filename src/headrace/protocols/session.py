"""Which session a request belongs to, by the headers in which clients name it."""

from headrace.model.request import RequestHead

SESSION_HEADERS = (b"session_id", b"session-id", b"x-session-id", b"x-claude-code-session-id", b"x-conversation-id")
"""Headers by which clients name their session, most specific first."""


def session(head: RequestHead) -> bytes:
    """The session's name; empty where the client gives none."""
    for name in SESSION_HEADERS:
        value = head.header(name)
        if value:
            return value
    return b""
