"""Whose request is it? The client's key, from whichever place its SDK puts it, looked up by digest."""

from collections.abc import Callable
from typing import Protocol
from urllib.parse import parse_qsl

from headrace.http.forwarded import client_address
from headrace.model.key import Key, KeyState
from headrace.model.problem import Kind, Problem
from headrace.model.request import RequestHead

_MISSING = Problem(Kind.MISSING_API_KEY, "No API key came with the request. Send it as `Authorization: Bearer KEY`.")
_INVALID = Problem(Kind.INVALID_API_KEY, "The API key is not known here. Check the key and the base URL.")
_UNCHECKED = Problem(
    Kind.OVERLOADED,
    "The API key cannot be checked now: the gateway's database does not answer. Keep the key, and try again later.",
    retry_after_s=5.0,
)
_DIFFERENT = Problem(
    Kind.INVALID_API_KEY, "The request carries two different API keys. Send one, as `Authorization: Bearer KEY`."
)
_EXPIRED = Problem(Kind.EXPIRED_API_KEY, "The API key has expired. Ask the operator for a new one.")
_DISABLED = Problem(Kind.KEY_DISABLED, "The API key is switched off. Ask the operator.")
_ELSEWHERE = Problem(
    Kind.KEY_DISABLED,
    "The API key may not be used from this address. Use it from where it is meant for, or ask the operator.",
)
_KEY_FIELDS = (b"x-api-key", b"x-goog-api-key")


class Keys(Protocol):
    """What authentication asks of the catalogue."""

    @property
    def keys_are_known(self) -> bool:
        """Whether there can be no other keys."""

    def find_key(self, digest: bytes) -> Key | None:
        """The key of this digest, whatever its state."""


def authenticate(
    head: RequestHead, keys: Keys, digest: Callable[[bytes], bytes], now: float, proxies: tuple[str, ...] = ()
) -> Key | Problem:
    """The key that the request came with. `digest` makes the digest of a secret; `now` in seconds since
    the epoch; `proxies` are those whose word on the client's address counts (`http.forwarded`).

    Only the digest is looked up, so the time that this takes tells nothing of the secret.
    """
    found = credentials(head)
    if not found:
        return _MISSING
    if len(found) > 1 and len(set(found)) > 1:
        return _DIFFERENT
    key = keys.find_key(digest(found[0]))
    if key is None:
        return _INVALID if keys.keys_are_known else _UNCHECKED  # a client told 401 drops its key
    if key.state is not KeyState.ACTIVE:
        return _DISABLED
    if key.expires is not None and now >= key.expires:
        return _EXPIRED
    if key.ips and not key.may_come_from(client_address(head, proxies)):
        return _ELSEWHERE
    return key


def authenticate_for_usage(
    head: RequestHead, keys: Keys, digest: Callable[[bytes], bytes], now: float, proxies: tuple[str, ...] = ()
) -> Key | Problem:
    """The same for the page that tells a key how it stands: one that has expired may still ask that, but nobody with a
    secret that was replaced and whose time is over."""
    key = authenticate(head, keys, digest, float("-inf"), proxies)
    if isinstance(key, Key) and key.is_former and key.expires is not None and now >= key.expires:
        return _EXPIRED
    return key


def credentials(head: RequestHead) -> list[bytes]:
    """Every key in the request, in order of precedence: x-api-key, x-goog-api-key, Bearer, `?key=`."""
    fields = head.index()
    found = [value.strip() for name in _KEY_FIELDS if name in fields for value in head.every(name)]
    for value in head.every(b"authorization"):
        scheme, _, rest = value.strip().partition(b" ")
        if scheme.lower() == b"bearer":
            found.append(rest.strip())
    if "key=" in head.query:
        found += [value.encode() for name, value in parse_qsl(head.query) if name == "key"]
    return [value for value in found if value]
