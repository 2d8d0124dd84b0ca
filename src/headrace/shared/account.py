"""How one subject stands: its requests and tokens of the last 60 whole seconds, and the places that it has taken.

Seconds are numbers on whatever clock the caller counts by; they never fall. A bucket counts one second, and leaves the
minute 60 seconds later; running sums save adding up.
"""

from headrace.shared.purse import Purse

MINUTE = 60


class Account:
    """Buckets of one minute, places, and the purse that was used last."""

    __slots__ = ("purse", "request_buckets", "requests", "running", "second", "token_buckets", "token_second", "tokens")

    def __init__(self, second: int) -> None:
        self.second = second
        """The newest second of the minute; `advance` moves it."""
        self.requests = 0
        self.tokens = 0
        self.request_buckets = [0] * MINUTE
        self.token_buckets = [0] * MINUTE
        self.token_second = 0
        """When tokens were counted last."""
        self.running = 0
        self.purse: Purse | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing would be forgotten with it, as of its second."""
        return not (self.running or self.requests or self.tokens)

    def advance(self, second: int) -> None:
        """Let what is older than the minute before and with `second` leave."""
        begin, passed = self.second + 1, second - self.second
        if passed <= 0:
            return
        self.second = second
        if not (self.requests or self.tokens):
            return
        if passed >= MINUTE:
            self.requests, self.request_buckets = 0, [0] * MINUTE
            self.tokens, self.token_buckets = 0, [0] * MINUTE
            return
        first, last = begin % MINUTE, second % MINUTE + 1
        if first < last:
            self._empty(first, last)
        else:
            self._empty(first, MINUTE)
            self._empty(0, last)

    def _empty(self, first: int, last: int) -> None:
        nothing = [0] * (last - first)
        self.requests -= sum(self.request_buckets[first:last])
        self.tokens -= sum(self.token_buckets[first:last])
        self.request_buckets[first:last] = nothing
        self.token_buckets[first:last] = nothing

    def count(self, tokens: int) -> None:
        """Count a request and `tokens` in its second."""
        slot = self.second % MINUTE
        self.requests += 1
        self.request_buckets[slot] += 1
        if tokens:
            self.tokens += tokens
            self.token_buckets[slot] += tokens
            self.token_second = self.second

    def add(self, ago: int, requests: int, tokens: int) -> None:
        """Count what was used so many seconds before its second, unless that has left the minute."""
        if not 0 <= ago < MINUTE:
            return
        second = self.second - ago
        slot = second % MINUTE
        self.requests += requests
        self.request_buckets[slot] += requests
        if tokens:
            self.tokens += tokens
            self.token_buckets[slot] += tokens
            self.token_second = max(self.token_second, second)

    @property
    def used(self) -> tuple[tuple[int, int, int], ...]:
        """What is in the minute: seconds before its second, requests, tokens."""
        if not (self.requests or self.tokens):
            return ()
        slots = ((ago, (self.second - ago) % MINUTE) for ago in range(MINUTE))
        found = ((ago, self.request_buckets[slot], self.token_buckets[slot]) for ago, slot in slots)
        return tuple(one for one in found if one[1] or one[2])

    def correct(self, second: int, tokens: int) -> None:
        """Count `tokens` more; fewer than none are taken back from `second`, unless that has left the minute."""
        if tokens < 0:
            if second <= self.second - MINUTE:
                return
        else:
            second = self.token_second = self.second
        self.tokens += tokens
        self.token_buckets[second % MINUTE] += tokens

    def uncount(self, second: int) -> None:
        """Take back a request of `second`."""
        if second > self.second - MINUTE:
            self.requests -= 1
            self.request_buckets[second % MINUTE] -= 1

    @property
    def request_second(self) -> int:
        """When a request was counted last, within the minute."""
        passed = next((ago for ago in range(MINUTE) if self.request_buckets[(self.second - ago) % MINUTE]), MINUTE)
        return self.second - passed

    def request_room_in(self, limit: int) -> int:
        """Whole seconds, from its second's begin, until fewer than `limit` requests are left in the minute. Where that
        never comes, for a limit of 0, a minute."""
        return _room_in(self.request_buckets, self.requests, limit, self.second)

    def token_room_in(self, limit: int) -> int:
        """The same for tokens."""
        return _room_in(self.token_buckets, self.tokens, limit, self.second)


def _room_in(buckets: list[int], left: int, limit: int, second: int) -> int:
    for passed in range(1, MINUTE):
        left -= buckets[(second + passed) % MINUTE]
        if left < limit:
            return passed
    return MINUTE
