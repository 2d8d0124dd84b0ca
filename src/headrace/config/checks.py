"""What no option can know by itself: names that must exist or be unique, limits that must nest, fields that collide."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from headrace.config.certificates import pair_error
from headrace.config.convert import long_context_from_options, rates_from_options, stream_from_options
from headrace.config.errors import Fault
from headrace.config.forms import closest
from headrace.config.options.objects import ChannelOptions, ModelOptions
from headrace.config.options.settings import ServerOptions, StateOptions
from headrace.config.options.spending import LongContextOptions, PriceOptions, RateOptions
from headrace.config.sections import Sections
from headrace.config.source import Block, Location, fault, value_at
from headrace.model.channel import AuthForm
from headrace.model.price import STANDARD_TIERS, scaled
from headrace.model.settings import StreamSettings
from headrace.model.wire import WireProtocol

CREDENTIAL_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"}
)
CONNECTION_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host"}
    | {"keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)


def check(sections: Sections) -> tuple[Fault, ...]:
    """All faults between options. What a section with faults of its own says is not looked at."""
    found = [
        *_server(sections.server),
        *_workers(sections.server, sections.state),
        *_stream(sections),
        *(item for name, one in sections.channels.items() if one for item in check_channel(sections.root, name, one)),
        *_models(sections),
        *_keys(sections),
        *_owners(sections),
    ]
    return tuple(fault(sections.root, location, message) for location, message in found)


class Speaker(Protocol):
    """What a model asks of a channel, whatever form it has."""

    @property
    def protocols(self) -> Collection[WireProtocol]:
        """What it speaks."""


Finding = tuple[Location, str]
"""Where something is wrong, and what."""


def _server(server: ServerOptions | None) -> Iterator[Finding]:
    if server is None:
        return
    seen = set()
    for index, address in enumerate(server.listen):
        if address in seen and not (address.port == 0 and not address.path):
            yield ("server", "listen", index), "stands twice"
        seen.add(address)
    if server.admin in seen and (server.admin.port or server.admin.path):
        yield ("server", "admin"), "stands in listen too; the data port serves no operators"
    if server.bodies < server.max_body:
        yield ("server", "bodies"), "must not be smaller than max_body, or the largest bodies never find room"
    yield from _tls(server)


def _tls(server: ServerOptions) -> Iterator[Finding]:
    here = ("server", "tls")
    cert, key = server.tls.cert, server.tls.key
    if not cert and not key:
        return
    if not cert or not key:
        yield here, f"needs {'key' if cert else 'cert'} too"
    elif (error := pair_error(cert, key)) is not None:
        yield (*here, "key"), error
    if all(address.path for address in server.listen):
        yield here, "has no effect: every address of server.listen is a Unix socket"


def _workers(server: ServerOptions | None, state: StateOptions | None) -> Iterator[Finding]:
    """Several workers that count by themselves would each allow what a key may have: every limit and budget times N."""
    if server is not None and state is not None and server.workers > 1 and not state.shared:
        yield (
            ("server", "workers"),
            f"{server.workers} workers need a Valkey between them: limits and budgets are kept in a worker's memory "
            "otherwise, in each by itself; give state.shared a valkey:// address, or run one worker",
        )


def _stream(sections: Sections) -> Iterator[Finding]:
    if sections.stream and (error := stream_from_options(sections.stream, StreamSettings()).nesting_error()):
        yield ("stream",), f"the time limits do not nest: {error}"


def check_channel(root: Block, name: str, channel: ChannelOptions) -> Iterator[Finding]:
    """What is wrong between a channel's options."""
    here = ("channels", name)
    if channel.base_url.scheme == "http" and not channel.allow_http:
        yield (*here, "base_url"), "is http, so the credential would travel in the clear; allow_http: true permits it"
    if channel.ca and channel.base_url.scheme == "http":
        yield (*here, "ca"), "has no effect on http"
    names = [credential.name for credential in channel.credentials]
    for index, one in enumerate(names):
        if one in names[:index]:
            yield (*here, "credentials", index, "name"), "stands twice; credentials of a channel need different names"
    yield from _channel_headers(root, here, channel)
    own_field = channel.auth.name if channel.auth.form is AuthForm.QUERY else "key"
    if own_field in channel.query:
        yield (*here, "query", own_field), f"holds a credential; put it in credentials, with auth: query:{own_field}"


def _channel_headers(root: Block, here: tuple[str, str], channel: ChannelOptions) -> Iterator[Finding]:
    seen = set()
    headers = value_at(root, (*here, "headers"))
    for written in headers if isinstance(headers, Block) else ():
        name = written.lower()
        location = (*here, "headers", written)
        if name in seen:
            yield location, "stands twice; case makes no difference in a header's name"
        elif name in CREDENTIAL_HEADERS or (channel.auth.form is AuthForm.HEADER and name == channel.auth.name):
            yield location, f"holds a credential; put it in credentials, with auth: header:{name}"
        elif name in CONNECTION_HEADERS:
            yield location, "belongs to the connection or the body; the gateway sets it"
        seen.add(name)


