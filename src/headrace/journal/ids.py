"""Names exchanges: ids that sort by time, tell the worker, and cannot be guessed."""

import os
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]


def base32(number: int) -> str:
    """128 bits in Crockford's base 32, lower case, 26 digits: text sorts as the numbers do. Two digits at a time: 2
    µs."""
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])


class Ids:
    """`hr_` and 26 base32 digits over 48 bits of milliseconds, 16 of the worker's incarnation, 64 random ones."""

    def __init__(self, incarnation: int) -> None:
        self._incarnation = incarnation & 0xFFFF

    def new(self) -> str:
        """A fresh id; later ones of one worker sort later, to the millisecond."""
        high = (time.time_ns() // 1_000_000 & (1 << 48) - 1) << 16 | self._incarnation
        return "hr_" + base32(high << 64 | int.from_bytes(os.urandom(8)))
