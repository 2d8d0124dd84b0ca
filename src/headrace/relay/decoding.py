"""Stands between a connection and the pump where an upstream compressed its stream though it was asked not to."""

from headrace.http.coding import CodingError, Decoder
from headrace.model.ports import BodyReceiver
from headrace.model.wire import BodyEnd


class Decoding:
    """Passes the decoded body on (`model.ports.BodyReceiver`).

    Bytes that cannot be decoded are a cut, and so is an end, however framed, before the coding's own.
    """

    __slots__ = ("_decoder", "_receiver")

    def __init__(self, receiver: BodyReceiver, decoder: Decoder) -> None:
        self._receiver: BodyReceiver | None = receiver
        self._decoder = decoder

    def body(self, data: bytes) -> None:
        """Encoded bytes."""
        try:
            for piece in self._decoder.feed(data):
                if self._receiver is not None:
                    self._receiver.body(piece)
        except CodingError:
            self.body_end(BodyEnd.CUT)

    def body_end(self, end: BodyEnd) -> None:
        """The body is over; once."""
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.body_end(end if self._decoder.complete else BodyEnd.CUT)
