"""Presents a channel's credential as its upstream wants it: exactly one, in one place."""

from urllib.parse import quote, unquote

import msgspec

from headrace.http.rules import goes_up, upward
from headrace.http.target import without_fields
from headrace.model.channel import AuthForm, Channel, Credential
from headrace.model.headers import Headers
from headrace.model.request import Fields, UpstreamRequest
from headrace.model.wire import WireProtocol

_BETA = b"anthropic-beta"
"""A list of features: what the channel switches on comes to what the client did."""


def authorize(channel: Channel, credential: Credential, protocol: WireProtocol) -> tuple[Headers, str]:
    """(header fields, query part): one of the two holds the secret."""
    auth = channel.auth
    secret = credential.secret.encode("utf-8")
    if auth.form is AuthForm.QUERY:
        return [], f"{quote(auth.name, safe='')}={quote(credential.secret, safe='')}"
    if auth.form is AuthForm.HEADER:
        return [(auth.name.lower().encode("ascii"), secret)], ""
    if auth.form is AuthForm.BY_PROTOCOL and protocol is WireProtocol.MESSAGES:
        return [(b"x-api-key", secret)], ""
    if auth.form is AuthForm.BY_PROTOCOL and protocol is WireProtocol.GEMINI:
        return [(b"x-goog-api-key", secret)], ""
    return [(b"authorization", b"Bearer " + secret)], ""


class Presentation(msgspec.Struct, frozen=True):
    """What a channel with one of its credentials adds to every request of one protocol: made once per candidate."""

    fields: Headers
    """The channel's own header fields and the credential's."""
    replaced: frozenset[bytes]
    """Names of header fields that clients may send up, but here give way."""
    appended: Headers
    """Fields of the channel's that are lists: they follow the client's values."""
    query: str
    """The query parts of both, joined."""
    replaced_query: frozenset[str]

    def __repr__(self) -> str:
        return "Presentation(…)"  # it holds the secret


def presentation(channel: Channel, credential: Credential, protocol: WireProtocol) -> Presentation:
    """How `channel` presents `credential`.

    Where the channel has its credential, or a header or query field of its own, the client's of that name gives way;
    anthropic-beta is a list, and both count.
    Streams must come unencoded: a compressed one could take no keepalive.
    """
    fields, query = authorize(channel, credential, protocol)
    own = [(name.lower().encode("ascii"), value.encode("utf-8")) for name, value in channel.headers]
    names = {unquote(name) for name, _ in channel.query}
    names.update((channel.auth.name,) if query else ())
    parts = [query, *(f"{name}={value}" for name, value in channel.query)]
    return Presentation(
        fields=[*(field for field in own if field[0] != _BETA), (b"accept-encoding", b"identity"), *fields],
        replaced=frozenset(name for name, _ in (*own, *fields) if goes_up[name] and name != _BETA),
        appended=[field for field in own if field[0] == _BETA],
        query="&".join(part for part in parts if part),
        replaced_query=frozenset(names),
    )


def outgoing(request: UpstreamRequest, client: Fields, presentation: Presentation) -> UpstreamRequest:
    """`request` as it goes up: the client's fields by the list, the protocol's, the channel's own, one credential."""
    headers = upward(client)
    replaced = presentation.replaced
    if replaced:
        headers = [field for field in headers if field[0] not in replaced]
    headers += request.headers
    headers += presentation.fields
    if presentation.appended:
        values = [value for name, value in (*headers, *presentation.appended) if name == _BETA]
        headers = [field for field in headers if field[0] != _BETA]
        headers.append((_BETA, b",".join(value for value in values if value)))
    query = request.query
    if query and presentation.replaced_query:
        query = without_fields(query, presentation.replaced_query)
    if query and presentation.query:
        query = f"{query}&{presentation.query}"
    return UpstreamRequest(
        request.method, request.path, query or presentation.query, headers, request.body, request.added_usage
    )
