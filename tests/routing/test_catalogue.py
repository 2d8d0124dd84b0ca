"""Look-ups in a snapshot of channels, models and keys."""

import sys
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.catalogue import CatalogueParts
from headrace.model.channel import BaseUrl, Channel, Credential, Model, Route
from headrace.model.key import Former, Key
from headrace.model.price import Price, Rates
from headrace.model.wire import WireProtocol
from headrace.routing.catalogue import COMPARED_LENGTH, FORMATS, Catalogue

URL = BaseUrl("https", "a.example", 443, "")
ALL = frozenset(WireProtocol)


def channel(name: str, *protocols: WireProtocol) -> Channel:
    return Channel(name, URL, frozenset(protocols), ())


def model(name: str, *channels: str, protocols: frozenset[WireProtocol] | None = None) -> Model:
    return Model(name, tuple(Route(one) for one in channels), protocols)


def catalogue(*models: Model, keys: tuple[Key, ...] = ()) -> Catalogue:
    channels = (
        channel(
            "openai", WireProtocol.CHAT, WireProtocol.RESPONSES, WireProtocol.RESPONSES_WS, WireProtocol.EMBEDDINGS
        ),
        channel("anthropic", WireProtocol.MESSAGES),
        channel("google", WireProtocol.GEMINI, WireProtocol.CHAT),
    )
    return Catalogue(CatalogueParts(channels, models, keys))


def found(snapshot: Catalogue, name: str) -> str | None:
    hit = snapshot.find_model(name)
    return hit.name if hit else None


# --------------------------------------------------------------------------------------------------------------- prices

OLD, NEW, OTHER, SOON = (Price(Rates(input=n), since=at) for n, at in ((1, None), (2, 100.0), (3, None), (4, 100.0)))


def test_a_routes_price_stands_in_place_of_the_models_once_it_has_begun() -> None:
    plain, dear, later = Route("openai"), Route("google", prices=(OTHER,)), Route("anthropic", prices=(SOON,))
    priced = Model("m", (plain, dear, later), prices=(OLD, NEW))
    snapshot = catalogue(priced)
    at = {
        route: [snapshot.price(priced, route, moment) for moment in (99.0, 100.0)] for route in (*priced.routes, None)
    }
    assert at == {None: [OLD, NEW], plain: [OLD, NEW], dear: [OTHER, OTHER], later: [OLD, SOON]}
    unpriced = Model("n", (plain,))
    assert snapshot.price(unpriced, plain, 1.0) is None


def test_a_model_that_was_used_on_the_way_is_found_like_any_other() -> None:
    snapshot = catalogue(
        Model("a-1", (Route("openai", prices=(OTHER,)),), prices=(OLD, NEW)), Model("a-*", (), prices=(SOON,))
    )
    assert [snapshot.price_of("a-1", at) for at in (99.0, 100.0)] == [OLD, NEW]
    assert [snapshot.price_of("a-2", at) for at in (99.0, 100.0)] == [None, SOON]
    assert snapshot.price_of("b", 100.0) is None


# --------------------------------------------------------------------------------------------------------------- models


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("gpt-5", "gpt-5"),
        ("gpt-5-mini", "gpt-5*"),
        ("gpt-4", "gpt-*"),
        ("gpt-", "gpt-*"),
        ("gpt", "*"),
        ("claude-mini", "*-mini"),
        ("gpt-4-mini", "*-mini"),
        ("a-x-z", "a-*-z"),
        ("a--z", "a-*-z"),
        ("a-z", "*"),
        ("", "*"),
        ("gpt-*", "gpt-*"),
        ("x" * 10_000, "*"),
    ],
)
def test_an_exact_name_wins_then_the_longest_pattern(asked: str, name: str) -> None:
    names = ("*", "gpt-*", "gpt-5", "gpt-5*", "*-mini", "a-*-z")
    assert found(catalogue(*(model(one, "openai") for one in names)), asked) == name


def test_of_two_patterns_of_one_length_the_longer_beginning_wins() -> None:
    snapshot = catalogue(model("*bc", "openai"), model("a*c", "openai"), model("ab*", "openai"))
    assert found(snapshot, "abc") == "ab*"
    assert found(snapshot, "axbc") == "a*c"


def test_an_unknown_name_is_none() -> None:
    assert found(catalogue(model("gpt-5", "openai"), model("gpt-*", "openai")), "claude") is None
    assert found(catalogue(), "") is None


NAMES = st.text("ab-", min_size=0, max_size=5)
PATTERNS = st.tuples(NAMES, NAMES).map("*".join)


