"""Objects of the database beside the file's: who wins, what is left out, and that one breaks nothing else."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.config.draft import Loaded, load
from headrace.config.objects import Merged, merge
from headrace.config.options.group import written
from headrace.config.options.objects import (
    ChannelOptions,
    CredentialOptions,
    ModelOptions,
    OwnerOptions,
    RouteOptions,
    StoredKeyOptions,
    StoredPriceOptions,
)
from headrace.config.options.spending import PriceOptions
from headrace.model.catalogue import CatalogueParts, ObjectKind, StoredObject
from headrace.model.channel import Credential
from headrace.model.key import Former, digest_key, key_digest
from headrace.model.limits import Budget, Limits
from headrace.model.price import Price, Rates
from tests.config.conftest import Write
from tests.config.options.whole import load_whole

SECRET = bytes(range(32))
DIGEST = "ab" * 32
FILE = """\
stream: {stall: 60s}
limits: {wait: 3s}
channels:
  file: {base_url: https://a.example, protocols: [chat], credentials: [{name: m, secret: from-the-file}]}
models:
  from-file: {routes: [{channel: file}]}
keys:
  - {name: dev, secret: sk-hr-dev-00000000000000}
owners:
  - {name: team}
"""
CHANNEL = {"base_url": "https://b.example", "protocols": ["chat"], "credentials": [{"name": "m", "secret": "in-clear"}]}


def stored(kind: str, name: str, value: object = None) -> StoredObject:
    """As the database has it; `value` is its document, or what that says."""
    return StoredObject(ObjectKind(kind), name, value if isinstance(value, str) else json.dumps(value or {}))


@pytest.fixture
def loaded(write: Write) -> Loaded:
    return load(write(FILE), {"HOME": "x"}).resolve(SECRET)


def broken(merged: Merged) -> list[str]:
    return [str(one) for one in merged.broken]


def names(parts: CatalogueParts) -> list[list[str]]:
    return [[one.name for one in many] for many in (parts.channels, parts.models, parts.keys, parts.owners)]


def test_without_objects_it_is_the_file(loaded: Loaded) -> None:
    assert merge(loaded, []) == Merged(loaded, (), (), ())


def test_good_objects_stand_behind_the_files(loaded: Loaded) -> None:
    merged = merge(
        loaded,
        [
            stored("model", "m", {"routes": [{"channel": "b"}, {"channel": "file", "weight": 3}], "reply": "5m"}),
            stored("channel", "b", CHANNEL | {"priority": -2, "home": True}),
            stored("key", "k", {"digest": DIGEST, "owner": "people", "models": "m", "expires": None, "stop": True}),
            stored("key", "l", {"name": "l", "secret": "sk-hr-l-000000000000000"}),
            stored("owner", "people", {"name": "people"}),
        ],
    )
    assert (merged.shadowed, merged.broken, merged.warnings) == ((), (), ())
    parts = merged.loaded.catalogue
    assert names(parts) == [["file", "b"], ["from-file", "m"], ["dev", "k", "l"], ["team", "people"]]
    assert parts.channels[1].credentials == (Credential("m", "in-clear"),)
    assert (parts.channels[1].priority, parts.channels[1].home) == (-2, True)
    assert [route.weight for route in parts.models[1].routes] == [1, 3]
    assert (parts.models[1].stream.stall, parts.models[1].stream.reply) == (60.0, 300.0), "under the file's section"
    assert parts.keys[1].digest == bytes.fromhex(DIGEST)
    assert parts.keys[2].digest == key_digest(digest_key(SECRET), b"sk-hr-l-000000000000000")
    assert [key.stop for key in parts.keys] == [False, True, False]
    assert (parts.keys[1].limits.wait, parts.owners[1].limits.wait) == (3.0, 3.0)
    assert merged.loaded.settings == loaded.settings


def test_the_files_own_objects_could_come_from_a_database(tmp_path: Path) -> None:
    """Every option of an object, in the same shape, arrives as the same value."""
    whole = load_whole(tmp_path).resolve(SECRET)
    one = stored(
        "key",
        "robot",
        {
            "digest": whole.catalogue.keys[0].digest.hex(),
            "owner": "team",
            "models": ["big", "gpt-*"],
            "limits": {
                "requests_per_minute": 60, "tokens_per_minute": 200000, "concurrent": 5,
                "wait": "1s", "upstream_wait": "10s",
            },
            "budget": {"amount": 100.50, "window": "day", "exceeded": "stop", "status": 429},
            "multiplier": 1.2,
            "expires": "2027-01-31",
            "labels": {"project": "night run", "stage": "test"},
            "origins": ["https://app.example"],
            "ips": ["192.0.2.7", "2001:db8::/32"],
            "state": "disabled",
            "keepalive": "6s",
            "early_open": "5s",
            "early_open_cold": "never",
        },
    )  # fmt: skip
    empty = Loaded(whole.settings, CatalogueParts(), (), whole.ground)
    assert merge(empty, [one]).loaded.catalogue.keys == whole.catalogue.keys


def test_money_is_exact_in_every_spelling(loaded: Loaded) -> None:
    for text in ("0.1", '"0.1"', "1e-1", "0.10"):
        document = f'{{"routes": [{{"channel": "file"}}], "price": {{"input": {text}}}}}'
        assert merge(loaded, [stored("model", "m", document)]).loaded.catalogue.models[1].prices == (
            Price(Rates(input=100_000_000)),
        )
    amount = f'{{"digest": "{DIGEST}", "budget": {{"amount": 123456789.123456789}}}}'
    assert merge(loaded, [stored("key", "k", amount)]).loaded.catalogue.keys[1].budget == Budget(123456789123456789)


def test_a_stored_price_is_for_the_model_of_its_name(loaded: Loaded) -> None:
    merged = merge(
        loaded,
        [
            stored("price", "from-file", {"price": {"input": "0.1"}}),
            stored("price", "gpt-*", {"price": [{"from": "2027-01-01", "input": 2}, {"input": 1}]}),
            stored("model", "gpt-*", {"routes": [{"channel": "file"}]}),
        ],
    )
    assert (merged.shadowed, merged.broken, merged.warnings) == ((), (), ())
    assert {one.name: one.prices for one in merged.loaded.catalogue.models} == {
        "from-file": (Price(Rates(input=100_000_000)),),
        "gpt-*": (Price(Rates(input=10**9)), Price(Rates(input=2 * 10**9), since=1798761600.0)),
    }


def test_a_models_own_price_wins(write: Write) -> None:
    own = FILE.replace("[{channel: file}]", "[{channel: file}], price: {input: 7}")
    loaded = load(write(own), {}).resolve(SECRET)
    document = {"routes": [{"channel": "file"}], "price": {"input": 8}}
    prices = [stored("price", name, {"price": {"input": 1}}) for name in ("from-file", "m")]
    merged = merge(loaded, [stored("model", "m", document), *prices])
    assert [one.prices[0].rates.input for one in merged.loaded.catalogue.models] == [7 * 10**9, 8 * 10**9]
    assert [str(one) for one in merged.shadowed] == [
        f"price {name}: the model has a price of its own, and that counts" for name in ("from-file", "m")
    ]
    assert merged.broken == ()


def test_prices_of_no_model_are_told_in_one_sentence(loaded: Loaded) -> None:
    prices = [stored("price", f"x{n}", {"price": {"input": 1}}) for n in range(5)]
    assert merge(loaded, prices[:2]).warnings == ("prices of the database for no model of this name: x0, x1",)
    merged = merge(loaded, prices)
    assert merged.warnings == ("prices of the database for no model of this name: x0, x1, x2 and 2 more",)
    assert merged.loaded == loaded


@pytest.mark.parametrize(
    ("kind", "name"), [("channel", "file"), ("model", "from-file"), ("key", "dev"), ("owner", "team")]
)
def test_the_file_wins(loaded: Loaded, kind: str, name: str) -> None:
    merged = merge(loaded, [stored(kind, name, {"anything": 1})])
    assert merged.loaded == loaded
    assert [str(one) for one in merged.shadowed] == [
        f"{kind} {name}: the file has one of this name, and that is served"
    ]
    assert merged.broken == ()


def test_an_object_can_be_kept(loaded: Loaded) -> None:
    one = stored("channel", "b", CHANNEL)
    assert "in-clear" not in repr(one)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=StoredObject) == one


def test_names_are_of_their_kind(loaded: Loaded) -> None:
    assert not merge(loaded, [stored("owner", "dev")]).shadowed


BROKEN: list[tuple[StoredObject, str]] = [
    (stored("channel", "c", CHANNEL | {"base_url": "http://b.example"}), "base_url: is http, so the credential"),
    (stored("channel", "c", {"protocols": "chat"}), "base_url: is required; credentials: is required"),
    (stored("channel", "c", CHANNEL | {"priorty": 1}), "priorty: unknown option (did you mean priority?)"),
    (stored("channel", "c", CHANNEL | {"headers": {"Host": "x"}}), "headers.Host: belongs to the connection"),
    (stored("channel", "c", CHANNEL | {"headers": {"x": "a\nb"}}), "headers.x: a header's value must be ASCII"),
    (stored("channel", "a b", CHANNEL), "must be 1 to 64 letters"),
    (stored("channel", "c", "{"), "is not JSON"),
    (stored("channel", "c", "[]"), "must be an object"),
    (stored("channel", "c", ""), "is not JSON"),
    (stored("channel", "c", CHANNEL | {"ca": "/gone.pem"}), "ca: file /gone.pem does not exist, or is no regular file"),
    (stored("channel", "c", CHANNEL | {"ca": "/dev/zero"}), "is no regular file"),
    (
        stored("model", "m", {"routes": [{"channel": "filed"}]}),
        "routes[0].channel: no such channel (did you mean file?",
    ),
    (stored("model", "m", {"routes": [{"channel": "file"}], "protocols": "messages"}), "no route of the model speaks"),
    (stored("model", "m", {"routes": [{"channel": "file"}], "stall": "400s"}), "the time limits do not nest"),
    (stored("model", "m", {"routes": [{"channel": "file"}], "price": {}}), "price: names no price"),
    (stored("model", "m", {"routes": [{"channel": "file"}], "price": {"input": -1}}), "price.input: must be a price"),
    (stored("model", "m", {}), "routes: is required"),
    (stored("model", "a*b*", {"routes": [{"channel": "file"}]}), "at most one *"),
    (stored("key", "k"), "has neither digest nor secret"),
    (stored("key", "k", {"digest": "ab"}), "digest: must be 64 hexadecimal digits"),
    (stored("key", "k", {"name": "other", "digest": DIGEST}), "has another name inside"),
    (stored("key", "k", {"secret": "sk-hr-dev-00000000000000"}), "has the same secret as key dev"),
    (stored("key", "k", {"digest": DIGEST, "budget": {}}), "budget.amount: is required"),
    (stored("key", "k", {"digest": [DIGEST]}), "digest: must not be a list"),
    (stored("owner", "o", {"budget": {"amount": "much"}}), "budget.amount: must be an amount"),
    (stored("price", "from-file", {}), "price: is required"),
    (stored("price", "from-file", {"price": {}}), "price: names no price"),
    (stored("price", "from-file", {"price": {"input": "x"}}), "price.input: must be a price"),
    (stored("price", "from-file", {"price": [{"input": 1}, {"input": 2}]}), "price[1]: counts from the same moment"),
    (stored("price", "a*b*", {"price": {"input": 1}}), "at most one *"),
]


@pytest.mark.parametrize(("one", "reason"), BROKEN, ids=[f"{n}-{case[0].kind.value}" for n, case in enumerate(BROKEN)])
def test_a_broken_object_is_left_out_with_its_reason(loaded: Loaded, one: StoredObject, reason: str) -> None:
    good = [stored("channel", "z", CHANNEL), stored("owner", "z")]
    merged = merge(loaded, [one, *good])
    (said,) = broken(merged)
    assert said.startswith(f"{one.kind.value} {one.name}: ")
    assert reason in said
    assert merged.loaded == merge(loaded, good).loaded, "nothing else has changed"


def test_what_needs_a_broken_channel_is_left_out_too(loaded: Loaded) -> None:
    merged = merge(
        loaded,
        [
            stored("channel", "gone", {}),
            stored("model", "half", {"routes": [{"channel": "file"}, {"channel": "gone"}]}),
            stored("model", "well", {"routes": [{"channel": "file"}]}),
        ],
    )
    assert [one.partition(":")[0] for one in broken(merged)] == ["channel gone", "model half"]
    assert "no such channel" in broken(merged)[1]
    assert names(merged.loaded.catalogue)[1] == ["from-file", "well"]


def test_of_two_keys_with_one_secret_the_first_by_name_is_served(loaded: Loaded) -> None:
    merged = merge(loaded, [stored("key", "b", {"digest": DIGEST}), stored("key", "a", {"digest": DIGEST.upper()})])
    assert names(merged.loaded.catalogue)[2] == ["dev", "a"]
    assert broken(merged) == ["key b: has the same secret as key a"]


def test_secrets_that_were_replaced_work_on_for_a_time(loaded: Loaded) -> None:
    former = [{"digest": "cd" * 32, "until": "2027-01-31T18:00:00Z"}]
    merged = merge(loaded, [stored("key", "k", {"digest": DIGEST, "former": former})])
    assert broken(merged) == []
    key = merged.loaded.catalogue.keys[-1]
    assert (key.digest, key.former) == (bytes.fromhex(DIGEST), (Former(bytes.fromhex("cd" * 32), 1_801_418_400.0),))


@pytest.mark.parametrize(
    "one", [{"digest": "cd" * 32}, {"digest": "cd" * 32, "until": "never"}, {"until": "2027-01-31"}]
)
def test_a_replaced_secret_needs_its_end(loaded: Loaded, one: object) -> None:
    (reason,) = broken(merge(loaded, [stored("key", "k", {"digest": DIGEST, "former": [one]})]))
    assert "former[0]." in reason


def test_a_replaced_secret_is_no_other_key_s(loaded: Loaded) -> None:
    former = [{"digest": DIGEST, "until": "2027-01-31"}]
    keys = [stored("key", "a", {"digest": DIGEST}), stored("key", "b", {"digest": "cd" * 32, "former": former})]
    assert broken(merge(loaded, keys)) == ["key b: has the same secret as key a"]


@pytest.mark.parametrize("text", ["env:HOME", "file:/etc/passwd"])
def test_a_document_refers_to_nothing_on_this_machine(loaded: Loaded, text: str) -> None:
    merged = merge(
        loaded,
        [
            stored("channel", "c", CHANNEL | {"credentials": [{"name": "m", "secret": text}]}),
            stored("channel", "d", CHANNEL | {"proxy": text}),
            stored("key", "k", {"secret": text}),
        ],
    )
    assert names(merged.loaded.catalogue) == names(loaded.catalogue)
    assert len(broken(merged)) == 3
    assert all("must not be a reference" in one for one in broken(merged))


def test_reasons_tell_no_secret(loaded: Loaded) -> None:
    mark = "TOP SECRET"
    channel = CHANNEL | {
        "credentials": [{"name": mark, "secret": mark}], "proxy": mark, "headers": {"x": f"{mark}\n"}, mark: mark,
    }  # fmt: skip
    key = {"secret": mark, "budget": mark, "digest": mark}
    merged = merge(loaded, [stored("channel", "c", channel), stored("key", "k", key)])
    assert len(merged.broken) == 2
    assert mark not in str(merged.broken)
    assert mark not in repr(merged)


def test_what_does_nothing_yet_is_said_of_objects_too(loaded: Loaded) -> None:
    bridged = {"routes": [{"channel": "file"}], "websocket_bridge": True}
    limited = {"digest": DIGEST, "limits": {"concurrent": 1}}
    merged = merge(loaded, [stored("model", "m", bridged), stored("key", "k", limited)])
    assert merged.warnings == ("model m: websocket_bridge: has no effect in this version: no WebSocket is taken",)
    assert merged.loaded.catalogue.keys[1].limits == Limits(concurrent=1, wait=3.0)


anything = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
groups = (
    ChannelOptions, CredentialOptions, ModelOptions, RouteOptions, PriceOptions, StoredKeyOptions, StoredPriceOptions,
    OwnerOptions,
)  # fmt: skip
members = st.sampled_from(sorted({name for group in groups for name in written(group)}))


@given(
    st.sampled_from(["channel", "model", "key", "owner", "price"]),
    st.text(max_size=20),
    st.dictionaries(members, anything, max_size=6) | st.text(max_size=50),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_no_document_breaks_the_rest(loaded: Loaded, kind: str, name: str, value: object) -> None:
    merged = merge(loaded, [stored(kind, name, value), stored("channel", "zz", CHANNEL)])
    assert "zz" in names(merged.loaded.catalogue)[0]
    served = sum(map(len, names(merged.loaded.catalogue)))
    if kind == "price":
        assert served == 5
    else:
        assert len(merged.broken) + len(merged.shadowed) + served == 6
