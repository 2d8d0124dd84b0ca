"""The file as a whole: good files, and what is said of bad ones."""

import hashlib
import hmac
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headrace.config.draft import Draft, load, load_state, obtain_secret
from headrace.config.errors import ConfigError
from headrace.config.source import MAX_BYTES
from headrace.model.channel import Auth, AuthForm, BaseUrl, Credential, Route, UsagePolicy
from headrace.model.key import KeyState, StreamOverrides, digest_key, key_digest
from headrace.model.price import Price, Rates
from headrace.model.settings import Address, ClientGone, Commit, Settings, StateSettings, StreamSettings
from headrace.model.wire import WireProtocol
from tests.config.bad import BAD, MODELS
from tests.config.conftest import Write

ENVIRON = {
    "OPENAI_API_KEY": "sk-openai-0000000000000",
    "ANTHROPIC_API_KEY": "sk-anthropic-0000000000",
    "GEMINI_API_KEY": "gemini-000000000000000",
    "HEADRACE_DEV_KEY": "sk-hr-dev-000000000000000",
    "EMPTY": " ",
    "SPACED": "two words",
    "lower": "x" * 20,
    "HEX": "ab" * 32,
    "VALKEY": "valkey://cache",
}

SHORT = """\
channels:
  openai-a: {base_url: https://api.openai.com/v1, protocols: [chat, responses, responses_ws, embeddings], credentials: [{name: main, secret: env:OPENAI_API_KEY}]}
  anthropic-a: {base_url: https://api.anthropic.com/v1, protocols: [messages], credentials: [{name: main, secret: env:ANTHROPIC_API_KEY}]}
  google-a: {base_url: https://generativelanguage.googleapis.com/v1beta, protocols: [gemini], credentials: [{name: main, secret: env:GEMINI_API_KEY}]}
models:
  gpt-5.6-sol: {routes: [{channel: openai-a}], price: {input: 1.25, cached_input: 0.125, output: 10.00}}   # currency units per million tokens
  claude-*: {routes: [{channel: anthropic-a}]}
keys:
  - {name: dev, secret: env:HEADRACE_DEV_KEY}
"""  # noqa: E501  # the contract's own lines

LONG = """\
server:
  listen: ["127.0.0.1:8080", "[::1]:8081", "unix:run/headrace.sock", localhost:0]
  max_body: 1MiB
  bodies: 2GiB
  held: 64KiB
  head_timeout: 200ms
  body_timeout: 1.5s
  idle_timeout: 1h
  drain: 0s
  drain_notice: 2m
state:
  directory: data
  secret: env:HEX
stream:
  keepalive: 5s
  stall: 60s
  early_open_cold: never
channels:
  azure:
    base_url: HTTPS://Azure.Example:8443/openai/
    protocols: [chat]
    credentials:
      - {name: one, secret: "file:one.key", weight: 3}
      - {name: two, secret: literal-secret}
    priority: -1
    auth: header:API-Key
    headers: {X-Team: "a: b", X-Version: 1.10}
    query: {api-version: 2024-10-21}
    paths: {chat.completions: "/deployments/{model}/chat"}
    connect: 3s
    connections: 8
    idle: 1m
    usage: estimate
    expose_limits: true
    home: true
  local: {base_url: "http://[::1]:9000", allow_http: true, protocols: chat, credentials: [{name: a, secret: b}]}
models:
  "*":
    routes: [{channel: azure}]
  small:
    routes:
      - {channel: azure, upstream_model: gpt-5-mini, priority: 1, weight: 2}
      - {channel: local}
    protocols: [chat]
    max_output: 4096
    stall: 30s
    commit: first_output
    client_gone: drain
keys:
  - name: robot
    secret: env:HEADRACE_DEV_KEY
    owner: team@example
    models: [small, "gpt-*"]
    expires: 2027-01-31T18:00:00+01:00
    state: disabled
    origins: https://App.example:3000
    keepalive: 3s
    early_open: never
    early_open_cold: 20s
"""


def loaded(write: Write, text: str) -> Draft:
    return load(write(text), ENVIRON)


def test_the_contracts_short_file_loads(write: Write) -> None:
    draft = loaded(write, SHORT)
    assert [channel.name for channel in draft.channels] == ["openai-a", "anthropic-a", "google-a"]
    assert draft.channels[0].base_url == BaseUrl("https", "api.openai.com", 443, "/v1")
    assert draft.channels[0].credentials == (Credential("main", ENVIRON["OPENAI_API_KEY"]),)
    assert [model.name for model in draft.models] == ["gpt-5.6-sol", "claude-*"]
    assert draft.models[0].protocols is None
    assert draft.models[0].prices == (
        Price(Rates(input=1_250_000_000, cached_input=125_000_000, output=10_000_000_000)),
    )
    assert [(key.name, key.models, key.owner) for key in draft.keys] == [("dev", ("*",), "")]


