"""The keepalive of the protocols whose readers stand comments; no single form is safe for all of them.

A comment and a blank line suits every reader that splits on blank lines, but the blank line dispatches an empty event
in Go's readers, and in openai-python once an `id:` was seen; there the comment line stands alone.
"""

from headrace.model.request import RequestHead


def comment_keepalive(saw_id: bool, head: RequestHead, comment: str) -> bytes:
    """`: comment` with a blank line, or alone for Go clients and behind an `id:` field."""
    line = b": " + comment.encode("utf-8") + b"\n"
    return line if saw_id or is_go(head) else line + b"\n"


def is_go(head: RequestHead) -> bool:
    """Whether the client is a Go program: it says so in one of three headers."""
    return (
        (head.header(b"x-stainless-lang") or b"").lower() == b"go"
        or b"gl-go/" in (head.header(b"x-goog-api-client") or b"")
        or (head.header(b"user-agent") or b"").startswith(b"Go-http-client/")
    )
