"""What an estimate of output tokens needs, counted over the events received: O(1) per event, no text kept for long."""

from headrace.model.estimate import TextCount
from headrace.protocols.tally import Tally, sample

_ENOUGH = 256
"""Characters that are counted in one go: that costs 2 µs, and 0.5 µs even for one of them."""


class Features:
    """Counts over generated text. Pieces of it wait until there are some hundred characters to be counted."""

    __slots__ = ("_tally", "_waiting", "events")

    def __init__(self) -> None:
        self.events = 0
        """Events that generated something."""
        self._waiting = ""
        self._tally = Tally()

    def run(self, texts: list[str]) -> None:
        """Count a run of events with one piece of text in each."""
        self.events += len(texts)
        self.text("".join(texts))

    def text(self, text: str) -> None:
        """Count one piece of generated text."""
        self._waiting = waiting = self._waiting + text
        if len(waiting) >= _ENOUGH:
            self._tally_waiting()

    def counted(self) -> TextCount:
        """All that was counted so far."""
        self._tally_waiting()
        return self._tally.count(self.events)

    def _tally_waiting(self) -> None:
        self._tally.add(*sample(self._waiting.encode("utf-8", "surrogatepass")))
        self._waiting = ""
