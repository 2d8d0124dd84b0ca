"""Every option of the file, once: its name, type, default and line of documentation.

Reading, `headrace check --explain` and docs/reference/settings.md all work from these classes. Defaults are those of
the model values, so the file and the worker cannot disagree.
"""

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from headrace.config.certificates import AuthoritiesText, CertificateText, PrivateKeyText
from headrace.config.forms import (
    ONE_OR_MANY,
    DefaultText,
    Duration,
    DurationOrNever,
    DurationOrZero,
    Size,
    Switch,
    choice,
    whole,
)
from headrace.config.places import (
    AddressText,
    AllowedModel,
    AuthText,
    BaseUrlText,
    Comment,
    DirectoryText,
    HeaderName,
    HeaderValue,
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
from headrace.config.secret import SecretText, StateSecret
from headrace.model.channel import BaseUrl, Channel, Credential, Route, UsagePolicy
from headrace.model.key import Key, KeyState
from headrace.model.settings import ClientGone, Commit, ServerSettings, StateSettings, StreamSettings
from headrace.model.wire import WireProtocol

_SERVER = ServerSettings()
_STATE = StateSettings()
_STREAM = StreamSettings()
_CHANNEL = Channel("", BaseUrl("https", "", 443, ""), frozenset(), ())
_ROUTE = Route("")
_KEY = Key("", b"")

Priority = Annotated[int, whole(-1_000_000, 1_000_000)]
Weight = Annotated[int, whole(1, 1_000_000)]
Count = Annotated[int, whole(0, 1_000_000)]
Attempts = Annotated[int, whole(1, 20)]
Tokens = Annotated[int | None, whole(1, 1_000_000_000)]
Protocol = Annotated[WireProtocol, choice(WireProtocol, "protocol")]
CommitChoice = Annotated[Commit, choice(Commit, "policy")]
ClientGoneChoice = Annotated[ClientGone, choice(ClientGone, "policy")]
UsageChoice = Annotated[UsagePolicy, choice(UsagePolicy, "policy")]
KeyStateChoice = Annotated[KeyState, choice(KeyState, "state")]


class Options(BaseModel):
    """A group of options. Unknown names are errors; `later` are names that this version does not have yet."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    later: ClassVar[frozenset[str]] = frozenset()


def is_group(field: FieldInfo) -> bool:
    """Whether an option is a group of options itself."""
    return isinstance(field.annotation, type) and issubclass(field.annotation, Options)


class CorsOptions(Options):
    """Web pages of other origins that may use the data port from a browser."""

    origins: Annotated[tuple[Origin, ...], ONE_OR_MANY] = Field(
        default=_SERVER.cors_origins,
        description="Their origins (`scheme://host[:port]`), or `*` for all; none: no page.",
    )


class TlsOptions(Options):
    """TLS (1.2 and 1.3) on every TCP address of the data port; Unix sockets stay plain. HTTP/1.1 only."""

    cert: Annotated[CertificateText, DefaultText("none: plain HTTP")] = Field(
        default="", description="The certificate, followed by those that lead to its authority."
    )
    key: Annotated[PrivateKeyText, DefaultText("none")] = Field(
        default="", description="The certificate's private key, without a passphrase."
    )


class ServerOptions(Options):
    """The data port and its limits. A change needs a restart."""

    later = frozenset({"admin", "workers", "trusted_proxies", "max_upload"})

    listen: Annotated[tuple[AddressText, ...], ONE_OR_MANY] = Field(
        default=_SERVER.listen, min_length=1, description="Where clients connect; port 0 lets the system choose."
    )
    max_body: Size = Field(default=_SERVER.max_body, description="The largest request body; a larger one gets 413.")
    bodies: Size = Field(default=_SERVER.bodies, description="Request bodies in flight per worker; past it 503.")
    held: Size = Field(
        default=_SERVER.held,
        description="Unfinished events and copies of replies per worker, together; past it they pass plainly.",
    )
    head_timeout: Duration = Field(
        default=_SERVER.head_timeout, description="The longest time for a request's head; then 408."
    )
    body_timeout: Duration = Field(
        default=_SERVER.body_timeout, description="The longest time without a byte of a body; then 408."
    )
    idle_timeout: Duration = Field(
        default=_SERVER.idle_timeout, description="The longest rest of a client's connection."
    )
    drain: DurationOrZero = Field(default=_SERVER.drain, description="How long streams may run on after SIGTERM.")
    drain_notice: DurationOrZero = Field(
        default=_SERVER.drain_notice,
        description="How long after SIGTERM requests are still taken, while /readyz fails.",
    )
    tls: TlsOptions = Field(default=TlsOptions(), description=str(TlsOptions.__doc__))
    cors: CorsOptions = Field(default=CorsOptions(), description=str(CorsOptions.__doc__))


class StateOptions(Options):
    """What must survive. A change needs a restart."""

    later = frozenset({"database", "shared", "checkpoint", "sync", "shared_outage"})

    directory: DirectoryText = Field(
        default=_STATE.directory, description="The folder of the journal and all other state; relative to this file."
    )
    secret: Annotated[StateSecret, DefaultText("the file `secret` in the directory, made at the first start")] = Field(
        default=_STATE.secret,
        repr=False,
        description="32 bytes (raw, hexadecimal or base64); with another secret the digests of all keys change.",
    )


class KeyStreamOptions(Options):
    """The stream options that a key may set for itself."""

    keepalive: Duration = Field(
        default=_STREAM.keepalive, description="Silence towards the client after which a keepalive is inserted."
    )
    early_open: DurationOrNever = Field(
        default=_STREAM.early_open, description="Silence after the upstream's 200 after which the client gets its head."
    )
    early_open_cold: DurationOrNever = Field(
        default=_STREAM.early_open_cold,
        description="The same where no upstream has answered, from the request's end on.",
    )


class StreamOptions(KeyStreamOptions):
    """Time limits and policies of an exchange. A model may set each for itself, a key the first three.

    They must nest: first_event ≤ open ≤ total; reply ≤ total; stall ≤ stall_with_pings ≤ total.
    """

    keepalive_comment: Comment = Field(default=_STREAM.keepalive_comment, description="What a keepalive comment says.")
    first_event: Duration = Field(
        default=_STREAM.first_event,
        description="From the end of an attempt's upload to its first event, at most.",
    )
    stall: Duration = Field(
        default=_STREAM.stall, description="Silence without heartbeats after which a stream has stalled."
    )
    stall_with_pings: Duration = Field(
        default=_STREAM.stall_with_pings, description="The same while heartbeats come: time without progress."
    )
    open: Duration = Field(
        default=_STREAM.open, description="All attempts of a stream together, up to commit, at most."
    )
    reply: Duration = Field(
        default=_STREAM.reply,
        description="Without streaming: an attempt's wait for the first byte, at most.",
    )
    total: Duration = Field(default=_STREAM.total, description="The longest time for an exchange.")
    end_grace: DurationOrZero = Field(
        default=_STREAM.end_grace, description="How long the upstream may keep the body open after its terminal event."
    )
    write_timeout: Duration = Field(
        default=_STREAM.write_timeout, description="How long a client may take no byte before it is cut."
    )
    commit: CommitChoice = Field(
        default=_STREAM.commit,
        description="What binds an exchange to its attempt; first_output holds preambles back.",
    )
    client_gone: ClientGoneChoice = Field(
        default=_STREAM.client_gone,
        description="The client left: close the upstream, or read on for exact usage.",
    )
    drain_cap: DurationOrZero = Field(default=_STREAM.drain_cap, description="How long client_gone: drain reads on.")
    drain_streams: Count = Field(
        default=_STREAM.drain_streams, description="How many streams per worker client_gone: drain reads on at a time."
    )
    max_attempts: Attempts = Field(
        default=_STREAM.max_attempts, description="Upstream requests of one exchange at most, the first included."
    )
    max_event: Size = Field(
        default=_STREAM.max_event, description="The largest event that is held whole; a larger one passes plainly."
    )


class CredentialOptions(Options):
    """One upstream secret of a channel."""

    later = frozenset({"limits"})

    name: Name = Field(description="Its name in entries and logs.")
    secret: SecretText = Field(repr=False, description="The provider's API key.")
    weight: Weight = Field(default=Credential("", "").weight, description="Its share among the channel's credentials.")


class ChannelOptions(Options):
    """One upstream endpoint. The key in `channels` is its name."""

    later = frozenset({"bind_ttl"})

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
    connections: Annotated[Count, DefaultText("0 (no bound)")] = Field(
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


class RouteOptions(Options):
    """Model → channel."""

    channel: Name = Field(description="The channel's name.")
    upstream_model: Annotated[UpstreamModel, DefaultText("the asked name")] = Field(
        default=_ROUTE.upstream_model, description="The provider's name for the model."
    )
    priority: Priority = Field(default=_ROUTE.priority, description="Lower goes first.")
    weight: Weight = Field(default=_ROUTE.weight, description="Its share among routes of the same priority.")


class ModelOptions(StreamOptions):
    """What a client asks for. The key in `models` is the public name, or a pattern with one `*`.

    An exact name wins, then the longest pattern. A pattern sends the asked name up and is not listed.
    """

    later = frozenset({"price", "websocket_bridge"})

    routes: tuple[RouteOptions, ...] = Field(min_length=1, description="Where its requests may go, at least one.")
    protocols: Annotated[tuple[Protocol, ...], ONE_OR_MANY, DefaultText("what its routes speak")] = Field(
        default=(), min_length=1, description="The protocols that it is published for."
    )
    max_output: Annotated[Tokens, DefaultText("none")] = Field(
        default=None, description="The most output tokens that it can make."
    )


class KeyOptions(KeyStreamOptions):
    """What a client authenticates with."""

    later = frozenset({"limits", "budget", "multiplier", "labels", "ips"})

    name: Name = Field(description="Its name in entries and logs; no two keys share one.")
    secret: SecretText = Field(
        repr=False, description="What the client sends; no two keys share one. Its digest is kept."
    )
    owner: Annotated[Name, DefaultText("the key itself")] = Field(default=_KEY.owner, description="Who it belongs to.")
    models: Annotated[tuple[AllowedModel, ...], ONE_OR_MANY] = Field(
        default=_KEY.models, description="The models that it may use: names, or patterns with `*`."
    )
    expires: Annotated[Moment, DefaultText("never")] = Field(default=_KEY.expires, description="When it stops working.")
    state: KeyStateChoice = Field(default=_KEY.state, description="Whether it works.")
    origins: Annotated[tuple[Origin, ...], ONE_OR_MANY] = Field(
        default=_KEY.origins, description="The web origins that may use it; none: no narrowing."
    )


class FileOptions(Options):
    """The whole file."""

    later = frozenset({"owners", "limits"})

    server: ServerOptions = Field(default=ServerOptions(), description=str(ServerOptions.__doc__))
    state: StateOptions = Field(default=StateOptions(), description=str(StateOptions.__doc__))
    stream: StreamOptions = Field(default=StreamOptions(), description=str(StreamOptions.__doc__))
    channels: dict[str, ChannelOptions] = Field(default={}, description=str(ChannelOptions.__doc__))
    models: dict[str, ModelOptions] = Field(default={}, description=str(ModelOptions.__doc__))
    keys: tuple[KeyOptions, ...] = Field(default=(), description=str(KeyOptions.__doc__))
