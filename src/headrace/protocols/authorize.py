"""Presents a channel's credential as its upstream wants it: exactly one, in one place."""

from urllib.parse import quote

from headrace.model.channel import AuthForm, Channel, Credential
from headrace.model.headers import Headers
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
