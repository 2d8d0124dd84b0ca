"""What a reload did, told in lines."""

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.config.changes import Changes, changes, refused
from headrace.config.draft import Loaded, load
from headrace.config.errors import ConfigError, Fault
from headrace.config.options.group import is_group, written
from headrace.config.options.settings import ServerOptions, StateOptions, StreamOptions
from headrace.model.catalogue import CatalogueParts
from tests.config.conftest import Write
from tests.config.options.whole import SECRETS, TEXT, load_whole

SECRET = bytes.fromhex("ab" * 32)


@pytest.fixture
def whole(tmp_path: Path) -> Loaded:
    return load_whole(tmp_path).resolve(SECRET)


def edited(folder: Path, *edits: tuple[str, str], secret: bytes = SECRET) -> Loaded:
    text = TEXT
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        text = text.replace(old, new)
    return load_whole(folder, text).resolve(secret)


def test_nothing_has_changed(whole: Loaded) -> None:
    assert changes(whole, whole) == Changes((), ())


LINES = [
    ("  stall: 100s\n", "  stall: 95s\n", "stream.stall: 100s → 95s"),
    ("  early_open: 8s\n", "  early_open: never\n", "stream.early_open: 8s → never"),
    ("  wait: 4s\n", "", "limits.wait: 4s → 5s"),
    # channels
    ("https://a.example/v1", "https://b.example/v1", "channel first: base_url: https://a.example/v1 → https://b.example/v1"),
    ("[chat, responses]", "[chat]", "channel first: protocols: chat, responses → chat"),
    ("    priority: 1\n", "    priority: -1\n", "channel first: priority: 1 → -1"),
    ("header:x-key", "bearer", "channel first: auth: header:x-key → bearer"),
    ("{x-team: a-header-may-hold-one}", "{x-team: another}", "channel first: headers.x-team: changed"),
    ("{x-team: a-header-may-hold-one}", "{}", "channel first: headers.x-team: removed"),
    ("{x-team: a-header-may-hold-one}", "{x-team: a-header-may-hold-one, x-new: y}",
     "channel first: headers.x-new: added"),
    ('{api-version: "2027-01-01"}', "{api-version: z}", "channel first: query.api-version: changed"),
    ('"/deployments/{model}/chat"', "/chat",
     "channel first: paths.chat.completions: /deployments/{model}/chat → /chat"),
    ("    connections: 100\n", "", "channel first: connections: 100 → 0 (no bound)"),
    ("pw-of-the-proxy", "pw2", "channel first: proxy: changed"),
    ("    ca: cert.pem\n", "", "channel first: ca: CERT → the system's"),
    ("bind_ttl: 24h", "bind_ttl: 36h", "channel first: bind_ttl: 24h → 36h"),
    ("        weight: 2\n", "        weight: 5\n", "channel first: credential main: weight: 2 → 5"),
    ("      - name: main\n        secret: env:UPSTREAM\n", "      - name: main\n        secret: plain\n",
     "channel first: credential main: secret: changed"),
    ("concurrent: 50}\n    priority", "concurrent: 60}\n    priority",
     "channel first: credential main: limits.concurrent: 50 → 60"),
    # models
    ("weight: 3}", "weight: 4}", "model big: route first (big-2027): weight: 3 → 4"),
    ("input: 7, cached_input: 0.7, cache_write: {1h: 14}, output: 70, reasoning: 71, audio_input: 72,"
     " audio_output: 73,\n           image: 74, image_output: 75, per_call: 0.1, calls: {grounding: 0.035},\n",
     "input: 7, cached_input: 0.7, cache_write: {1h: 14}, output: 70, reasoning: 71, audio_input: 72,"
     " audio_output: 73,\n           image: 74, image_output: 75, per_call: 0.2, calls: {grounding: 0.035},\n",
     "model big: route first (big-2027): price from 2027-03-01T00:00:00Z: per_call: 0.1 → 0.2"),
    ("    protocols: [chat]\n", "", "model big: protocols: chat → what its routes speak"),
    ("    max_output: 32000\n", "", "model big: max_output: 32000 → none"),
    ("    stall: 90s\n", "    stall: 80s\n", "model big: stall: 90s → 80s"),
    ("    stall: 90s\n", "", "model big: stall: 90s → 100s"),
    ("input: 1.25\n", "input: 1.3\n", "model big: price from 2027-01-31T18:00:00Z: input: 1.25 → 1.3"),
    ("5m: 1.5625, ", "", "model big: price from 2027-01-31T18:00:00Z: cache_write.5m: 1.5625 → none"),
    ("calls: {web_search: 0.01}", "calls: {web_search: 0.02}",
     "model big: price from 2027-01-31T18:00:00Z: calls.web_search: 0.01 → 0.02"),
    ("          output: 5\n", "          output: 6\n",
     "model big: price from 2027-01-31T18:00:00Z: tiers.flex.output: 5 → 6"),
    ("above: 200000", "above: 300000",
     "model big: price from 2027-01-31T18:00:00Z: long_context.above: 200000 → 300000"),
    ("output: 1.5, reasoning", "output: 1.75, reasoning",
     "model big: price from 2027-01-31T18:00:00Z: long_context.factors.output: 1.5 → 1.75"),
    ("websocket_bridge: true", "websocket_bridge: false", "model big: websocket_bridge: true → false"),
    # keys and owners
    ("env:KEY", "a-secret-of-its-own-0123", "key robot: secret: changed"),
    ("    owner: team\n", "", "key robot: owner: team → the key itself"),
    ('[big, "gpt-*"]', "[big]", "key robot: models: big, gpt-* → big"),
    ("requests_per_minute: 60,", "", "key robot: limits.requests_per_minute: 60 → none"),
    ("amount: 100.50", "amount: 0.000000001", "key robot: budget.amount: 100.5 → 0.000000001"),
    ("window: day, exceeded", "exceeded", "key robot: budget.window: day → month"),
    ("    multiplier: 1.2\n", "", "key robot: multiplier: 1.2 → 1"),
    ("expires: 2027-01-31\n", "expires: 2027-02-01\n",
     "key robot: expires: 2027-01-31T00:00:00Z → 2027-02-01T00:00:00Z"),
    ("expires: 2027-01-31\n", "\n", "key robot: expires: 2027-01-31T00:00:00Z → never"),
    ('project: "night run", ', "", "key robot: labels.project: night run → none"),
    ("192.0.2.7, ", "", "key robot: ips: 192.0.2.7/32, 2001:db8::/32 → 2001:db8::/32"),
    ("state: disabled", "state: active", "key robot: state: disabled → active"),
    ("    keepalive: 6s\n", "", "key robot: keepalive: 6s → none"),
    ("    early_open: 5s\n", "    early_open: never\n", "key robot: early_open: 5s → never"),
    ("window: total, ", "", "owner team: budget.window: total → month"),
    ("multiplier: 0.9\n", "multiplier: 0.8\n", "owner team: multiplier: 0.9 → 0.8"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line"), LINES, ids=[case[2] for case in LINES])
def test_one_change_is_one_line(whole: Loaded, tmp_path: Path, old: str, new: str, line: str) -> None:
    said = changes(whole, edited(tmp_path, (old, new)))
    assert (said.done, said.restart) == ((line.replace("CERT", str(tmp_path / "cert.pem")),), ())


def test_what_came_and_went(whole: Loaded, write: Write) -> None:
    empty = replace(whole, catalogue=CatalogueParts())
    objects = ["channel first", "model big", "owner team", "key robot"]
    assert changes(empty, whole).done == tuple(f"{one}: added" for one in objects)
    assert changes(whole, empty).done == tuple(f"{one}: removed" for one in objects)


def test_credentials_and_routes_come_and_go_by_name(whole: Loaded, tmp_path: Path) -> None:
    new = edited(
        tmp_path, ("- name: main\n", "- name: other\n"), ("upstream_model: big-2027", "upstream_model: big-2028")
    )
    assert changes(whole, new).done == (
        "channel first: credential other: added",
        "channel first: credential main: removed",
        "model big: route first (big-2028): added",
        "model big: route first (big-2027): removed",
    )


def test_a_budget_that_is_taken_away(whole: Loaded, tmp_path: Path) -> None:
    (old,) = [line for line in TEXT.splitlines() if "amount: 100.50" in line]
    said = changes(whole, edited(tmp_path, (f"{old}\n", ""))).done
    assert said[0] == "key robot: budget.amount: 100.5 → none"
    assert len(said) == 4


def test_what_a_model_or_key_inherits_is_told_once(write: Write) -> None:
    text = """\
stream: {stall: 100s}
limits: {wait: 4s}
channels: {a: {base_url: https://a.example, protocols: chat, credentials: [{name: m, secret: sssssssssssss}]}}
models:
  m: {routes: [{channel: a}]}
  n: {routes: [{channel: a}], stall: 90s}
keys: [{name: k, secret: kkkkkkkkkkkkkkkkkkkkkkk}]
owners: [{name: o}]
"""
    old = load(write(text), {}).resolve(SECRET)
    new = load(write(text.replace("stall: 100s", "stall: 80s").replace("wait: 4s", "wait: 3s")), {}).resolve(SECRET)
    assert changes(old, new).done == ("stream.stall: 100s → 80s", "limits.wait: 4s → 3s")


def test_settings_of_server_and_state_wait_for_a_restart(whole: Loaded, write: Write) -> None:
    plain = load(write("server: {}\n"), {}).resolve(b"other secret of thirty-two bytes")
    said = changes(plain, replace(plain, settings=replace(whole.settings, stream=plain.settings.stream)))
    assert said.done == ()
    paths = [line.split(": ")[0] for line in said.restart]
    expected = [
        *(f"server.{name}" for name, field in written(ServerOptions).items() if not is_group(field)),
        "server.tls.cert",
        "server.tls.key",
        "server.cors.origins",
        *(f"state.{name}" for name in written(StateOptions)),
    ]
    assert sorted(paths) == sorted(expected)
    assert "server.workers: 1 → 4" in said.restart
    assert "state.secret: changed" in said.restart
    assert "state.database: changed" in said.restart
    assert said.lines == tuple(f"{line}; takes effect at the next start" for line in said.restart)


def test_a_restart_is_asked_for_until_there_was_one(whole: Loaded, tmp_path: Path) -> None:
    started = whole.settings
    second = edited(tmp_path, ("drain: 5m", "drain: 6m"))
    third = edited(tmp_path, ("drain: 5m", "drain: 6m"), ("    priority: 1\n", "    priority: 2\n"))
    assert changes(whole, second, started).restart == ("server.drain: 5m → 6m",)
    assert changes(second, third, started) == Changes(("channel first: priority: 1 → 2",), ("server.drain: 5m → 6m",))
    assert changes(second, whole, started) == Changes((), ())


def test_every_stream_option_is_told(whole: Loaded, write: Write) -> None:
    plain = load(write("server: {}\n"), {}).resolve(SECRET)
    said = changes(plain, replace(plain, settings=replace(plain.settings, stream=whole.settings.stream))).done
    assert [line.split(": ")[0] for line in said] == [f"stream.{name}" for name in StreamOptions.model_fields]


def test_no_secret_is_told(whole: Loaded, write: Write, tmp_path: Path) -> None:
    plain = load(write("server: {}\n"), {}).resolve(b"other secret of thirty-two bytes")
    other = edited(
        tmp_path,
        ("env:UPSTREAM", "sk-other-upstream"),
        ("env:KEY", "sk-other-key-0123456789"),
        ("pw-of-the-database", "pw-other"),
        ("pw-of-the-valkey", "pw-other"),
        ("pw-of-the-proxy", "pw-other"),
        ("a-header-may-hold-one", "pw-other"),
    )
    texts = [line for a, b in ((plain, whole), (whole, plain), (whole, other)) for line in changes(a, b).lines]
    assert any("secret: changed" in line for line in texts)
    for secret in (*SECRETS, "sk-other", "pw-other", SECRET.hex()):
        assert not [line for line in texts if secret in line]


def test_a_bad_file_changed_nothing() -> None:
    error = ConfigError("headrace.yaml", (Fault(3, "server.drain", "needs a unit"), Fault(5, "keys", "must be a list")))
    assert refused(error) == (
        "headrace.yaml:3: server.drain: needs a unit",
        "headrace.yaml:5: keys: must be a list",
        "headrace.yaml: nothing was changed",
    )
