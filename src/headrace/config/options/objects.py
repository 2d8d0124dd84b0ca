"""Options of the objects that make up a catalogue: channels, models, keys and owners."""

from typing import Annotated

from pydantic import Field

from headrace.config.certificates import AuthoritiesText
from headrace.config.forms import (
    ONE_OR_MANY,
    ONE_OR_MANY_GROUPS,
    DefaultText,
    Duration,
    Switch,
    choice,
    whole,
)
from headrace.config.money import Factor
from headrace.config.networks import Network
from headrace.config.options.group import GIVEN, NoEffect, Options
from headrace.config.options.settings import KeyStreamOptions, StreamOptions
from headrace.config.options.spending import (
    BudgetOptions,
    KeyLimitOptions,
    LimitOptions,
    OwnerLimitOptions,
    PriceOptions,
)
from headrace.config.places import (
    MOMENT,
    AllowedModel,
    AuthText,
    BaseUrlText,
    HeaderName,
    HeaderValue,
    LabelText,
    Moment,
    Name,
    Operation,
    Origin,
    PathText,
    QueryName,
    QueryValue,
    UpstreamModel,
)
from headrace.config.proxy import ProxyText
from headrace.config.secret import DIGEST, SECRET, Secret, SecretText
from headrace.model.channel import BaseUrl, Channel, Credential, Route, UsagePolicy
from headrace.model.key import Key, KeyState
from headrace.model.wire import WireProtocol

_CHANNEL = Channel("", BaseUrl("https", "", 443, ""), frozenset(), ())
_ROUTE = Route("")
_KEY = Key("", b"")

Priority = Annotated[int, whole(-1_000_000, 1_000_000)]
Weight = Annotated[int, whole(1, 1_000_000)]
Connections = Annotated[int, whole(0, 1_000_000)]
Tokens = Annotated[int | None, whole(1, 1_000_000_000)]
Protocol = Annotated[WireProtocol, choice(WireProtocol, "protocol")]
UsageChoice = Annotated[UsagePolicy, choice(UsagePolicy, "policy")]
KeyStateChoice = Annotated[KeyState, choice(KeyState, "state")]


class CredentialOptions(Options):
    """One upstream secret of a channel."""

    name: Name = Field(description="Its name in entries and logs.")
    secret: SecretText = Field(repr=False, description="The provider's API key.")
    weight: Weight = Field(default=Credential("", "").weight, description="Its share among the channel's credentials.")
    limits: LimitOptions = Field(default=LimitOptions(), description=str(LimitOptions.__doc__))


class ChannelOptions(Options):
    """One upstream endpoint. The key in `channels` is its name."""

    base_url: BaseUrlText = Field(
        description="Where the API begins, with its version, such as https://api.openai.com/v1."
    )
    protocols: Annotated[tuple[Protocol, ...], ONE_OR_MANY] = Field(
        min_length=1, description=f"What it speaks natively: {', '.join(p.value for p in WireProtocol)}."
    )
    credentials: tuple[CredentialOptions, ...] = Field(min_length=1, description="The accounts to use, at least one.")
    priority: Priority = Field(
        default=_CHANNEL.priority, description="Lower goes first; the route's priority counts before it."
    )
    auth: AuthText = Field(
        default=_CHANNEL.auth,
        description="The credential's form; by_protocol is Bearer for OpenAI's protocols, x-api-key for messages,"
        " x-goog-api-key for gemini.",
    )
    headers: dict[HeaderName, HeaderValue] = Field(
        default={},
        description="Header fields that every request to it gets; none for credentials or the connection.",
    )
    query: dict[QueryName, QueryValue] = Field(
        default={}, description="Query fields that every request to it gets, such as api-version."
    )
    paths: dict[Operation, PathText] = Field(
        default={},
        description="An operation's path below base_url, where it is unusual; {model} is replaced.",
    )
    connect: Duration = Field(default=_CHANNEL.connect, description="How long TCP and TLS may take.")
    connections: Annotated[Connections, DefaultText("0 (no bound)")] = Field(
        default=_CHANNEL.connections, description="Connections per worker at most."
    )
    idle: Duration = Field(default=_CHANNEL.idle, description="How long an unused connection is kept.")
    proxy: Annotated[ProxyText, DefaultText("none")] = Field(
        default=None,
        repr=False,
        description="The HTTP proxy that connects to it (CONNECT); the proxy resolves its name. Proxy settings of the"
        " environment are not read.",
    )
    allow_http: Switch = Field(default=_CHANNEL.allow_http, description="Whether base_url may be http, without TLS.")
    ca: Annotated[AuthoritiesText, DefaultText("the system's")] = Field(
        default=_CHANNEL.ca, description="The certificate authorities that it is verified against."
    )
    usage: UsageChoice = Field(
        default=_CHANNEL.usage,
        description="For chat streams that ask for no usage: ask for it and remove it again, or estimate.",
    )
    expose_limits: Switch = Field(
        default=_CHANNEL.expose_limits, description="Whether clients see the provider's rate limit headers."
    )
    home: Switch = Field(default=_CHANNEL.home, description="Whether requests that name no model prefer it.")
    bind_ttl: Annotated[Duration, NoEffect("no id is kept")] = Field(
        default=_CHANNEL.bind_ttl,
        description="How long the id of a stored object leads back to the credential that made it, at least.",
    )


