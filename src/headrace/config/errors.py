"""What is wrong with a configuration file: every fault with its line, collected into one error."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where (a line that counts from 1, a dotted path) and what to do about it.

    A message never repeats a value of the file, for it may be a secret in the wrong place.
    """

    line: int | None
    path: str
    message: str


class ConfigError(Exception):
    """A file that cannot be used, with everything that is wrong with it, in the order of its lines."""

    def __init__(self, file: str, faults: tuple[Fault, ...]) -> None:
        super().__init__(file, faults)
        self.file = file
        self.faults = tuple(sorted(faults, key=lambda fault: fault.line or 0))

    def __str__(self) -> str:
        return "\n".join(sentence(self.file, fault) for fault in self.faults)


def sentence(file: str, fault: Fault) -> str:
    """`headrace.yaml:7: channels.a.priority: …`; a fault of the whole file has no line, one of the syntax no path."""
    place = file if fault.line is None else f"{file}:{fault.line}"
    return f"{place}: {fault.path}: {fault.message}" if fault.path else f"{place}: {fault.message}"
