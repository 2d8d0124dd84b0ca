"""Proxies as text."""

import base64
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from headrace.config.draft import load
from headrace.config.forms import Reading
from headrace.config.proxy import ProxyText
from headrace.model.channel import Proxy
from tests.config.conftest import Write

PROXY: TypeAdapter[Proxy | None] = TypeAdapter(ProxyText)
CHANNEL = """\
channels:
  a:
    base_url: https://a.example
    protocols: [chat]
    credentials: [{name: main, secret: env:KEY}]
    proxy: PROXY
models: {m: {routes: [{channel: a}]}}
keys: [{name: k, secret: env:KEY}]
"""
ENVIRON = {"PROXY": "http://user:pass@p.example:3128\n", "KEY": "k" * 20}


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "proxy"),
    [
        ("http://p.example:3128", Proxy("p.example", 3128)),
        ("HTTP://P.example:3128/", Proxy("p.example", 3128)),
        ("http://[::1]:80", Proxy("::1", 80)),
        ("http://10.0.0.1:8080", Proxy("10.0.0.1", 8080)),
        ("http://user:pass@p:1", Proxy("p", 1, basic("user:pass"))),
        ("http://user:@p:1", Proxy("p", 1, basic("user:"))),
        ("http://us%40er:p%C3%A4ss%3A%20w@p:1", Proxy("p", 1, basic("us@er:päss: w"))),
        ("env:PROXY", Proxy("p.example", 3128, basic("user:pass"))),
        ("file:proxy", Proxy("q", 2)),
    ],
)
def test_proxies_come_apart(tmp_path: Path, text: str, proxy: Proxy) -> None:
    (tmp_path / "proxy").write_text("http://q:2\n")
    assert PROXY.validate_python(text, context=Reading(tmp_path, ENVIRON)) == proxy


def test_a_password_is_not_shown() -> None:
    proxy = PROXY.validate_python("http://user:pass@p:1", context=Reading(Path(), {}))
    assert proxy is not None
    assert proxy.authorization not in repr(proxy)
    assert proxy.authority == "p:1"
    assert Proxy("::1", 1).authority == "[::1]:1"


@pytest.mark.parametrize(("text", "warned"), [("http://user:pass@p:1", 1), ("http://p:1", 0), ("env:PROXY", 0)])
def test_a_password_in_a_file_that_others_may_read(write: Write, text: str, warned: int) -> None:
    path = write(CHANNEL.replace("PROXY", text))
    path.chmod(0o644)
    draft = load(path, ENVIRON)
    assert len([one for one in draft.warnings if ":6: channels.a.proxy: stands in a file that others" in one]) == warned
    assert draft.channels[0].proxy is not None
