"""Channels, credentials, models and routes: where a request may go."""

from dataclasses import dataclass, field
from enum import Enum

from headrace.model.limits import NO_LIMITS, Limits
from headrace.model.price import Price
from headrace.model.settings import StreamSettings
from headrace.model.wire import WireProtocol


class AuthForm(Enum):
    """How a channel wants its credential."""

    BY_PROTOCOL = "by_protocol"
    """Bearer for the OpenAI protocols, `x-api-key` for messages, `x-goog-api-key` for gemini."""
    BEARER = "bearer"
    HEADER = "header"
    QUERY = "query"


@dataclass(frozen=True, slots=True)
class Auth:
    """The form and, for header and query, the field's name."""

    form: AuthForm = AuthForm.BY_PROTOCOL
    name: str = ""


class UsagePolicy(Enum):
    """How usage of chat streams is learned when the client did not ask for it."""

    INJECT = "inject"
    ESTIMATE = "estimate"


@dataclass(frozen=True, slots=True)
class Credential:
    """One upstream secret of a channel."""

    name: str
    secret: str = field(repr=False)
    weight: int = 1
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """A channel's base URL in parts; `path` has no trailing slash."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The value of the Host header: the port only where it is not the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy that opens tunnels (CONNECT) to an upstream."""

    host: str
    port: int
    authorization: str = field(default="", repr=False)
    """The value of Proxy-Authorization; empty for none."""

    @property
    def authority(self) -> str:
        """host:port, as it is shown to the operator."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Channel:
    """One upstream endpoint."""

    name: str
    base_url: BaseUrl
    protocols: frozenset[WireProtocol]
    credentials: tuple[Credential, ...]
    priority: int = 0
    auth: Auth = Auth()
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    paths: tuple[tuple[str, str], ...] = ()
    connect: float = 10.0
    connections: int = 0
    idle: float = 30.0
    proxy: Proxy | None = None
    allow_http: bool = False
    ca: str = ""
    usage: UsagePolicy = UsagePolicy.INJECT
    expose_limits: bool = False
    home: bool = False
    bind_ttl: float = 72 * 3600.0
    """Seconds for which an object's id leads back to the credential that made it, at least."""


@dataclass(frozen=True, slots=True)
class Route:
    """Model → channel. An empty `upstream_model` sends the asked name up."""

    channel: str
    upstream_model: str = ""
    priority: int = 0
    weight: int = 1
    prices: tuple[Price, ...] = ()
    """In the order of their beginnings; they stand in place of the model's once the first has begun."""


@dataclass(frozen=True, slots=True)
class Model:
    """A public model name or pattern (`gpt-*`, `*`) with its routes."""

    name: str
    routes: tuple[Route, ...]
    protocols: frozenset[WireProtocol] | None = None
    """What it publishes; None means what its routes speak."""
    max_output: int | None = None
    stream: StreamSettings = field(default_factory=StreamSettings)
    prices: tuple[Price, ...] = ()
    """In the order of their beginnings; none: the cost is unknown."""
    websocket_bridge: bool = False
    """Whether a Responses WebSocket is carried on over HTTP where no route speaks it."""

    @property
    def is_pattern(self) -> bool:
        """Whether the name stands for many."""
        return "*" in self.name
