"""May this exchange run? The checks behind the key, in their order: the model, the key's right to it, its protocols."""

from typing import Protocol

from headrace.model.channel import Channel, Model, Route
from headrace.model.key import Key
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call
from headrace.model.settings import StreamSettings
from headrace.model.wire import WireProtocol

_NO_HOME = Problem(
    Kind.BAD_REQUEST,
    "The request names no model, and no channel takes such requests here. Name a `model` from GET /v1/models.",
    param="model",
)

_PASSED = (
    (WireProtocol.COMPLETIONS, "/v1/completions"),
    (WireProtocol.EMBEDDINGS, "/v1/embeddings"),
    (WireProtocol.MODERATIONS, "/v1/moderations"),
    (WireProtocol.IMAGES, "/v1/images/*"),
    (WireProtocol.AUDIO, "/v1/audio/*"),
    (WireProtocol.VIDEOS, "/v1/videos"),
    (WireProtocol.RERANK, "/v1/rerank"),
)
"""The passthrough families have no word among the formats: they are told by their paths."""


class Models(Protocol):
    """What admission asks of the catalogue."""

    def find_model(self, name: str) -> Model | None:
        """The model that a request for `name` means."""

    def offers(self, model: Model, protocol: WireProtocol) -> bool:
        """Whether the model can be asked through this protocol."""

    def formats(self, model: Model) -> tuple[str, ...]:
        """The words for the protocols that it can be asked through."""

    def find_home(self, key: Key, protocol: WireProtocol, operation: str) -> Channel | None:
        """Where the key's requests go that name no model."""

    def close_names(self, name: str, key: Key) -> tuple[str, ...]:
        """Names like this one, among those that the key may use."""


def admit_call(call: Call, key: Key, models: Models, limits: StreamSettings) -> Model | Problem:
    """`admit`, or the way to the key's home channel for a request that names no model; `limits` hold there."""
    if call.model:
        return admit(call.model, call.protocol, key, models)
    home = models.find_home(key, call.protocol, call.operation)
    return _NO_HOME if home is None else Model("", (Route(home.name),), stream=limits)


def admit(name: str, protocol: WireProtocol, key: Key, models: Models) -> Model | Problem:
    """The model that `name` stands for, if the key may use it through this protocol."""
    model = models.find_model(name)
    if model is None:
        return unknown_model(name, key, models)
    if not key.may_use(name):
        return Problem(
            Kind.MODEL_NOT_ALLOWED,
            f"This key may not use the model {name[:200]!r}. Choose one from GET /v1/models.",
            param="model",
        )
    if not models.offers(model, protocol):
        formats = models.formats(model)
        passed = (path for family, path in _PASSED if models.offers(model, family))
        offered = ", ".join((*formats, *passed)) or "nothing"
        return Problem(
            Kind.PROTOCOL_NOT_OFFERED,
            f"The model {name[:200]!r} is not offered through this endpoint. It takes: {offered}.",
            param="model",
            accepted_formats=formats,
        )
    return model


def unknown_model(name: str, key: Key, models: Models) -> Problem:
    """404 with the closest name that the key may use."""
    close = [other for other in models.close_names(name, key) if other != name]
    return Problem(
        Kind.MODEL_NOT_FOUND,
        f"There is no model {name[:200]!r}. Choose one from GET /v1/models.",
        param="model",
        did_you_mean=close[0] if close else None,
    )
