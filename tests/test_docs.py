"""The documentation is true: its commands exist and its links lead somewhere.

Reference pages are compared with the code at the end of this file, one test a page.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from headrace.config.draft import load
from headrace.config.options.spending import RateOptions
from headrace.config.price_table import read_price_table
from headrace.journal.record import FORMAT, MARKER, MOST_RECORD_BYTES, head, seed_of
from headrace.journal.writer import MIB, Sizes
from headrace.metering.price import cost_of, rounded
from headrace.model.entry import Record
from headrace.model.limits import decimal_text
from headrace.model.price import Call, Lifetime
from headrace.model.settings import StateSettings, StreamSettings
from headrace.model.usage import Usage
from headrace.protocols.reference import page as error_page
from headrace.state.schema import metadata

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"

FENCE = re.compile(
    r"^ {0,3}(?P<fence>```+|~~~+) *(?P<language>[\w-]*)[^\n]*\n(?P<body>.*?)^ {0,3}(?P=fence)[`~]* *$", re.M | re.S
)
INLINE_CODE = re.compile(r"(?P<ticks>`+).+?(?P=ticks)", re.S)
# [text](target), [text](target "title"), ![image](target), [label]: target
LINK = re.compile(r"\]\(\s*<?(?P<inline>[^\s)>]+)>?[^)]*\)|^ {0,3}\[[^\]]+\]:\s*<?(?P<reference>[^\s>]+)>?", re.M)
HEADING = re.compile(r"^#{1,6} +(?P<text>.+?) *#*$", re.M)

# Commands of other programs that a README may show. All others must be a make target or a headrace command.
OTHER_PROGRAMS = {"cd", "curl", "export", "git"}


def pages() -> list[Path]:
    """All Markdown files, but for those in environments and caches."""
    places = [ROOT, *(ROOT / name for name in ("docs", "src", "tests", "bench"))]
    found = {path for place in places for path in (place.glob("*.md") if place == ROOT else place.rglob("*.md"))}
    found = {path for path in found if "node_modules" not in path.parts}
    return sorted(found)


def readme() -> str:
    """The README's text; that there is one is part of what is tested."""
    assert README.exists(), "README.md is missing"
    return README.read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------- commands


def commands(text: str) -> Iterator[list[str]]:
    """Each simple command of the ```sh blocks, as words: pipes and && split, prompts, comments, settings dropped."""
    for block in FENCE.finditer(text):
        if block["language"] != "sh":
            continue
        for line in block["body"].replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
            command: list[str] = []
            for word in lexer:
                if set(word) <= set("();&|"):
                    if command:
                        yield command
                    command = []
                elif command or not re.match(r"[A-Z_]+=", word):
                    command.append(word)
            if command:
                yield command


def readme_commands(program: str) -> list[list[str]]:
    """What follows the program's name, for each time that the README calls it."""
    return [words[1:] for words in commands(readme()) if Path(words[0]).name == program]


def test_readme_shows_commands_in_sh_blocks() -> None:
    assert list(commands(readme())), "no ```sh block: the README must show how to start"
    other = [m["language"] for m in FENCE.finditer(readme()) if m["language"] in {"bash", "shell", "console", "zsh"}]
    assert not other, f"commands stand in ```sh blocks, where they are tested: {other}"


def test_readme_calls_known_programs() -> None:
    unknown = {words[0] for words in commands(readme())} - OTHER_PROGRAMS
    unknown = {name for name in unknown if Path(name).name not in {"make", "headrace"}}
    assert not unknown, f"neither a make target nor a headrace command: {unknown}"


def test_readme_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.M))
    asked = {word for words in readme_commands("make") for word in words if "=" not in word and word[0] != "-"}
    assert asked, "the README must show at least one make target"
    assert asked <= targets, f"not in the Makefile: {asked - targets}"


def test_readme_headrace_commands_exist() -> None:
    wrong = []
    for words in readme_commands("headrace"):
        name = words[0] if words else ""
        text = command_help(name)
        options = [word.partition("=")[0] for word in words if word.startswith("--") and word != "--help"]
        wrong += [f"headrace {name} {option}" for option in options if not re.search(rf"{option}\b", text)]
    assert not wrong, f"the command has no such option: {wrong}"


