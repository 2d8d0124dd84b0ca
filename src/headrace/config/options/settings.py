"""Options of the gateway itself and of its exchanges: the sections server, state and stream."""

from typing import Annotated

from pydantic import Field

from headrace.config.certificates import CertificateText, PrivateKeyText
from headrace.config.forms import (
    ONE_OR_MANY,
    DefaultText,
    Duration,
    DurationOrNever,
    DurationOrZero,
    Size,
    choice,
    whole,
)
from headrace.config.networks import TrustedProxy
from headrace.config.options.group import NoEffect, Options
from headrace.config.places import AddressText, Comment, DirectoryText, Origin
from headrace.config.secret import StateSecret
from headrace.config.stores import DatabaseText, SharedText
from headrace.model.settings import ClientGone, Commit, ServerSettings, SharedOutage, StateSettings, StreamSettings

_SERVER = ServerSettings()
_STATE = StateSettings()
_STREAM = StreamSettings()

Workers = Annotated[int, whole(1, 256)]
Streams = Annotated[int, whole(0, 1_000_000)]
Attempts = Annotated[int, whole(1, 20)]
CommitChoice = Annotated[Commit, choice(Commit, "policy")]
ClientGoneChoice = Annotated[ClientGone, choice(ClientGone, "policy")]
OutageChoice = Annotated[SharedOutage, choice(SharedOutage, "policy")]


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

    listen: Annotated[tuple[AddressText, ...], ONE_OR_MANY] = Field(
        default=_SERVER.listen, min_length=1, description="Where clients connect; port 0 lets the system choose."
    )
    admin: Annotated[AddressText, NoEffect("no admin port is opened")] = Field(
        default=_SERVER.admin, description="Where operators and metrics connect."
    )
    workers: Workers = Field(
        default=_SERVER.workers, description="How many processes carry traffic; several need state.shared."
    )
    trusted_proxies: Annotated[tuple[TrustedProxy, ...], ONE_OR_MANY] = Field(
        default=_SERVER.trusted_proxies,
        description="Whose X-Forwarded-For is believed: addresses, networks, or unix for a Unix socket's peers.",
    )
    max_body: Size = Field(default=_SERVER.max_body, description="The largest request body; a larger one gets 413.")
    max_upload: Annotated[Size, NoEffect("no upload is taken")] = Field(
        default=_SERVER.max_upload, description="The largest upload that streams through; a larger one gets 413."
    )
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

    directory: DirectoryText = Field(
        default=_STATE.directory, description="The folder of the journal and all other state; relative to this file."
    )
    secret: Annotated[StateSecret, DefaultText("the file `secret` in the directory, made at the first start")] = Field(
        default=_STATE.secret,
        repr=False,
        description="32 bytes (raw, hexadecimal or base64); with another secret the digests of all keys change.",
    )
    database: DatabaseText = Field(
        default=_STATE.database,
        repr=False,
        description="The database of entries and objects; sqlite is a file in the directory.",
    )
    shared: SharedText = Field(
        default=_STATE.shared,
        repr=False,
        description="Where limits and budgets are counted. Several workers or machines need a Valkey between them.",
    )
    checkpoint: Duration = Field(
        default=_STATE.checkpoint,
        description="How often a running exchange writes down how far it has come, for the case that its process dies.",
    )
    sync: Duration = Field(
        default=_STATE.sync, description="How long a record may be in the journal before it is safe on the disk."
    )
    shared_outage: OutageChoice = Field(
        default=_STATE.shared_outage,
        description="Limited requests while Valkey is away: allow counts in each worker, refuse answers 503.",
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
    drain_streams: Streams = Field(
        default=_STREAM.drain_streams, description="How many streams per worker client_gone: drain reads on at a time."
    )
    max_attempts: Attempts = Field(
        default=_STREAM.max_attempts, description="Upstream requests of one exchange at most, the first included."
    )
    max_event: Size = Field(
        default=_STREAM.max_event, description="The largest event that is held whole; a larger one passes plainly."
    )
