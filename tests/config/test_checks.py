"""What only two options together can have wrong; most of it is told as a file in bad.py."""

import pytest

from headrace.config.checks import CONNECTION_HEADERS, CREDENTIAL_HEADERS, check
from headrace.config.draft import load
from headrace.config.errors import ConfigError
from headrace.config.forms import Reading
from headrace.config.sections import read_sections
from headrace.config.source import read
from tests.config.conftest import Write

# A certificate of nobody, for no purpose, until 2126.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBdTCCARugAwIBAgIUfRIQybx9aSO8QvZndj0Jl8zEaC4wCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMzAyMDQ5MzJaGA8yMTI2MTEwNjIwNDkz
MlowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABGwO
st3wJHgh9JdArvNWxKHhwuyEqQR+2d7YAnqQ8KMdAPIvIeDbErR0JelsZSIGrEbD
HLPbMaypy4qNH2mHTJKjUzBRMB0GA1UdDgQWBBREJiVFtSmVcVJbv49umlNwTe1z
QjAfBgNVHSMEGDAWgBREJiVFtSmVcVJbv49umlNwTe1zQjAPBgNVHRMBAf8EBTAD
AQH/MAoGCCqGSM49BAMCA0gAMEUCIQCdYVP24SyvckxNwbmUKoJM9zGP80MbVaNj
20qrOa/XnQIgEIXBWtxl5fk1JTRO8p5+J4luOIJ6ZuyjnN7ceUO9pFg=
-----END CERTIFICATE-----
"""


def channel(base_url: str, rest: str) -> str:
    credentials = "credentials: [{name: m, secret: s}]"
    return f"channels:\n  a: {{base_url: '{base_url}', protocols: chat, {credentials}, {rest}}}\n"


def test_authorities_are_for_tls(write: Write) -> None:
    path = write(channel("https://a.example", "ca: ca.pem"))
    path.with_name("ca.pem").write_text(CERTIFICATE)
    assert load(path, {}).channels[0].ca == str(path.with_name("ca.pem"))
    path = write(channel("http://a.example", "allow_http: true, ca: ca.pem"))
    with pytest.raises(ConfigError, match=r":2: channels\.a\.ca: has no effect on http"):
        load(path, {})


@pytest.mark.parametrize("name", sorted(CREDENTIAL_HEADERS | CONNECTION_HEADERS))
def test_headers_that_the_gateway_sets_cannot_be_set_here(write: Write, name: str) -> None:
    with pytest.raises(ConfigError, match=rf":2: channels\.a\.headers\.{name.title()}: (holds|belongs)"):
        load(write(channel("https://a.example", f"headers: {{{name.title()}: x}}")), {})


def test_the_field_that_holds_the_credential_is_taken(write: Write) -> None:
    with pytest.raises(ConfigError, match=r"channels\.a\.query\.token: holds a credential"):
        load(write(channel("https://a.example", "auth: query:token, query: {token: x}")), {})
    assert load(write(channel("https://a.example", "auth: query:token, query: {key: x}")), {}).channels[0].query


def test_a_system_port_may_be_asked_for_twice(write: Write) -> None:
    assert len(load(write("server: {listen: [a:0, a:0]}"), {}).settings.server.listen) == 2


def test_bad_sections_are_passed_over(write: Write) -> None:
    text = """\
server: {drain: x}
stream: {stall: x}
channels: {a: {}, b: {base_url: http://b.example, protocols: chat, credentials: [{name: m, secret: s}]}}
models:
  m: {routes: [{channel: a}], protocols: [messages], total: 1s}
  n: {routes: []}
keys: [{name: k}, {name: k, secret: s}]
"""
    sections, faults = read_sections(read(text)[0], Reading(write(text).parent, {}))
    assert len(faults) == 7
    assert [(fault.line, fault.path) for fault in check(sections)] == [(3, "channels.b.base_url")]
