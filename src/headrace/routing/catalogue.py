"""An immutable snapshot of channels, models and keys, with the look-ups that every request makes.

A look-up costs the same however many models and keys there are. A pattern holds one `*`, so it is a beginning and an
end; patterns are filed under the lengths of these two, and a name is cut once per pair of lengths that occurs, the
longest first.
"""

import difflib
from collections.abc import Collection, Mapping
from types import MappingProxyType

from headrace.model.catalogue import CatalogueParts
from headrace.model.channel import Channel, Model
from headrace.model.key import Key
from headrace.model.wire import WireProtocol

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


class Catalogue:
    """One version of what may be asked for. A change is a new catalogue; an exchange keeps the one it began with."""

    __slots__ = ("_by_digest", "_by_shape", "_exact", "_offered", "_shapes", "channels", "keys", "models")

    def __init__(self, parts: CatalogueParts) -> None:
        self.channels: Mapping[str, Channel] = MappingProxyType({channel.name: channel for channel in parts.channels})
        self.models = parts.models
        self.keys = parts.keys
        self._by_digest = {key.digest: key for key in parts.keys}
        self._exact = {model.name: model for model in parts.models if not model.is_pattern}
        self._by_shape: dict[tuple[str, str], Model] = {}
        for model in parts.models:
            if model.is_pattern:
                before, _, after = model.name.partition("*")
                self._by_shape[before, after] = model
        shapes = {(len(before), len(after)) for before, after in self._by_shape}
        self._shapes = sorted(shapes, key=lambda shape: (sum(shape), shape[0]), reverse=True)
        self._offered = {model.name: _offered(model, self.channels) for model in parts.models}

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

    def find_key(self, digest: bytes) -> Key | None:
        """The key of this digest, whatever its state."""
        return self._by_digest.get(digest)

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

    def close_names(self, name: str, key: Key) -> tuple[str, ...]:
        """Up to three names like `name`, the closest first, among the models that the key may use.

        Of very many models only some are compared, those that begin alike first.
        """
        if len(name) > COMPARED_LENGTH:
            return ()
        begins = sorted(self._exact, key=lambda other: other[:1] != name[:1])
        usable = [other for other in begins[:COMPARED_NAMES] if key.may_use(other)]
        return tuple(difflib.get_close_matches(name, usable, n=3))


def _offered(model: Model, channels: Mapping[str, Channel]) -> frozenset[WireProtocol]:
    spoken = frozenset(
        protocol for route in model.routes if (at := channels.get(route.channel)) for protocol in at.protocols
    )
    return spoken if model.protocols is None else spoken & model.protocols
