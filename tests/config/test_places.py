"""Addresses, base URLs, names and request fields as text."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from headrace.config import places
from headrace.config.forms import Reading
from headrace.model.channel import Auth, AuthForm, BaseUrl
from headrace.model.settings import Address

READING = Reading(Path("/etc/headrace"), {})
ADDRESS: TypeAdapter[Address] = TypeAdapter(places.AddressText)
BASE_URL: TypeAdapter[BaseUrl] = TypeAdapter(places.BaseUrlText)
AUTH: TypeAdapter[Auth] = TypeAdapter(places.AuthText)
MOMENT: TypeAdapter[float | None] = TypeAdapter(places.Moment)
ORIGIN: TypeAdapter[str] = TypeAdapter(places.Origin)
PATH: TypeAdapter[str] = TypeAdapter(places.PathText)


@pytest.mark.parametrize(
    "text", ["127.0.0.1:8080", "[::1]:8080", "localhost:0", "a-b.example:65535", "unix:/run/h.sock"]
)
def test_addresses_read_as_they_are_shown(text: str) -> None:
    assert str(ADDRESS.validate_python(text, context=READING)) == text


@given(st.ip_addresses(v=4), st.ip_addresses(v=6), st.integers(min_value=0, max_value=65535))
def test_every_ip_address_reads(four: object, six: object, port: int) -> None:
    assert ADDRESS.validate_python(f"{four}:{port}", context=READING) == Address(str(four), port)
    assert ADDRESS.validate_python(f"[{six}]:{port}", context=READING) == Address(str(six), port)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("https://api.openai.com/v1", ("https", "api.openai.com", 443, "/v1")),
        ("https://api.openai.com/v1/", ("https", "api.openai.com", 443, "/v1")),
        ("HTTPS://API.Example", ("https", "api.example", 443, "")),
        ("https://a.example:444/", ("https", "a.example", 444, "")),
        ("http://127.0.0.1", ("http", "127.0.0.1", 80, "")),
        ("https://[2001:DB8::1]:8443/x/y", ("https", "2001:db8::1", 8443, "/x/y")),
        ("https://a_b.example/a%20b", ("https", "a_b.example", 443, "/a%20b")),
    ],
)
def test_base_urls_come_apart(text: str, parts: tuple[str, str, int, str]) -> None:
    assert BASE_URL.validate_python(text, context=READING) == BaseUrl(*parts)


@given(st.text(max_size=40))
def test_no_base_url_holds_what_could_end_a_header_or_a_path(rest: str) -> None:
    try:
        url = BASE_URL.validate_python(f"https://{rest}", context=READING)
    except ValidationError:
        return
    assert url.authority.isascii()
    assert not set(url.authority + url.path) & set(" \r\n\t\0?#@\\")
    assert url.host
    assert not url.path.endswith("/")


@pytest.mark.parametrize("text", ["by_protocol", "bearer", "header:api-key", "query:key"])
def test_auth_reads_as_it_is_shown(text: str) -> None:
    assert places.show_auth(AUTH.validate_python(text, context=READING)) == text


def test_a_header_for_auth_is_in_lower_case() -> None:
    assert AUTH.validate_python("header:Api-Key", context=READING) == Auth(AuthForm.HEADER, "api-key")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02", 86400.0),
        ("1970-01-01T01:00", 3600.0),
        ("1970-01-01 00:00:01", 1.0),
        ("1970-01-01T00:00:01.5Z", 1.5),
        ("1970-01-01t00:00:01z", 1.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("never", None),
    ],
)
def test_moments_are_seconds_since_the_epoch(text: str, seconds: float | None) -> None:
    assert MOMENT.validate_python(text, context=READING) == seconds


@pytest.mark.parametrize("text", ["*", "https://app.example", "http://localhost:3000", "https://[::1]:8443"])
def test_origins_are_kept(text: str) -> None:
    assert ORIGIN.validate_python(text, context=READING) == text


@pytest.mark.parametrize("text", ["", "app.example", "https://", "https://a.example/", "null", "https://*.example"])
def test_what_is_no_origin(text: str) -> None:
    with pytest.raises(ValidationError):
        ORIGIN.validate_python(text, context=READING)


@pytest.mark.parametrize("text", ["/chat", "/a/{model}/b", "/v1:x", "/a%2Fb"])
def test_paths_are_kept(text: str) -> None:
    assert PATH.validate_python(text, context=READING) == text


@pytest.mark.parametrize("text", ["", "chat", "//a", "/a/../b", "/a?b", "/a b", "/{x}", "/a%2", "/a\n"])
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(ValidationError):
        PATH.validate_python(text, context=READING)


@pytest.mark.parametrize("text", ["gpt-5.6-sol", "qwen/qwen3:free", "*", "claude-*", "*-mini", "a*z"])
def test_model_names(text: str) -> None:
    assert places.read_model_name(text) == text


@pytest.mark.parametrize("text", ["", "a b", "a\n", "é", "a?", "[a]", "a*b*", "x" * 201])
def test_what_is_no_model_name(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        places.read_model_name(text)


@pytest.mark.parametrize("text", ["", "-a", "a b", "a/b", "a\n", "x" * 65])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="must be 1 to 64"):
        places.read_name(text)
