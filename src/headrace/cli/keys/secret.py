"""Secrets of keys: `sk-hr-`, 43 letters and digits at random (256 bits), and 6 that check them.

The check is CRC-32 (as in zlib) of all before it, in the same alphabet: a scanner for leaked secrets, or a form that
takes one, can tell a real one from a mistyped one without asking anybody. It makes nothing safer.
"""

import secrets
import string
import zlib

PREFIX = "sk-hr-"
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM, CHECK = 43, 6


def new_secret() -> str:
    """A secret that nobody has had; visible ASCII, safe in URLs and headers."""
    body = PREFIX + "".join(secrets.choice(ALPHABET) for _ in range(RANDOM))
    return body + check_of(body)


def check_of(body: str) -> str:
    """The six characters that end a secret that begins so."""
    rest, digits = zlib.crc32(body.encode()), ""
    for _ in range(CHECK):
        rest, digit = divmod(rest, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