def test_defaults_are_the_workers(write: Write, tmp_path: Path) -> None:
    settings = loaded(write, SHORT).settings
    assert settings == Settings(state=StateSettings(directory=str(tmp_path / "headrace-data")))


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "server:\nstate:\nstream:\nchannels:\nmodels:\nkeys:\n"])
def test_an_empty_file_loads_with_warnings(write: Write, text: str) -> None:
    draft = loaded(write, text)
    assert (draft.channels, draft.models, draft.keys) == ((), (), ())
    assert len(draft.warnings) == 3


def test_a_long_file_arrives_whole(write: Write, tmp_path: Path) -> None:
    (tmp_path / "one.key").write_text("from-file\n")
    draft = loaded(write, LONG)
    server = draft.settings.server
    assert server.listen == (
        Address("127.0.0.1", 8080),
        Address("::1", 8081),
        Address(path=str(tmp_path / "run/headrace.sock")),
        Address("localhost", 0),
    )
    assert (server.max_body, server.bodies, server.held) == (2**20, 2**31, 2**16)
    assert (server.head_timeout, server.body_timeout, server.idle_timeout) == (0.2, 1.5, 3600.0)
    assert (server.drain, server.drain_notice) == (0.0, 120.0)
    assert draft.settings.state == StateSettings(str(tmp_path / "data"), bytes.fromhex("ab" * 32))
    assert draft.settings.stream == StreamSettings(keepalive=5.0, stall=60.0, early_open_cold=None)


def test_a_long_files_catalogue_arrives_whole(write: Write, tmp_path: Path) -> None:
    (tmp_path / "one.key").write_text("from-file\n")
    draft = loaded(write, LONG)
    azure, local = draft.channels
    assert azure.base_url == BaseUrl("https", "azure.example", 8443, "/openai")
    assert azure.credentials == (Credential("one", "from-file", 3), Credential("two", "literal-secret", 1))
    assert azure.auth == Auth(AuthForm.HEADER, "api-key")
    assert azure.headers == (("x-team", "a: b"), ("x-version", "1.10"))
    assert azure.query == (("api-version", "2024-10-21"),)
    assert azure.paths == (("chat.completions", "/deployments/{model}/chat"),)
    assert (azure.priority, azure.connect, azure.connections, azure.idle) == (-1, 3.0, 8, 60.0)
    assert (azure.usage, azure.expose_limits, azure.home) == (UsagePolicy.ESTIMATE, True, True)
    assert (local.base_url, local.allow_http) == (BaseUrl("http", "::1", 9000, ""), True)
    pattern, small = draft.models
    assert pattern.is_pattern
    assert pattern.stream == draft.settings.stream
    assert small.routes == (Route("azure", "gpt-5-mini", 1, 2), Route("local"))
    assert (small.protocols, small.max_output) == (frozenset({WireProtocol.CHAT}), 4096)
    assert (small.stream.keepalive, small.stream.stall) == (5.0, 30.0)
    assert (small.stream.commit, small.stream.client_gone) == (Commit.FIRST_OUTPUT, ClientGone.DRAIN)
    (key,) = draft.keys
    assert (key.owner, key.models, key.state) == ("team@example", ("small", "gpt-*"), KeyState.DISABLED)
    assert key.expires == datetime(2027, 1, 31, 17, tzinfo=UTC).timestamp()
    assert key.origins == ("https://app.example:3000",)
    assert key.overrides == StreamOverrides(keepalive=3.0, early_open_never=True, early_open_cold=20.0)


# ---------------------------------------------------------------------------------------------------------- bad files


@pytest.mark.parametrize(("text", "path", "part"), BAD, ids=[f"{n}-{case[1]}" for n, case in enumerate(BAD)])
def test_a_bad_file_has_its_fault_named(write: Write, text: str, path: str, part: str) -> None:
    expected = text[: text.index("#<")].count("\n") + 1
    with pytest.raises(ConfigError) as caught:
        loaded(write, text.replace(" #<", ""))
    faults = caught.value.faults
    named = [(fault.line, fault.path) for fault in faults]
    assert (expected, path) in named, caught.value
    assert part in next(fault.message for fault in faults if (fault.line, fault.path) == (expected, path))
    required = [fault for fault in faults if fault.message == "is required"]
    assert len(faults) - max(0, len(required) - 1) == 1, f"one mistake, more than one fault: {caught.value}"


