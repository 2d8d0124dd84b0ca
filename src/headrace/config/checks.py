"""What no option can know by itself: names that must exist or be unique, limits that must nest, fields that collide."""

from collections.abc import Iterator

from headrace.config.certificates import pair_error
from headrace.config.convert import stream_from_options
from headrace.config.errors import Fault
from headrace.config.forms import closest
from headrace.config.options import ChannelOptions, ModelOptions, ServerOptions
from headrace.config.sections import Sections
from headrace.config.source import Block, Location, fault, value_at
from headrace.model.channel import AuthForm
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
        *_stream(sections),
        *(item for name, one in sections.channels.items() if one for item in _channel(sections.root, name, one)),
        *(item for name, one in sections.models.items() if one for item in _model(sections, name, one)),
        *_keys(sections),
    ]
    return tuple(fault(sections.root, location, message) for location, message in found)


_Finding = tuple[Location, str]


def _server(server: ServerOptions | None) -> Iterator[_Finding]:
    if server is None:
        return
    seen = set()
    for index, address in enumerate(server.listen):
        if address in seen and not (address.port == 0 and not address.path):
            yield ("server", "listen", index), "stands twice"
        seen.add(address)
    if server.bodies < server.max_body:
        yield ("server", "bodies"), "must not be smaller than max_body, or the largest bodies never find room"
    yield from _tls(server)


def _tls(server: ServerOptions) -> Iterator[_Finding]:
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


def _stream(sections: Sections) -> Iterator[_Finding]:
    if sections.stream and (error := stream_from_options(sections.stream, StreamSettings()).nesting_error()):
        yield ("stream",), f"the time limits do not nest: {error}"


def _channel(root: Block, name: str, channel: ChannelOptions) -> Iterator[_Finding]:
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


def _channel_headers(root: Block, here: tuple[str, str], channel: ChannelOptions) -> Iterator[_Finding]:
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


def _model(sections: Sections, name: str, model: ModelOptions) -> Iterator[_Finding]:
    here = ("models", name)
    seen = set()
    for index, route in enumerate(model.routes):
        place = (*here, "routes", index)
        if route.channel not in sections.channels:
            known = ", ".join(sections.channels) or "none"
            yield (*place, "channel"), f"no such channel{closest(route.channel, sections.channels)}; there are: {known}"
        if (route.channel, route.upstream_model) in seen:
            yield place, "stands twice; give one route the weight of both"
        seen.add((route.channel, route.upstream_model))
        if route.upstream_model and "*" in name:
            yield (*place, "upstream_model"), "has no place in a pattern, which sends the asked name up"
    yield from _published(sections, here, model)
    yield from _nesting(sections, here, model)


def _published(sections: Sections, here: tuple[str, str], model: ModelOptions) -> Iterator[_Finding]:
    spoken: set[WireProtocol] = set()
    for route in model.routes:
        if (channel := sections.channels.get(route.channel)) is None:
            return
        spoken.update(channel.protocols)
    for index, protocol in enumerate(model.protocols):
        if protocol not in spoken:
            words = ", ".join(one.value for one in WireProtocol if one in spoken)
            yield (*here, "protocols", index), f"no route of the model speaks {protocol.value}; they speak: {words}"


def _nesting(sections: Sections, here: tuple[str, str], model: ModelOptions) -> Iterator[_Finding]:
    if sections.stream is None:
        return
    under = stream_from_options(sections.stream, StreamSettings())
    error = stream_from_options(model, under).nesting_error()
    if error and error != under.nesting_error():
        yield here, f"the time limits do not nest, together with those of stream: {error}"


def _keys(sections: Sections) -> Iterator[_Finding]:
    names: dict[str, int] = {}
    secrets: dict[str, int] = {}
    for index, key in enumerate(sections.keys):
        if key is None:
            continue
        if (first := names.setdefault(key.name, index)) != index:
            yield ("keys", index, "name"), f"stands twice; keys[{first}] has the same name"
        if (first := secrets.setdefault(key.secret.text, index)) != index:
            yield ("keys", index, "secret"), f"stands twice; keys[{first}] has the same secret"
