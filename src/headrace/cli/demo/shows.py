"""The shows, in order: what each asks for, how the simulated upstream behaves then, and what must come of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.cli.reading import ChatReading, Reading

PROMPT = "What does a headrace do?"
ANSWER = "A headrace carries the water to the mill, all of it, and nothing but the water."


@dataclass(frozen=True, slots=True)
class Show:
    """One request. `model` is also the name of the scenario that the healthy upstream plays; the overloaded upstream is
    asked first where `failover` says so. `stream` holds the model's stream options."""

    title: str
    about: str
    reading: Reading
    model: str
    scenario: Mapping[str, object]
    stream: Mapping[str, object] = field(default_factory=dict)
    failover: bool = False
    end: str = "completed"
    keepalives: int = 0
    """At least so many must come."""
    whole: bool = False
    """Print the whole entry, not a few lines of it."""

    @property
    def is_cut(self) -> bool:
        """Whether the upstream breaks off, so that the client must be told."""
        return self.end == "interrupted"


def shows_of(reading: Reading) -> tuple[Show, ...]:
    """What is shown of one protocol."""
    name = reading.protocol.value
    return (
        Show(
            title=f"{name}: a stream",
            about="Every event is passed on in the moment it comes, byte by byte as the upstream sent it.",
            reading=reading,
            model=f"demo-{name}",
            scenario={"text": ANSWER, "first_delay": 0.3, "gap": 0.08},
            whole=True,
        ),
        Show(
            title=f"{name}: a quiet upstream",
            about="It falls silent for 1.1 s; with keepalive: 300ms the client's connection is kept alive meanwhile.",
            reading=reading,
            model=f"demo-{name}-quiet",
            scenario={"text": ANSWER, "gap": 0.01, "gaps": {4: 1.1}},
            stream={"keepalive": "300ms"},
            keepalives=2,
        ),
        Show(
            title=f"{name}: a failover",
            about="The first upstream is overloaded (503); the client sees only the second one's answer.",
            reading=reading,
            model=f"demo-{name}-failover",
            scenario={"text": ANSWER, "gap": 0.01},
            failover=True,
        ),
        Show(
            title=f"{name}: a cut",
            about="The upstream's connection is reset in the middle of an event; the client is told, in its protocol.",
            reading=reading,
            model=f"demo-{name}-cut",
            scenario={"text": ANSWER, "gap": 0.01, "cut": {"after_events": 6, "extra": -12, "how": "rst"}},
            end="interrupted",
        ),
    )


SHOWS: tuple[Show, ...] = tuple(show for reading in (ChatReading(),) for show in shows_of(reading))