def test_all_faults_are_reported_at_once_in_the_order_of_the_lines(write: Write) -> None:
    text = """\
server: {drain: 5, lisen: x}
channels:
  a: {base_url: http://a.example, protocols: [chat], credentials: [{name: m, secret: env:UNSET}]}
  b: {base_url: http://b.example, protocols: [chats, nothing], credentials: [{name: m, secret: s}]}
  c: {base_url: http://c.example, protocols: [chat], credentials: [{name: m, secret: s}]}
models:
  m: {routes: [{channel: a}, {channel: d}], stall: 400s}
keys:
  - {name: k, secret: env:UNSET}
  - {name: k, secret: s}
  - {name: k, secret: s}
unknown: 1
"""
    with pytest.raises(ConfigError) as caught:
        loaded(write, text)
    assert [(fault.line, fault.path) for fault in caught.value.faults] == [
        (1, "server.drain"),
        (1, "server.lisen"),
        (3, "channels.a.credentials[0].secret"),
        (4, "channels.b.protocols[0]"),
        (4, "channels.b.protocols[1]"),
        (5, "channels.c.base_url"),
        (7, "models.m.routes[1].channel"),
        (7, "models.m"),
        (9, "keys[0].secret"),
        (11, "keys[2].name"),
        (11, "keys[2].secret"),
        (12, "unknown"),
    ]


def test_an_error_reads_as_a_place_and_a_sentence(write: Write) -> None:
    path = write("stream:\n  stall: 5\n")
    with pytest.raises(ConfigError) as caught:
        load(path, {})
    assert str(caught.value) == f"{path}:2: stream.stall: needs a unit: 5ms, 5s, 5m or 5h"


def test_a_model_is_not_blamed_for_limits_that_are_the_streams(write: Write) -> None:
    text = f"stream: {{stall: 300s}}\n{MODELS}  m: {{routes: [{{channel: a}}]}}\n"
    with pytest.raises(ConfigError) as caught:
        loaded(write, text)
    assert [fault.path for fault in caught.value.faults] == ["stream"]


def test_a_model_may_mend_what_would_not_nest_alone(write: Write) -> None:
    text = f"stream: {{total: 2h}}\n{MODELS}  m: {{routes: [{{channel: a}}], reply: 90m}}\n"
    assert loaded(write, text).models[0].stream.reply == 5400.0


def test_no_secret_is_told(write: Write, tmp_path: Path) -> None:
    mark = "TOPSECRET"
    (tmp_path / "a.key").write_text(f"{mark} {mark}")
    text = f"""\
stream: {{commit: {mark}, keepalive: {mark}, max_event: {mark}, max_attempts: {mark}}}
state: {{secret: {mark}}}
channels:
  a:
    base_url: https://{mark}@a.example
    protocols: [{mark}]
    credentials:
      - {{name: "{mark} {mark}", secret: "{mark} {mark}", "secret {mark}": x, weight: {mark}}}
      - {{name: m, secret: file:a.key}}
      - {{name: m, secret: "env:{mark.lower()}"}}
      - {{name: m, secret: env:x-{mark}}}
    auth: {mark}
    headers: {{x: "\\r{mark}"}}
keys:
  - {{name: "{mark}!", secret: "{mark} x", expires: {mark}, origins: {mark}, state: {mark}}}
"""
    with pytest.raises(ConfigError) as caught:
        loaded(write, text)
    assert len(caught.value.faults) > 15
    assert mark.lower() not in str(caught.value).lower()
    assert mark.lower() not in repr(caught.value).lower()
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_syntax_error_quotes_no_line(write: Write) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(write, "keys:\n  - {name: k, secret: TOPSECRET\n  - x: [\n")
    assert "TOPSECRET" not in str(caught.value)
    assert caught.value.__context__ is None


def test_reprs_hold_no_secret(write: Write, tmp_path: Path) -> None:
    (tmp_path / "one.key").write_text("from-file\n")
    draft = loaded(write, LONG)
    shown = repr(draft) + repr(draft.resolve(b"\xfe" * 32))
    for secret in (*ENVIRON.values(), "literal-secret", "from-file", "\\xfe" * 4, "\\xab" * 4):
        assert not secret.strip() or secret not in shown


