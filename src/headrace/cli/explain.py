"""`headrace explain ID`: what became of one exchange, from the gateway's record."""

from collections.abc import Iterator

import msgspec

from headrace.cli.configuration import ConfigChoice
from headrace.cli.entry_lookup import IdArgument, StateChoice, look_up
from headrace.cli.entry_summary import open_summary
from headrace.cli.entry_view import attempts_section, sections
from headrace.cli.output import JsonOption, Section, echo_json, show
from headrace.model.entry import Checkpoint, Opened
from headrace.state.errands import FoundEntry, FoundOpen


class Unfinished(msgspec.Struct, tag_field="type", tag="open"):
    """What `--json` prints of an exchange that has no entry yet."""

    opened: Opened
    checkpoint: Checkpoint | None


def explain(id: IdArgument, config: ConfigChoice = None, state: StateChoice = None, json: JsonOption = False) -> None:
    """Show what became of an exchange.

    First in a few lines: what was asked, how it ended, whose fault that was, what the client saw, the tokens and the
    money; then all that its entry holds. An exchange that is still open is shown as far as its last checkpoint.
    """
    found = look_up(config, state, id)
    if isinstance(found, FoundOpen):
        if json:
            echo_json(Unfinished(found.opened, found.reached))
        else:
            show(_unfinished(found))
    elif json:
        echo_json(_report(found))
    else:
        show(sections(found.entry, found.amended))


def _report(found: FoundEntry) -> object:
    """The entry, and with it what was said of its money before where that was rated again."""
    amended = {"amended": found.amended} if found.amended is not None else {}
    return msgspec.to_builtins(found.entry) | amended


def _unfinished(found: FoundOpen) -> Iterator[Section]:
    yield Section(f"exchange {found.opened.id}", tuple(open_summary(found.opened, found.reached)))
    if found.reached is not None and found.reached.attempts:
        yield attempts_section(found.reached.attempts)
