"""An immutable snapshot of channels, models and keys, with the look-ups that every request makes.

A look-up costs the same however many models and keys there are. A pattern holds one `*`, so it is a beginning and an
end; patterns are filed under the lengths of these two, and a name is cut once per pair of lengths that occurs, the
longest first.
"""

import difflib
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from headrace.model.allowance import Allowance, allowances
from headrace.model.catalogue import CatalogueParts
from headrace.model.channel import Channel, Model, Route
from headrace.model.key import Key
from headrace.model.owner import Owner
from headrace.model.price import Price, price_at
from headrace.model.settings import StreamSettings
from headrace.model.wire import WireProtocol
from headrace.routing.plan import Candidate, places

FORMATS = {
    WireProtocol.RESPONSES: "openai_responses",
    WireProtocol.RESPONSES_WS: "openai_responses_websocket",
    WireProtocol.CHAT: "openai_chat_completions",
    WireProtocol.MESSAGES: "anthropic_messages",
    WireProtocol.GEMINI: "gemini_generate_content",
}
"""The words of `accepted_request_formats`, in the order in which they are offered."""

# A mistyped name is compared with at most so many: 500 names take 2 ms, and the loop waits for it.
COMPARED_NAMES = 500
COMPARED_LENGTH = 100

_DEFAULT_STREAM = StreamSettings()