@given(st.sets(NAMES), st.sets(PATTERNS, max_size=12), NAMES)
def test_it_finds_what_a_search_through_all_would(exact: set[str], patterns: set[str], asked: str) -> None:
    snapshot = catalogue(*(model(name, "openai") for name in sorted(exact | patterns)))
    fitting = []
    for pattern in patterns:
        before, _, after = pattern.partition("*")
        if asked.startswith(before) and asked.endswith(after) and len(before) + len(after) <= len(asked):
            fitting.append((len(pattern), len(before), pattern))
    expected = asked if asked in exact else max(fitting)[2] if fitting else None
    assert found(snapshot, asked) == expected


def calls(work: Callable[[], object]) -> int:
    """How many functions the work calls: what it costs, whatever the machine."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_a_key_is_found_by_the_secrets_that_it_had() -> None:
    key = Key("k", b"new", expires=900.0, former=(Former(b"old", 500.0), Former(b"older", 1000.0)))
    snapshot = catalogue(keys=(key, Key("endless", b"n", former=(Former(b"o", 500.0),))))
    assert snapshot.find_key(b"new") is key
    found = [snapshot.find_key(one) for one in (b"old", b"older", b"o")]
    assert [(one.name, one.expires) for one in found if one] == [("k", 500.0), ("k", 900.0), ("endless", 500.0)]
    assert snapshot.find_key(b"oldest") is None


def test_a_look_up_costs_the_same_among_many() -> None:
    def snapshot(size: int) -> Catalogue:
        exact = (model(f"m-{number:05}", "openai") for number in range(size))
        patterns = (model(f"p-{number:05}-*", "openai") for number in range(size))
        keys = tuple(Key(f"k{number}", number.to_bytes(32)) for number in range(size))
        return catalogue(*exact, *patterns, keys=keys)

    few, many = snapshot(2), snapshot(5_000)
    for name in ("m-00001", "p-00001-x", "unknown"):
        assert calls(partial(few.find_model, name)) == calls(partial(many.find_model, name))
    digest = (1).to_bytes(32)
    assert calls(partial(few.find_key, digest)) == calls(partial(many.find_key, digest))


# ----------------------------------------------------------------------------------------------------------------- keys


def test_keys_are_found_by_digest() -> None:
    one, two = Key("one", b"1" * 32), Key("two", b"2" * 32)
    snapshot = catalogue(keys=(one, two))
    assert snapshot.find_key(b"2" * 32) is two
    assert snapshot.find_key(b"3" * 32) is None
    assert snapshot.keys == (one, two)


# ---------------------------------------------------------------------------------------------------------- protocols


def test_a_model_offers_what_its_routes_speak() -> None:
    both = model("both", "openai", "anthropic")
    snapshot = catalogue(both)
    assert {protocol for protocol in ALL if snapshot.offers(both, protocol)} == {
        WireProtocol.CHAT,
        WireProtocol.RESPONSES,
        WireProtocol.RESPONSES_WS,
        WireProtocol.EMBEDDINGS,
        WireProtocol.MESSAGES,
    }


def test_a_model_offers_only_what_it_publishes() -> None:
    narrow = model("narrow", "openai", protocols=frozenset({WireProtocol.CHAT, WireProtocol.MESSAGES}))
    snapshot = catalogue(narrow)
    assert snapshot.offers(narrow, WireProtocol.CHAT)
    assert not snapshot.offers(narrow, WireProtocol.RESPONSES)
    assert not snapshot.offers(narrow, WireProtocol.MESSAGES)


def test_a_route_to_nowhere_offers_nothing() -> None:
    lost = model("lost", "gone")
    assert catalogue(lost).formats(lost) == ()


def test_formats_begin_with_responses() -> None:
    everything = model("m", "openai", "anthropic", "google")
    assert catalogue(everything).formats(everything) == (
        "openai_responses",
        "openai_responses_websocket",
        "openai_chat_completions",
        "anthropic_messages",
        "gemini_generate_content",
    )
    assert next(iter(FORMATS)) is WireProtocol.RESPONSES


# --------------------------------------------------------------------------------------------------------------- lists


def test_a_list_holds_what_the_key_may_use_and_the_dialect_can_call() -> None:
    snapshot = catalogue(
        model("gpt-5", "openai"), model("claude-4", "anthropic"), model("gemini-3", "google"), model("gpt-*", "openai")
    )

    def listed(key: Key, *protocols: WireProtocol) -> list[str]:
        return [one.name for one in snapshot.models_for(key, protocols)]

    every = Key("k", b"")
    assert listed(every, *ALL) == ["gpt-5", "claude-4", "gemini-3"]
    assert listed(every, WireProtocol.MESSAGES) == ["claude-4"]
    assert listed(every, WireProtocol.CHAT, WireProtocol.RESPONSES) == ["gpt-5", "gemini-3"]
    assert listed(Key("k", b"", models=("g*",)), *ALL) == ["gpt-5", "gemini-3"]
    assert listed(Key("k", b"", models=()), *ALL) == []


def test_close_names_are_those_of_models_that_the_key_may_use() -> None:
    snapshot = catalogue(*(model(name, "openai") for name in ("gpt-5-mini", "gpt-5-nano", "claude-4", "gpt-5-*")))
    every = Key("k", b"")
    assert snapshot.close_names("gpt5-mini", every)[0] == "gpt-5-mini"
    assert "gpt-5-*" not in snapshot.close_names("gpt-5-", every)
    assert snapshot.close_names("gpt5-mini", Key("k", b"", models=("claude-*",))) == ()
    assert snapshot.close_names("zzz", every) == ()
    assert snapshot.close_names("gpt-5-mini" + "x" * COMPARED_LENGTH, every) == ()


def test_close_names_among_very_many_are_looked_for_where_they_begin_alike() -> None:
    names = [f"a-{number}" for number in range(3_000)] + ["zeta-large"]
    snapshot = catalogue(*(model(name, "openai") for name in names))
    assert snapshot.close_names("zeta-larg", Key("k", b""))[0] == "zeta-large"


def test_channels_are_found_by_name_and_cannot_be_replaced() -> None:
    snapshot = catalogue()
    assert snapshot.channels["google"].name == "google"
    with pytest.raises(TypeError):
        snapshot.channels["google"] = channel("google")  # type: ignore[index]


# --------------------------------------------------------------------------------------------------------------- homes


EMBEDDINGS = WireProtocol.EMBEDDINGS


def homes(*models: Model) -> Catalogue:
    def at(name: str, priority: int = 0, home: bool = False, path: str = "/x", **more: bool) -> Channel:
        spoken = WireProtocol.CHAT if more else EMBEDDINGS
        paths = (("embeddings", path),)
        return Channel(name, URL, frozenset((spoken,)), (), priority=priority, home=home, paths=paths)

    channels = (
        at("z", 1),
        at("b"),
        at("a"),
        at("home", 9, home=True),
        at("second", home=True),
        at("chats", chats=True, home=True),
        at("deployments", -1, home=True, path="/d/{model}/e"),
    )
    return Catalogue(CatalogueParts(channels, models))


def home(snapshot: Catalogue, *allowed: str) -> str | None:
    found = snapshot.find_home(Key("k", b"", models=allowed or ("*",)), EMBEDDINGS, "embeddings")
    return found.name if found else None


@pytest.mark.parametrize(
    ("routes", "name"),
    [
        (("z", "b", "a", "second", "home"), "home"),
        (("z", "b", "second"), "second"),
        (("z", "b", "a"), "a"),
        (("z",), "z"),
        (("chats", "deployments"), None),
        (("gone",), None),
    ],
)
def test_home_is_the_first_marked_else_by_priority_then_name(routes: tuple[str, ...], name: str | None) -> None:
    snapshot = homes(model("m", *routes))
    assert home(snapshot) == name
    assert home(snapshot) == name, "a second look-up says the same"


@pytest.mark.parametrize(
    ("allowed", "name"),
    [
        (("m",), "z"),
        (("gpt-5",), "a"),
        (("gpt-6",), "b"),
        (("gpt-*",), "a"),
        (("g*6",), "b"),
        (("gpt-6*-x*",), "b"),
        (("m*", "zz"), "z"),
        (("*m",), "b"),
        (("x*", "x"), None),
        (("*6",), "b"),
    ],
)
def test_home_is_a_channel_of_the_keys_models(allowed: tuple[str, ...], name: str | None) -> None:
    snapshot = homes(model("m", "z"), model("gpt-5", "a"), model("gpt-*", "b"))
    assert home(snapshot, *allowed) == name


def test_a_model_that_does_not_publish_the_family_leads_nowhere() -> None:
    assert home(homes(model("m", "a", protocols=frozenset((WireProtocol.CHAT,))))) is None


# -------------------------------------------------------------------------------------------------------------- places


def test_places_are_made_once_for_a_name_and_anew_behind_a_pattern() -> None:
    able = Channel("able", URL, frozenset({WireProtocol.CHAT}), (Credential("main", "secret"),))
    snapshot = Catalogue(CatalogueParts((able,), (model("gpt-5", "able"), model("gpt-*", "able")), ()))
    exact, pattern = snapshot.find_model("gpt-5"), snapshot.find_model("gpt-x")
    assert exact is not None and pattern is not None
    first = snapshot.places(exact, "gpt-5", WireProtocol.CHAT)
    assert [one.upstream_model for one in first] == ["gpt-5"]
    assert snapshot.places(exact, "gpt-5", WireProtocol.CHAT) is first
    assert snapshot.places(exact, "gpt-5", WireProtocol.MESSAGES) == ()
    for asked in ("gpt-x", "gpt-y", "gpt-*"):
        assert [one.upstream_model for one in snapshot.places(pattern, asked, WireProtocol.CHAT)] == [asked]
