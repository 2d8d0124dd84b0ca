"""What the relays of one worker share: the loop, the wheel, and two counts that are bounded over all of them."""

import asyncio

from headrace.relay.timers import Wheel


class Share:
    """One worker's. `held` are bytes of unfinished events (at most `held_limit`), `draining` streams without a
    client."""

    __slots__ = ("draining", "held", "held_limit", "loop", "wheel")

    def __init__(self, loop: asyncio.AbstractEventLoop, wheel: Wheel, held_limit: int) -> None:
        self.loop = loop
        self.wheel = wheel
        self.held_limit = held_limit
        self.held = 0
        self.draining = 0