@cache
def command_help(name: str) -> str:
    """What `headrace NAME --help` prints; a command that does not exist fails the test."""
    result = subprocess.run(
        [sys.executable, "-m", "headrace", *([name] if name else []), "--help"],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert result.returncode == 0, f"headrace {name} --help: {result.stderr}"
    return result.stdout


def test_readme_is_the_package_description() -> None:
    readme()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project.get("readme") == "README.md"


# ------------------------------------------------------------------------------------------------------------- links


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [target for target in relative_links(page) if not leads_somewhere(page, target)]
    assert not broken, f"broken links: {broken}"


def relative_links(page: Path) -> list[str]:
    """Link targets without a scheme; code holds none."""
    text = INLINE_CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    targets = [match["inline"] or match["reference"] for match in LINK.finditer(text)]
    return [target for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:", target, re.I)]


def leads_somewhere(page: Path, target: str) -> bool:
    """Whether the file is there, inside the repository, and has the heading that an anchor names."""
    path_text, _, anchor = target.partition("#")
    path = (page.parent / path_text).resolve() if path_text else page
    if not path.exists() or not path.is_relative_to(ROOT):
        return False
    return not anchor or path.suffix != ".md" or anchor in anchors(path)


def anchors(page: Path) -> set[str]:
    """The anchors that forges give to a page's headings."""
    found: set[str] = set()
    for heading in HEADING.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading["text"]).lower()
        anchor = first = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        number = 0
        while anchor in found:
            number += 1
            anchor = f"{first}-{number}"
        found.add(anchor)
    return found


# --------------------------------------------------------------------------------------------------- reference pages
# A reference page is complete when everything of its kind that the code has appears in it, and nothing else does.
# One test for each page, here, as the code of that kind comes: settings, metrics, error kinds, admin routes.


def test_the_errors_page_is_the_table_of_the_code() -> None:
    assert (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8") == error_page(), (
        "write it anew: python -m headrace.protocols.reference > docs/reference/errors.md"
    )


def test_the_performance_page_shows_figures() -> None:
    text = (ROOT / "docs/reference/performance.md").read_text(encoding="utf-8")
    assert re.search(r"^\| nginx +\| ", text, re.M), "write it anew: make bench ARGS=--write-docs"


def test_the_ledger_page_has_every_column() -> None:
    text = (ROOT / "docs/reference/ledger.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", text, re.M | re.S))
    said = {
        name: set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", section, re.M))))
        for name, section in sections.items()
    }
    assert said == {table.name: {column.name for column in table.columns} for table in metadata.sorted_tables}


PRICES = (ROOT / "docs/reference/prices.md").read_text(encoding="utf-8")


def test_the_prices_page_has_everything_that_is_priced() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", PRICES.partition("\n## When")[0], re.M))
    assert rows.keys() == RateOptions.model_fields.keys()
    assert all(f"`{call.value}`" in rows["calls"] for call in Call)
    assert all(f"`{life.value}`" in rows["cache_write"] for life in Lifetime)


EXAMPLES = re.findall(r"^\| `([\w.-]+)`(, second route)? \| `(\{.*\})` \| (?:(.*) )?\| (.*) \|$", PRICES, re.M)


def test_there_are_examples_of_prices() -> None:
    assert len(EXAMPLES) == PRICES.count('"input_total"')


@pytest.mark.parametrize(("name", "second", "usage", "terms", "cost"), EXAMPLES)
def test_an_example_costs_what_the_page_says(
    name: str, second: str, usage: str, terms: str, cost: str, tmp_path: Path
) -> None:
    (block,) = [found["body"] for found in FENCE.finditer(PRICES) if found["language"] == "yaml"]
    (tmp_path / "headrace.yaml").write_text(block, encoding="utf-8")
    environ = dict.fromkeys(("OPENAI_API_KEY", "OTHER_API_KEY", "ANTHROPIC_API_KEY"), "s" * 20)
    model = next(one for one in load(tmp_path / "headrace.yaml", environ).models if one.name == name)
    (price,) = model.routes[1].prices if second else model.prices
    found = cost_of(msgspec.json.decode(usage, type=Usage), price, lambda other: None)
    if cost.startswith("unknown: "):
        assert ", ".join(found.unpriced) == cost.removeprefix("unknown: ")
        return
    assert found.known
    assert decimal_text(rounded(found.millionths)) == cost
    summed = sum(int(tokens) * Fraction(rate) for tokens, rate in (one.split(" × ") for one in terms.split(" + ")))
    assert summed == Fraction(cost) * 1_000_000


def test_the_table_on_the_prices_page_is_one(tmp_path: Path) -> None:
    (block,) = re.findall(r"^  ```csv\n(.*?)^  ```$", PRICES, re.M | re.S)
    (tmp_path / "prices.csv").write_text(block.replace("\n  ", "\n").strip(), encoding="utf-8")
    (one,) = read_price_table(tmp_path / "prices.csv").objects
    assert one.name == "gpt-5.6-sol"


@pytest.mark.parametrize("name", ["chat", "responses", "messages", "gemini"])
def test_a_contract_page_names_the_defaults(name: str) -> None:
    """The limits that a client of this protocol meets, with the values that the code has."""
    text = (ROOT / "docs/reference" / f"{name}.md").read_text(encoding="utf-8")
    limits = StreamSettings()
    assert f"`keepalive` ({limits.keepalive:g} s)" in text
    assert f"`end_grace` ({limits.end_grace:g} s)" in text or name == "gemini"
    assert f": {limits.keepalive_comment}" in text or name == "gemini"


def test_the_journal_page_has_the_format_and_the_sizes_of_the_code() -> None:
    text = (ROOT / "docs/reference/journal.md").read_text(encoding="utf-8")
    state, sizes = StateSettings(), Sizes()
    for record in get_args(Record):
        assert re.search(rf"^\| {record.__struct_config__.tag} \| ", text, re.M), record
    assert f"\nFormat {FORMAT}." in text and f"frame     {MARKER.hex(' ').upper()}, length" in text
    assert f'"{head(seed_of(""))[:-9].decode()}"' in text and f"at most {MOST_RECORD_BYTES // 1024} KiB" in text
    assert f"segment begins at {sizes.segment // MIB} MiB" in text
    assert f"keeps {sizes.reserve // MIB} MiB" in text and f"up to {(sizes.reserve + sizes.step) // MIB} MiB." in text
    assert f"in memory, up to {sizes.kept // MIB} MiB" in text
    assert f"`state.checkpoint` ({state.checkpoint:g} s)" in text
    assert f"`state.sync` ({state.sync * 1000:g} ms)" in text
