"""What a supervisor's lines say of workers that were killed: when each was followed, and what rest its seat took."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ENDED = re.compile(r"worker (\d+) \(pid (\d+)\) ended \(SIGKILL\)")
_RESTS = re.compile(r"worker (\d+) is started again in ([\d.]+) s")
_SERVES = re.compile(r"worker (\d+) \(pid (\d+)\) serves")


@dataclass(frozen=True, slots=True)
class Return:
    """One worker's death and its successor's first moment, in monotonic seconds: when the lines were read."""

    pid: int
    """The dead one's."""
    successor: int
    ended: float
    rest_s: float
    """What the seat rested by its rule for those that die soon after their start; 0 for none."""
    served: float


def returns(said: Sequence[tuple[float, str]]) -> list[Return]:
    """All that came about, in the order of the deaths. One whose successor died too before it served is none."""
    found: list[Return] = []
    gone: dict[str, tuple[int, float]] = {}
    rests: dict[str, float] = {}
    for at, line in said:
        if match := _ENDED.match(line):
            gone[match[1]] = int(match[2]), at
            rests[match[1]] = 0.0
        elif match := _RESTS.match(line):
            rests[match[1]] = float(match[2])
        elif (match := _SERVES.match(line)) and match[1] in gone:
            pid, ended = gone.pop(match[1])
            found.append(Return(pid, int(match[2]), ended, rests[match[1]], at))
    return sorted(found, key=lambda one: one.ended)
