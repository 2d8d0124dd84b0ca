"""A channel's proxy as text: where it is, and who asks. It may hold a password, so it may be a reference."""

import re
from base64 import b64encode
from typing import Annotated
from urllib.parse import unquote_to_bytes

from headrace.config.forms import Form, Reading
from headrace.config.places import read_host_and_port
from headrace.config.secret import content_of_reference
from headrace.model.channel import Proxy

_PROXY = re.compile(r"http://(?:([^/?#@]*)@)?([^/?#@]+)/?", re.IGNORECASE)
_USER_PART = re.compile(r"([A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")


def _read_proxy(text: str, reading: Reading) -> Proxy | None:
    content = content_of_reference(text, reading)
    if content is not None:
        text = content.strip().decode("latin-1")
    match = _PROXY.fullmatch(text)
    if not match:
        raise ValueError(
            "must be http://host:port or http://user:password@host:port; other kinds of proxy are not taken"
        )
    user, place = match[1], match[2]
    host, port = read_host_and_port(place)
    return Proxy(host, port, "" if user is None else _authorization(user))


def _authorization(text: str) -> str:
    """The Basic credentials in a URL's user part."""
    user, colon, password = text.partition(":")
    if not colon or not user or not (_USER_PART.fullmatch(user) and _USER_PART.fullmatch(password)):
        raise ValueError(
            "before the @ it takes user:password, with %XX for what is no letter, digit or ._~!$&'()*+,;=-"
        )
    parts = unquote_to_bytes(user), unquote_to_bytes(password)
    if b":" in parts[0] or any(byte < 32 or byte == 127 for part in parts for byte in part):
        raise ValueError("the user must hold no colon, and neither part a control character")
    return "Basic " + b64encode(b":".join(parts)).decode("ascii")


ProxyText = Annotated[Proxy | None, Form("http://[user:password@]host:port, env:NAME or file:PATH", _read_proxy)]