# -------------------------------------------------------------------------------------------------- files that are none


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape("gone.yaml: cannot be read: No such file or directory")):
        load(tmp_path / "gone.yaml", {})


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path, {})


def test_text_must_be_utf8(tmp_path: Path) -> None:
    path = tmp_path / "headrace.yaml"
    path.write_bytes(b"server: {}\n# caf\xe9\n")
    with pytest.raises(ConfigError, match="yaml:2: is not UTF-8 text"):
        load(path, {})


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "headrace.yaml"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="is larger than 8 MiB"):
        load(path, {})


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "headrace.yaml"
    path.write_bytes(b"\xef\xbb\xbfserver: {drain: 1s}\n")
    assert load(path, {}).settings.server.drain == 1.0


# -------------------------------------------------------------------------------------------------------------- secrets


def test_resolving_makes_digests(write: Write) -> None:
    loaded_file = loaded(write, SHORT).resolve(bytes(range(32)))
    (key,) = loaded_file.catalogue.keys
    assert key.digest == key_digest(digest_key(bytes(range(32))), ENVIRON["HEADRACE_DEV_KEY"].encode())
    assert len(key.digest) == 32
    assert loaded_file.settings.state.secret == bytes(range(32))
    assert [model.name for model in loaded_file.catalogue.models] == ["gpt-5.6-sol", "claude-*"]
    assert len(loaded_file.catalogue.channels) == 3


def test_digests_are_hmac_under_an_hkdf_key() -> None:
    secret = bytes(32)
    extracted = hmac.new(b"headrace", secret, hashlib.sha256).digest()
    expanded = hmac.new(extracted, b"key digest 1\x01", hashlib.sha256).digest()
    assert digest_key(secret) == expanded
    assert key_digest(expanded, b"sk-hr-x") == hmac.new(expanded, b"sk-hr-x", hashlib.sha256).digest()
    # What is stored stays valid: these bytes never change.
    assert digest_key(secret).hex()[:16] == "15c5b620fc26e215"


def test_another_secret_makes_other_digests(write: Write) -> None:
    draft = loaded(write, SHORT)
    assert draft.resolve(b"a" * 32).catalogue.keys[0].digest != draft.resolve(b"b" * 32).catalogue.keys[0].digest


def test_a_secret_of_another_length_is_a_mistake_of_the_caller(write: Write) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        loaded(write, SHORT).resolve(b"short")


def test_loading_writes_nothing(write: Write, tmp_path: Path) -> None:
    loaded(write, SHORT)
    assert [path.name for path in tmp_path.iterdir()] == ["headrace.yaml"]


def test_the_secret_is_made_once_in_the_directory(write: Write, tmp_path: Path) -> None:
    draft = loaded(write, SHORT)
    secret = obtain_secret(draft)
    assert (tmp_path / "headrace-data" / "secret").read_bytes() == secret
    assert obtain_secret(loaded(write, SHORT)) == secret


def test_a_named_secret_is_used_and_nothing_is_made(write: Write, tmp_path: Path) -> None:
    draft = loaded(write, "state: {secret: env:HEX}\n")
    assert obtain_secret(draft) == bytes.fromhex("ab" * 32)
    assert not (tmp_path / "headrace-data").exists()


# ------------------------------------------------------------------------------------------------- the state alone


def test_the_state_needs_nothing_of_the_rest(write: Write, tmp_path: Path) -> None:
    text = """\
state: {directory: data, secret: env:UNSET, checkpoint: 3s}
channels: {a: {credentials: [{name: m, secret: env:UNSET}]}}
server: {listen: nowhere, tls: {key: gone.pem}}
keys: 5
"""
    state = load_state(write(text), {})
    assert state == StateSettings(str(tmp_path / "data"), checkpoint=3.0)


def test_the_databases_address_is_needed(write: Write) -> None:
    path = write("state: {database: env:DATABASE}\n")
    assert load_state(path, {"DATABASE": "postgresql://db/x"}).database == "postgresql://db/x"
    with pytest.raises(ConfigError, match=r":1: state\.database: the environment variable DATABASE is not set"):
        load_state(path, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("state: {directry: x}", ":1: state.directry: unknown option (did you mean directory?)"),
        ("state: 5", ":1: state: must be a mapping"),
        ("stream: {}\nstate: [", "not valid YAML"),
    ],
)
def test_a_bad_state_is_said(write: Write, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_state(write(text), {})


def test_without_a_section_the_state_is_the_usual(write: Write, tmp_path: Path) -> None:
    assert load_state(write(SHORT), {}) == load(write(SHORT), ENVIRON).settings.state