class Catalogue:
    """One version of what may be asked for. A change is a new catalogue; an exchange keeps the one it began with."""

    __slots__ = (
        "_allowances", "_by_digest", "_by_shape", "_exact", "_homes", "_offered", "_places", "_shapes", "channels",
        "keys", "keys_are_known", "models", "owners", "stream",
    )  # fmt: skip

    def __init__(self, parts: CatalogueParts, stream: StreamSettings = _DEFAULT_STREAM) -> None:
        self.channels: Mapping[str, Channel] = MappingProxyType({channel.name: channel for channel in parts.channels})
        self.models = parts.models
        self.stream = stream
        """What holds for a request that names no model."""
        self.keys = parts.keys
        self.owners = {owner.name: owner for owner in parts.owners}
        self.keys_are_known = parts.keys_are_known
        self._allowances: dict[str, tuple[Allowance, ...]] = {}
        self._by_digest = {one.digest: key.by_former(one) for key in parts.keys for one in key.former}
        self._by_digest |= {key.digest: key for key in parts.keys}
        self._exact = {model.name: model for model in parts.models if not model.is_pattern}
        self._by_shape: dict[tuple[str, str], Model] = {}
        for model in parts.models:
            if model.is_pattern:
                before, _, after = model.name.partition("*")
                self._by_shape[before, after] = model
        shapes = {(len(before), len(after)) for before, after in self._by_shape}
        self._shapes = sorted(shapes, key=lambda shape: (sum(shape), shape[0]), reverse=True)
        self._offered = {model.name: _offered(model, self.channels) for model in parts.models}
        self._places: dict[tuple[str, WireProtocol], tuple[Candidate, ...]] = {}
        self._homes: dict[tuple[tuple[str, ...], WireProtocol, str], Channel | None] = {}

    def find_model(self, name: str) -> Model | None:
        """The model that a request for `name` means: of that name, else the longest pattern that fits.

        Of two patterns of one length the one with the longer beginning wins.
        """
        if model := self._exact.get(name):
            return model
        for before, after in self._shapes:
            end = len(name) - after
            if before <= end and (model := self._by_shape.get((name[:before], name[end:]))):
                return model
        return None

    def places(self, model: Model, asked: str, protocol: WireProtocol) -> tuple[Candidate, ...]:
        """The candidates of a request in the order of the configuration (`plan.places`).

        Those of a model with a name of its own are made once, those behind a pattern for each request.
        """
        place = (model.name, protocol)
        found = self._places.get(place)
        if found is None:
            found = tuple(places(model, asked, protocol, self.channels))
            if asked == model.name and model.name in self._exact:
                self._places[place] = found
        return found

    def price(self, model: Model, route: Route | None, at: float) -> Price | None:
        """What the model costs at a moment (seconds since the epoch): by this route, or where none is named; None where
        that is not known."""
        own = price_at(route.prices, at) if route is not None and route.prices else None
        return own if own is not None else price_at(model.prices, at)

    def price_of(self, name: str, at: float) -> Price | None:
        """What the model that `name` means costs at a moment, by no route: of one that was used on the way."""
        model = self.find_model(name)
        return price_at(model.prices, at) if model is not None else None

    def find_key(self, digest: bytes) -> Key | None:
        """The key of this digest, whatever its state."""
        return self._by_digest.get(digest)

    def owner(self, name: str) -> Owner | None:
        """What is declared of an owner; None where no more than its name is known, or no name."""
        return self.owners.get(name) if name else None

    def allowances(self, key: Key) -> tuple[Allowance, ...]:
        """What limits the key and its owner; made once per key."""
        found = self._allowances.get(key.name)
        if found is None:
            found = self._allowances[key.name] = allowances(key, self.owner(key.owner))
        return found

    def offers(self, model: Model, protocol: WireProtocol) -> bool:
        """Whether the model is published for the protocol and one of its routes speaks it, healthy or not."""
        return protocol in self._offered[model.name]

    def formats(self, model: Model) -> tuple[str, ...]:
        """The words of `accepted_request_formats`, Responses first."""
        offered = self._offered[model.name]
        return tuple(word for protocol, word in FORMATS.items() if protocol in offered)

    def models_for(self, key: Key, protocols: Collection[WireProtocol]) -> tuple[Model, ...]:
        """What a list shows: models that the key may use and that offer one of `protocols`; patterns are not listed."""
        return tuple(
            model
            for name, model in self._exact.items()
            if key.may_use(name) and not self._offered[name].isdisjoint(protocols)
        )

    def find_home(self, key: Key, protocol: WireProtocol, operation: str) -> Channel | None:
        """The key's home channel, where requests go that name no model.

        Among the channels that speak `protocol` for a model of the key's: the first with `home: true`, else by
        priority, then name. One whose path for `operation` holds the model's name cannot take such a request. It is
        looked for once per set of models that keys have.
        """
        asked = (key.models, protocol, operation)
        if asked not in self._homes:
            self._homes[asked] = self._find_home(*asked)
        return self._homes[asked]

    def _find_home(self, allowed: tuple[str, ...], protocol: WireProtocol, operation: str) -> Channel | None:
        usable = [found for one in allowed if "*" not in one and (found := self.find_model(one)) is not None]
        patterns = [one for one in allowed if "*" in one]
        usable += [model for model in self.models if any(_overlap(model.name, one) for one in patterns)]
        routed = {route.channel for model in usable if protocol in self._offered[model.name] for route in model.routes}
        able = [
            channel
            for name, channel in self.channels.items()
            if name in routed
            and protocol in channel.protocols
            and "{model}" not in dict(channel.paths).get(operation, "")
        ]
        home = next((channel for channel in able if channel.home), None)
        return home or min(able, key=lambda channel: (channel.priority, channel.name), default=None)

    def close_names(self, name: str, key: Key) -> tuple[str, ...]:
        """Up to three names like `name`, the closest first, among the models that the key may use.

        Of very many models only some are compared, those that begin alike first.
        """
        if len(name) > COMPARED_LENGTH:
            return ()
        begins = sorted(self._exact, key=lambda other: other[:1] != name[:1])
        usable = [other for other in begins[:COMPARED_NAMES] if key.may_use(other)]
        return tuple(difflib.get_close_matches(name, usable, n=3))


def _overlap(one: str, other: str) -> bool:
    """Whether some name fits both: a model's name or pattern, and a pattern with `*`. What stands between two stars can
    always be met, so only the beginnings and the ends matter."""
    if "*" not in one:
        return fnmatchcase(one, other)
    (begin, end), (other_begin, other_end) = _outside(one), _outside(other)
    begins = begin.startswith(other_begin) or other_begin.startswith(begin)
    return begins and (end.endswith(other_end) or other_end.endswith(end))


def _outside(pattern: str) -> tuple[str, str]:
    """What stands before the first star and behind the last."""
    return pattern.partition("*")[0], pattern.rpartition("*")[2]


def _offered(model: Model, channels: Mapping[str, Channel]) -> frozenset[WireProtocol]:
    spoken = frozenset(
        protocol for route in model.routes if (at := channels.get(route.channel)) for protocol in at.protocols
    )
    return spoken if model.protocols is None else spoken & model.protocols
