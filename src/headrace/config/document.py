"""Writes docs/reference/settings.md: `python -m headrace.config.document > docs/reference/settings.md`."""

import sys

from headrace.config.explain import GROUPS, Group, lines, meaning

INTRODUCTION = """\
# Settings

<!-- Written by `python -m headrace.config.document`; change src/headrace/config/options instead. -->

Headrace reads one YAML file and validates it whole. An error names the file, the line, the option, and what is allowed
there; an unknown option is an error. `headrace check` validates, `headrace check --explain` prints this list.

* **Durations** carry their unit: `200ms`, `10s`, `2m`, `1h`. A bare number is refused.
* **Sizes** carry theirs: `512B`, `64KiB`, `1MiB`, `2GiB`.
* **Money and factors** are decimals with at most nine digits after the point, read exactly as they are written.
* **Secrets** are `env:NAME` (an environment variable), `file:PATH` (a file), or the secret itself. Space around it is
  dropped.
* **Paths** are relative to the configuration file.
* **Lists**: where the type says "a list, or one", a list of one may be written without brackets.
* An option without a value (`stall:`) is an error, a section without content is not. Keys do not repeat. Anchors,
  aliases and `<<` work; YAML tags do not. A name that begins with `*` needs quotes. Text is taken as it is written:
  `1.10`, `no` and `2027-01-01` need no quotes where text is asked for.
"""


TABLE_HEAD = "| option | type | default | meaning |\n| --- | --- | --- | --- |\n"


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(_section(group) for group in GROUPS)])


def _section(group: Group) -> str:
    effect = f"{group.effect}\n\n" if group.effect else ""
    text = f"## {group.title}\n\n`{group.prefix}`: {group.doc}\n\n{effect}{TABLE_HEAD}"
    for line in lines(group):
        default = f"`{line.default}`" if line.is_value else line.default
        text += f"| `{line.name}` | {line.form} | {default} | {meaning(line)} |\n"
    return text


if __name__ == "__main__":
    sys.stdout.write(page())
