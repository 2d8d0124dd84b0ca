"""The bytes around a message: its length in four bytes, big-endian, then MessagePack.

Between processes of one gateway, over a socket pair or a Unix socket that only their user can reach.
"""

from typing import Final, Generic, TypeVar

import msgspec

MOST_BYTES: Final = 256 * 1024 * 1024
"""Of one message. A catalogue of 100,000 keys takes some 30 MB; more is no message but a fault."""

M = TypeVar("M")
_LENGTH: Final = 4
_ENCODER: Final = msgspec.msgpack.Encoder()


class FrameError(ValueError):
    """What came is no message; the connection is of no use any more."""


def frame(message: object) -> bytes:
    """A message as it is sent. Raises FrameError where it is too large."""
    data = _ENCODER.encode(message)
    if len(data) > MOST_BYTES:
        raise FrameError(f"a message of {len(data)} bytes is larger than {MOST_BYTES}")
    return len(data).to_bytes(_LENGTH, "big") + data


class Unframer(Generic[M]):
    """Takes bytes as they come and gives messages as they are complete."""

    __slots__ = ("_decoder", "_held")

    def __init__(self, decoder: "msgspec.msgpack.Decoder[M]") -> None:
        self._decoder = decoder
        self._held = bytearray()

    def feed(self, data: bytes) -> list[M]:
        """The messages that `data` completes. Raises FrameError; then nothing after it can be read."""
        self._held += data
        found: list[M] = []
        at = 0
        while len(self._held) - at >= _LENGTH:
            length = int.from_bytes(self._held[at : at + _LENGTH], "big")
            if length > MOST_BYTES:
                raise FrameError(f"a message of {length} bytes is larger than {MOST_BYTES}")
            end = at + _LENGTH + length
            if len(self._held) < end:
                break
            found.append(self._decoded(bytes(self._held[at + _LENGTH : end])))
            at = end
        del self._held[:at]
        return found

    def _decoded(self, data: bytes) -> M:
        try:
            return self._decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise FrameError(f"no message that is known here: {error}") from None
