"""Requests out of bytes, by llhttp: calls back with the head, each part of the body, and the end."""

from collections.abc import Callable
from dataclasses import replace

import httptools

from headrace.simulator.request import Request


class Inbound:
    """One connection's parser. The request that `on_head` gets has no body yet; `on_complete` gets it whole."""

    def __init__(
        self,
        on_head: Callable[[Request], None],
        on_part: Callable[[bytes], None],
        on_complete: Callable[[Request], None],
    ) -> None:
        self._on_head = on_head
        self._on_part = on_part
        self._on_complete = on_complete
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._parts: list[bytes] = []
        self._request: Request | None = None

    def feed(self, data: bytes) -> None:
        """Raises httptools.HttpParserError and, after a request that asks for it, HttpParserUpgrade."""
        self._parser.feed_data(data)

    # llhttp's callbacks

    def on_message_begin(self) -> None:
        self._target = b""
        self._headers, self._parts = [], []

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers come here too, after the head: they are no headers.
        if self._request is None:
            self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._request = Request(
            method=self._parser.get_method().decode("latin-1"),
            target=_path_form(self._target.decode("latin-1")),
            version=self._parser.get_http_version(),
            headers=tuple(self._headers),
        )
        self._on_head(self._request)

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)
        self._on_part(body)

    def on_message_complete(self) -> None:
        request, self._request = self._request, None
        assert request is not None
        self._on_complete(replace(request, body=b"".join(self._parts)))
        self._parts = []


def _path_form(target: str) -> str:
    """The path of a target in absolute form (RFC 9112 3.2.2), as proxies send it."""
    if not target.startswith(("http://", "https://")):
        return target
    _, slash, path = target.partition("://")[2].partition("/")
    return slash + path if slash else "/"
