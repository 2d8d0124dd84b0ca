"""Model values cross process borders as MessagePack and come back the same."""

import msgspec

from headrace.model.catalogue import CatalogueParts
from headrace.model.channel import BaseUrl, Channel, Credential, Model, Proxy, Route
from headrace.model.key import NO_OVERRIDES, Key, KeyState, StreamOverrides
from headrace.model.limits import Budget, Exceeded, Limits, Window
from headrace.model.owner import Owner
from headrace.model.price import Dimension, Lifetime, LongContext, Price, Rates
from headrace.model.wire import WireProtocol

LIMITS = Limits(1, 2, 3, 0.5, 1.5)
RATES = Rates(input=1_250_000_000, cache_write=((Lifetime.HOUR, 5), (Lifetime.FIVE_MINUTES, 0)), per_call=1)
PARTS = CatalogueParts(
    (
        Channel(
            "a",
            BaseUrl("https", "a.example", 443, "/v1"),
            frozenset({WireProtocol.CHAT, WireProtocol.RESPONSES}),
            (Credential("main", "secret", 2, LIMITS),),
            proxy=Proxy("p", 1, "Basic x"),
            headers=(("x", "y"),),
        ),
    ),
    (
        Model(
            "m",
            (Route("a"),),
            frozenset({WireProtocol.CHAT}),
            prices=(
                Price(RATES),
                Price(RATES, (("flex", RATES),), LongContext(200_000, ((Dimension.INPUT, 2_000_000_000),)), 1.5),
            ),
        ),
    ),
    (
        Key("plain", b"\x00\xff" * 16),
        Key(
            "full",
            b"1" * 32,
            "team",
            state=KeyState.DISABLED,
            overrides=StreamOverrides(keepalive=1.0, early_open_never=True),
            limits=LIMITS,
            budget=Budget(10**18, Window.TOTAL, Exceeded.STOP, 429),
            multiplier=0,
            labels=(("a", "b"),),
            ips=("10.0.0.0/8",),
        ),
    ),
    (Owner("team", LIMITS, Budget(0), 5),),
)


def test_parts_come_back_as_they_went() -> None:
    back = msgspec.msgpack.decode(msgspec.msgpack.encode(PARTS), type=CatalogueParts)
    assert back == PARTS
    assert back.channels[0].credentials[0].secret == "secret"
    assert back.keys[0].overrides is NO_OVERRIDES, "what is compared for each request is compared by identity"
