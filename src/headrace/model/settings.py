"""Settings as the worker sees them: validated values in seconds and bytes. The text form and its errors are
`config`'s."""

from dataclasses import dataclass, field
from enum import Enum

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


class Commit(Enum):
    """What binds an exchange to its attempt."""

    FIRST_EVENT = "first_event"
    FIRST_OUTPUT = "first_output"


class ClientGone(Enum):
    """What happens to the upstream when the client leaves."""

    CANCEL = "cancel"
    DRAIN = "drain"


class SharedOutage(Enum):
    """What happens to limited requests while the shared counters cannot be reached."""

    ALLOW = "allow"
    """Each worker counts by itself."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Time limits and policies of one exchange; seconds and bytes. `never` is None."""

    keepalive: float = 10.0
    keepalive_comment: str = "hopbase-keepalive"
    early_open: float | None = 10.0
    early_open_cold: float | None = 25.0
    first_event: float = 120.0
    stall: float = 120.0
    stall_with_pings: float = 290.0
    open: float = 240.0
    reply: float = 600.0
    total: float = 3600.0
    end_grace: float = 1.0
    write_timeout: float = 60.0
    commit: Commit = Commit.FIRST_EVENT
    client_gone: ClientGone = ClientGone.CANCEL
    drain_cap: float = 60.0
    drain_streams: int = 50
    max_attempts: int = 3
    max_event: int = 64 * MIB

    def nesting_error(self) -> str | None:
        """Why these limits do not nest, or None: first_event ≤ open ≤ total; reply ≤ total; stall ≤ stall_with_pings
        ≤ total."""
        for small, large in (
            ("first_event", "open"),
            ("open", "total"),
            ("reply", "total"),
            ("stall", "stall_with_pings"),
            ("stall_with_pings", "total"),
        ):
            if getattr(self, small) > getattr(self, large):
                return (
                    f"{small} ({getattr(self, small):g}s) must not be larger than {large} ({getattr(self, large):g}s)"
                )
        return None


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: a TCP host and port, or the path of a Unix socket."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """What a TLS server shows and proves: paths of PEM files."""

    cert: str
    """The certificate, then those that lead to its authority."""
    key: str


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The data port's limits; seconds and bytes."""

    listen: tuple[Address, ...] = (Address("127.0.0.1", 8080),)
    tls: TlsFiles | None = None
    """None: plain HTTP. Unix sockets are always plain."""
    admin: Address = Address("127.0.0.1", 8081)
    workers: int = 1
    trusted_proxies: tuple[str, ...] = ()
    """Networks (CIDR) whose word on a client's address is taken."""
    max_body: int = 64 * MIB
    max_upload: int = 2 * GIB
    bodies: int = GIB
    held: int = 512 * MIB
    head_timeout: float = 10.0
    body_timeout: float = 60.0
    idle_timeout: float = 75.0
    drain: float = 600.0
    drain_notice: float = 5.0
    cors_origins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateSettings:
    """Where the process keeps what must survive."""

    directory: str = "./headrace-data"
    secret: bytes = field(default=b"", repr=False)
    """32 bytes; keys for stored secrets are derived from it."""
    database: str = field(default="", repr=False)
    """`postgresql://…`; empty: an SQLite file in the directory."""
    shared: str = field(default="", repr=False)
    """`valkey://…`; empty: limits are kept in the worker's memory."""
    checkpoint: float = 10.0
    """Seconds between two records of how far a running exchange has come."""
    sync: float = 0.2
    """Seconds until what the journal was given is on the disk."""
    shared_outage: SharedOutage = SharedOutage.ALLOW


@dataclass(frozen=True, slots=True)
class Settings:
    """All that a worker needs besides the catalogue."""

    server: ServerSettings = field(default_factory=ServerSettings)
    state: StateSettings = field(default_factory=StateSettings)
    stream: StreamSettings = field(default_factory=StreamSettings)
