"""Pure: the candidates of a request, in the order in which they are tried.

By priority first (route, then channel; lower is earlier). Among equals by a weighted rendezvous hash over the
conversation, so that a conversation stays where its prompt cache is warm, and only a channel's own share moves when
it comes or goes.
"""

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import msgspec

from headrace.model.channel import Channel, Credential, Model, Route
from headrace.model.wire import WireProtocol
from headrace.protocols.authorize import Presentation, presentation


class Candidate(msgspec.Struct, frozen=True):
    """One place where a request may go, and how the channel presents its credential there."""

    route: Route
    channel: Channel
    credential: Credential
    upstream_model: str
    presentation: Presentation

    def shares_credential(self, other: "Candidate") -> bool:
        """Whether both would spend on the same upstream account."""
        return self.channel.name == other.channel.name and self.credential.name == other.credential.name


def places(model: Model, asked: str, protocol: WireProtocol, channels: Mapping[str, Channel]) -> list[Candidate]:
    """Every (route, credential) of the model that speaks `protocol`, in the order of the configuration.

    `asked` is the name that the client used: what a route without `upstream_model` sends up.
    """
    return [
        Candidate(
            route, channel, credential, route.upstream_model or asked, presentation(channel, credential, protocol)
        )
        for route in model.routes
        if (channel := channels.get(route.channel)) is not None and protocol in channel.protocols
        for credential in channel.credentials
        if route.weight and credential.weight
    ]


def order(candidates: Sequence[Candidate], key_name: str, seed: bytes) -> list[Candidate]:
    """The candidates in the order in which to try them. `seed` tells the conversation apart; the key is part of it."""
    salt = key_name.encode() + b"\0" + seed
    return sorted(candidates, key=lambda one: (one.route.priority, one.channel.priority, -_score(one, salt)))


def _score(candidate: Candidate, salt: bytes) -> float:
    """Weighted rendezvous: -weight / ln(u) with u uniform in (0, 1) from the hash of conversation and place.

    52 bits of the hash, so that the largest u is still a float below 1.
    """
    place = f"{candidate.channel.name}\0{candidate.credential.name}\0{candidate.upstream_model}".encode()
    number = int.from_bytes(blake2b(place, key=blake2b(salt, digest_size=32).digest(), digest_size=8).digest())
    return -(candidate.route.weight * candidate.credential.weight) / math.log(((number >> 12) + 0.5) / 2**52)
