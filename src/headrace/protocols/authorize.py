"""Presents a channel's credential as its upstream wants it: exactly one, in one place."""

from dataclasses import replace
from urllib.parse import quote, unquote

from headrace.http.rules import upward
from headrace.http.target import without_fields
from headrace.model.channel import AuthForm, Channel, Credential
from headrace.model.headers import Headers
from headrace.model.request import UpstreamRequest
from headrace.model.wire import WireProtocol


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


def outgoing(
    request: UpstreamRequest, client: Headers, channel: Channel, credential: Credential, protocol: WireProtocol
) -> UpstreamRequest:
    """`request` as it goes up: the client's fields by the list, the protocol's and the channel's own, one credential.

    Where the channel has its credential, or a query field of its own, the client's of that name gives way.
    Streams must come unencoded: a compressed one could take no keepalive.
    """
    fields, query = authorize(channel, credential, protocol)
    own = {name for name, _ in fields}
    headers = [field for field in upward(client) if field[0] not in own]
    headers += request.headers
    headers += [(name.lower().encode("ascii"), value.encode("utf-8")) for name, value in channel.headers]
    headers.append((b"accept-encoding", b"identity"))
    headers += fields
    names = {unquote(name) for name, _ in channel.query}
    names.update((channel.auth.name,) if query else ())
    asked = without_fields(request.query, names) if request.query and names else request.query
    parts = [asked, query, *(f"{name}={value}" for name, value in channel.query)]
    return replace(request, headers=headers, query="&".join(part for part in parts if part))