class RouteOptions(Options):
    """Model → channel."""

    channel: Name = Field(description="The channel's name.")
    upstream_model: Annotated[UpstreamModel, DefaultText("the asked name")] = Field(
        default=_ROUTE.upstream_model, description="The provider's name for the model."
    )
    priority: Priority = Field(default=_ROUTE.priority, description="Lower goes first.")
    weight: Weight = Field(default=_ROUTE.weight, description="Its share among routes of the same priority.")
    price: Annotated[tuple[PriceOptions, ...], ONE_OR_MANY_GROUPS, DefaultText("the model's")] = Field(
        default=(), min_length=1, description="What it costs this way, in the form of the model's own `price`."
    )


class ModelOptions(StreamOptions):
    """What a client asks for. The key in `models` is the public name, or a pattern with one `*`.

    An exact name wins, then the longest pattern. A pattern sends the asked name up and is not listed.
    """

    routes: tuple[RouteOptions, ...] = Field(min_length=1, description="Where its requests may go, at least one.")
    protocols: Annotated[tuple[Protocol, ...], ONE_OR_MANY, DefaultText("what its routes speak")] = Field(
        default=(), min_length=1, description="The protocols that it is published for."
    )
    max_output: Annotated[Tokens, DefaultText("none")] = Field(
        default=None, description="The most output tokens that it can make."
    )
    price: Annotated[tuple[PriceOptions, ...], ONE_OR_MANY_GROUPS] = Field(
        default=(), min_length=1, description="What it costs, under its public name; or a list of such prices."
    )
    websocket_bridge: Annotated[Switch, NoEffect("no WebSocket is taken")] = Field(
        default=False,
        description="Whether a Responses WebSocket is carried on over HTTP where no route speaks it.",
    )


class AllowanceOptions(Options):
    """What a key or an owner may spend."""

    budget: Annotated[BudgetOptions | None, GIVEN] = Field(default=None, description=str(BudgetOptions.__doc__))
    multiplier: Factor = Field(
        default=_KEY.multiplier, description="What the price of an exchange is multiplied by to be its charge."
    )


class CommonKeyOptions(KeyStreamOptions, AllowanceOptions):
    """What a client authenticates with, but for the secret."""

    name: Name = Field(description="Its name in entries and logs; no two keys share one.")
    owner: Annotated[Name, DefaultText("the key itself")] = Field(default=_KEY.owner, description="Who it belongs to.")
    models: Annotated[tuple[AllowedModel, ...], ONE_OR_MANY] = Field(
        default=_KEY.models, description="The models that it may use: names, or patterns with `*`."
    )
    limits: KeyLimitOptions = Field(default=KeyLimitOptions(), description=str(KeyLimitOptions.__doc__))
    expires: Annotated[Moment, DefaultText("never")] = Field(default=_KEY.expires, description="When it stops working.")
    labels: dict[Name, LabelText] = Field(default={}, description="Words about it, by name, for entries and metrics.")
    origins: Annotated[tuple[Origin, ...], ONE_OR_MANY] = Field(
        default=_KEY.origins, description="The web origins that may use it; none: no narrowing."
    )
    ips: Annotated[tuple[Network, ...], ONE_OR_MANY] = Field(
        default=_KEY.ips,
        description="The addresses and networks that it may be used from; none: from anywhere. Behind a proxy,"
        " server.trusted_proxies must name it.",
    )
    state: KeyStateChoice = Field(default=_KEY.state, description="Whether it works.")


class KeyOptions(CommonKeyOptions):
    """What a client authenticates with."""

    secret: SecretText = Field(
        repr=False, description="What the client sends; no two keys share one. Its digest is kept."
    )


class FormerOptions(Options):
    """A secret that was replaced."""

    digest: Annotated[bytes, DIGEST] = Field(description="Its digest.")
    until: Annotated[float, MOMENT] = Field(description="Until when it still opens the key.")


class StoredKeyOptions(CommonKeyOptions):
    """A key of the database: its digest, or its secret; secrets that were replaced and work for some time yet."""

    digest: Annotated[bytes, DIGEST] = Field(default=b"", description="The secret's digest.")
    secret: Annotated[Secret | None, SECRET] = Field(default=None, repr=False, description="What the client sends.")
    former: tuple[FormerOptions, ...] = Field(default=(), description="Secrets that were replaced.")
    stop: Switch = Field(default=_KEY.stop, description="Whether its streams end at once when it is disabled.")


class StoredPriceOptions(Options):
    """A price of the database, for the model of its name."""

    price: Annotated[tuple[PriceOptions, ...], ONE_OR_MANY_GROUPS] = Field(
        min_length=1, description="What the model costs; or a list of such prices."
    )


class OwnerOptions(AllowanceOptions):
    """Who keys belong to: limits and a budget over all of them, beside those of each key.

    A key may name an owner that is not here; then the owner has neither.
    """

    name: Name = Field(description="Its name, as keys have it in `owner`; no two owners share one.")
    limits: OwnerLimitOptions = Field(default=OwnerLimitOptions(), description=str(OwnerLimitOptions.__doc__))