def _models(sections: Sections) -> Iterator[Finding]:
    stream = sections.stream
    under = stream_from_options(stream, StreamSettings()) if stream else None
    for name, model in sections.models.items():
        if model:
            yield from check_model(name, model, sections.channels, under)


def check_model(
    name: str, model: ModelOptions, channels: Mapping[str, Speaker | None], under: StreamSettings | None
) -> Iterator[Finding]:
    """What is wrong with a model among `channels` (None: one with faults of its own) and under the section `stream`
    (None: likewise)."""
    here = ("models", name)
    seen = set()
    for index, route in enumerate(model.routes):
        place = (*here, "routes", index)
        if route.channel not in channels:
            known = ", ".join(channels) or "none"
            yield (*place, "channel"), f"no such channel{closest(route.channel, channels)}; there are: {known}"
        if (route.channel, route.upstream_model) in seen:
            yield place, "stands twice; give one route the weight of both"
        seen.add((route.channel, route.upstream_model))
        if route.upstream_model and "*" in name:
            yield (*place, "upstream_model"), "has no place in a pattern, which sends the asked name up"
        yield from check_prices((*place, "price"), route.price)
    yield from _published(here, model, channels)
    yield from _nesting(here, model, under)
    yield from check_prices((*here, "price"), model.price)


def _published(here: tuple[str, str], model: ModelOptions, channels: Mapping[str, Speaker | None]) -> Iterator[Finding]:
    spoken: set[WireProtocol] = set()
    for route in model.routes:
        if (channel := channels.get(route.channel)) is None:
            return
        spoken.update(channel.protocols)
    for index, protocol in enumerate(model.protocols):
        if protocol not in spoken:
            words = ", ".join(one.value for one in WireProtocol if one in spoken)
            yield (*here, "protocols", index), f"no route of the model speaks {protocol.value}; they speak: {words}"


def _nesting(here: tuple[str, str], model: ModelOptions, under: StreamSettings | None) -> Iterator[Finding]:
    if under is None:
        return
    error = stream_from_options(model, under).nesting_error()
    if error and error != under.nesting_error():
        yield here, f"the time limits do not nest, together with those of stream: {error}"


def check_prices(here: Location, prices: Sequence[PriceOptions]) -> Iterator[Finding]:
    """What is wrong between the prices of one list, and inside each."""
    begun: dict[float | None, int] = {}
    for index, price in enumerate(prices):
        place = (*here, index)
        if (first := begun.setdefault(price.since, index)) != index:
            yield place, f"counts from the same moment as price[{first}]; each needs a `from` of its own"
        if not _rated(price) and not any(map(_rated, price.tiers.values())):
            yield place, "names no price; an exchange that costs nothing has input: 0 and output: 0"
        yield from _tiers((*place, "tiers"), price)
        if price.long_context is not None:
            yield from _long_context((*place, "long_context"), price, price.long_context)


def _tiers(here: Location, price: PriceOptions) -> Iterator[Finding]:
    seen = set()
    for name, tier in price.tiers.items():
        if name.lower() in STANDARD_TIERS:
            yield (*here, name), "is no tier of its own: the prices outside the tiers are for it"
        if name.lower() in seen:
            yield (*here, name), "stands twice; case makes no difference in a tier's name"
        if not _rated(tier):
            yield (*here, name), "names no price"
        seen.add(name.lower())


def _long_context(here: Location, price: PriceOptions, long: LongContextOptions) -> Iterator[Finding]:
    for rates in (price, *price.tiers.values()):
        try:
            scaled(rates_from_options(rates), long_context_from_options(long))
        except ValueError as error:
            yield (*here, "factors"), f"{error}; give the price or the factor fewer digits"


def _rated(rates: RateOptions) -> bool:
    return any(getattr(rates, name) not in (None, {}) for name in RateOptions.model_fields)


def _keys(sections: Sections) -> Iterator[Finding]:
    names: dict[str, int] = {}
    secrets: dict[str, int] = {}
    for index, key in enumerate(sections.keys):
        if key is None:
            continue
        if (first := names.setdefault(key.name, index)) != index:
            yield ("keys", index, "name"), f"stands twice; keys[{first}] has the same name"
        if (first := secrets.setdefault(key.secret.text, index)) != index:
            yield ("keys", index, "secret"), f"stands twice; keys[{first}] has the same secret"


def _owners(sections: Sections) -> Iterator[Finding]:
    names: dict[str, int] = {}
    for index, owner in enumerate(sections.owners):
        if owner and (first := names.setdefault(owner.name, index)) != index:
            yield ("owners", index, "name"), f"stands twice; owners[{first}] has the same name"
