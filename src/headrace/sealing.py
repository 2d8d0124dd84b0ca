"""Seals what is stored (secrets of upstreams, the snapshot) under the gateway's own secret, so that a copied file or
database gives nothing away.

    version (1 byte) │ key id (8) │ nonce (12) │ AES-256-GCM: ciphertext and tag (16)

The key is HKDF-SHA256 (RFC 5869) of the secret under a label that holds the purpose: what was sealed for one purpose
opens for no other. The key id names the secret without telling anything of it, so a changed secret and a damaged text
are told apart. Version and key id are authenticated.
"""

import os
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_VERSION: Final = b"\x01"
_ID_BYTES: Final = 8
_NONCE_BYTES: Final = 12  # random: 2^32 texts under one key are safe, and each purpose has its own
_TAG_BYTES: Final = 16
_HEAD_BYTES: Final = len(_VERSION) + _ID_BYTES
_SALT: Final = b"headrace"


class SealError(ValueError):
    """A sealed text cannot be opened; the message says why, and holds nothing of it."""


def seal(secret: bytes, purpose: str, data: bytes) -> bytes:
    """`data` sealed under `secret` for `purpose`; 37 bytes longer, and another text each time."""
    head = _VERSION + key_id(secret)
    nonce = os.urandom(_NONCE_BYTES)
    return head + nonce + _cipher(secret, purpose).encrypt(nonce, data, head)


def unseal(secret: bytes, purpose: str, sealed: bytes) -> bytes:
    """What was sealed under the same secret for the same purpose. Raises SealError."""
    head, nonce = sealed[:_HEAD_BYTES], sealed[_HEAD_BYTES : _HEAD_BYTES + _NONCE_BYTES]
    if len(sealed) < _HEAD_BYTES + _NONCE_BYTES + _TAG_BYTES:
        raise SealError("it is too short to be whole")
    if head[:1] != _VERSION:
        raise SealError("its form is not known to this version")
    if head[1:] != key_id(secret):
        raise SealError("it was sealed under another secret than the gateway's present one (state.secret)")
    try:
        return _cipher(secret, purpose).decrypt(nonce, sealed[_HEAD_BYTES + _NONCE_BYTES :], head)
    except InvalidTag:
        raise SealError("it is damaged, or was sealed for another purpose") from None


def key_id(secret: bytes) -> bytes:
    """8 bytes that name a secret: equal ones are of the same."""
    return _derive(secret, b"key id 1", _ID_BYTES)


@lru_cache(maxsize=16)
def _cipher(secret: bytes, purpose: str) -> AESGCM:
    return AESGCM(_derive(secret, b"seal 1 " + purpose.encode(), 32))


@lru_cache(maxsize=16)
def _derive(secret: bytes, label: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, _SALT, label).derive(secret)
