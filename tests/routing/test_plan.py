"""The order of candidates: by priority, then by weight, the same for the same conversation."""

import math
from collections import Counter
from hashlib import blake2b
from types import SimpleNamespace

import pytest

from headrace.model.channel import BaseUrl, Channel, Credential, Model, Route
from headrace.model.wire import WireProtocol
from headrace.routing import plan
from headrace.routing.plan import Candidate, order, places

CHAT = WireProtocol.CHAT
BASE = BaseUrl("https", "a.example", 443, "/v1")


def channel(name: str, *credentials: tuple[str, int], priority: int = 0, protocol: WireProtocol = CHAT) -> Channel:
    made = tuple(Credential(credential, "secret", weight) for credential, weight in credentials or (("main", 1),))
    return Channel(name, BASE, frozenset({protocol}), made, priority)


def candidates(routes: list[Route], *channels: Channel, asked: str = "gpt-x") -> list[Candidate]:
    return places(Model("gpt-x", tuple(routes)), asked, CHAT, {channel.name: channel for channel in channels})


def names(found: list[Candidate]) -> list[str]:
    return [f"{one.channel.name}/{one.credential.name}/{one.upstream_model}" for one in found]


def test_every_route_and_credential_in_the_files_order() -> None:
    found = candidates(
        [Route("b", "up"), Route("a"), Route("absent"), Route("other"), Route("a", "up", weight=0)],
        channel("a", ("x", 1), ("y", 0), ("z", 2)),
        channel("b"),
        channel("other", protocol=WireProtocol.MESSAGES),
    )
    assert names(found) == ["b/main/up", "a/x/gpt-x", "a/z/gpt-x"]


def test_a_pattern_sends_the_asked_name() -> None:
    assert names(candidates([Route("a")], channel("a"), asked="gpt-5-mini")) == ["a/main/gpt-5-mini"]


def test_priority_comes_first() -> None:
    """Lower is earlier; the route's before the channel's; no weight overcomes it."""
    found = candidates(
        [Route("a", priority=1, weight=1000), Route("b", weight=1), Route("c"), Route("d", priority=-1)],
        channel("a"),
        channel("b", priority=5),
        channel("c", priority=3),
        channel("d", priority=9),
    )
    for seed in range(50):
        ordered = order(found, "key", b"%d" % seed)
        assert [one.channel.name for one in ordered] == ["d", "c", "b", "a"]


def test_the_same_conversation_the_same_order() -> None:
    found = candidates([Route(name) for name in "abcde"], *map(channel, "abcde"))
    first = order(found, "key", b"conversation")
    assert order(found[::-1], "key", b"conversation") == first, "whatever the file's order"
    assert any(order(found, "key", b"%d" % seed) != first for seed in range(5))
    assert any(order(found, f"key{number}", b"conversation") != first for number in range(5)), "the key is part of it"
    assert sorted(names(first)) == sorted(names(found))


def test_a_key_and_a_seed_do_not_run_into_each_other() -> None:
    found = candidates([Route(name) for name in "abcdefgh"], *map(channel, "abcdefgh"))
    assert names(order(found, "ab", b"c")) != names(order(found, "a", b"bc"))


@pytest.mark.parametrize("weights", [(1, 1), (1, 3), (1, 2, 7), (5, 1, 1, 1)])
def test_shares_follow_the_weights(weights: tuple[int, ...]) -> None:
    """Of 4,000 conversations each place gets its share, within five standard deviations."""
    routes = [Route(f"c{number}", weight=weight) for number, weight in enumerate(weights)]
    found = candidates(routes, *(channel(f"c{number}") for number in range(len(weights))))
    count = 4000
    won = Counter(order(found, "key", b"%d" % seed)[0].channel.name for seed in range(count))
    for number, weight in enumerate(weights):
        share = weight / sum(weights)
        deviation = math.sqrt(count * share * (1 - share))
        assert abs(won[f"c{number}"] - count * share) < 5 * deviation


def test_the_weights_of_credentials_count_too() -> None:
    found = candidates([Route("a", weight=2), Route("b", weight=1)], channel("a", ("x", 1), ("y", 3)), channel("b"))
    won = Counter(names(order(found, "key", b"%d" % seed))[0] for seed in range(4000))
    for name, weight in (("a/x/gpt-x", 2), ("a/y/gpt-x", 6), ("b/main/gpt-x", 1)):
        share = weight / 9
        assert abs(won[name] - 4000 * share) < 5 * math.sqrt(4000 * share * (1 - share))


def test_a_new_channel_takes_only_its_own_share() -> None:
    """Every other conversation stays where its prompt cache is warm, in the same order of second choices."""
    old = candidates([Route(name) for name in "abc"], *map(channel, "abc"))
    new = candidates([Route(name) for name in "abcd"], *map(channel, "abcd"))
    moved = 0
    for seed in range(2000):
        before = order(old, "key", b"%d" % seed)
        after = order(new, "key", b"%d" % seed)
        assert [one for one in after if one.channel.name != "d"] == before
        moved += after[0].channel.name == "d"
    assert abs(moved - 500) < 5 * math.sqrt(2000 * 0.25 * 0.75)


def test_a_larger_weight_only_wins_conversations() -> None:
    def first(weight: int, seed: int) -> str:
        found = candidates([Route("a", weight=weight), Route("b")], *map(channel, "ab"))
        return order(found, "key", b"%d" % seed)[0].channel.name

    for seed in range(300):
        if first(1, seed) == "a":
            assert first(2, seed) == "a"


@pytest.mark.parametrize("number", [b"\0" * 8, b"\xff" * 8])
def test_the_rarest_hashes(monkeypatch: pytest.MonkeyPatch, number: bytes) -> None:
    """u is in (0, 1) whatever the hash: no logarithm of 0 or 1."""

    def fake(data: bytes, *, key: bytes = b"", digest_size: int) -> object:
        return SimpleNamespace(digest=lambda: number if digest_size == 8 else blake2b(data, digest_size=32).digest())

    monkeypatch.setattr(plan, "blake2b", fake)
    found = candidates([Route("a"), Route("b", weight=2)], *map(channel, "ab"))
    assert names(order(found, "key", b"")) == ["b/main/gpt-x", "a/main/gpt-x"]


def test_nothing_to_order() -> None:
    assert order([], "key", b"") == []
