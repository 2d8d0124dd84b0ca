"""The reference page is what the code says."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from headrace.config.document import page
from headrace.config.draft import load
from headrace.config.explain import GROUPS, lines

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "settings.md"
EXAMPLES = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in (
        ROOT / "README.md",
        *sorted((ROOT / "docs/how-to").glob("*.md")),
        ROOT / "docs/reference/passthrough.md",
        ROOT / "docs/reference/prices.md",
    )
    for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```$", path.read_text("utf-8"), re.M | re.S))
]


def test_the_page_is_up_to_date() -> None:
    message = "run: python -m headrace.config.document > docs/reference/settings.md"
    assert PAGE.read_text(encoding="utf-8") == page(), message


def test_every_option_has_a_row() -> None:
    text = page()
    for group in GROUPS:
        section = text.partition(f"\n## {group.title}\n")[2].partition("\n## ")[0]
        for line in lines(group):
            assert f"\n| `{line.name}` | {line.form} | " in section
            assert not line.effect or f" {line.effect} |" in section
        assert group.effect in section


def test_the_module_writes_the_page() -> None:
    command = [sys.executable, "-W", "error", "-m", "headrace.config.document"]
    assert subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout == page()


class Everything(defaultdict[str, str]):
    """An environment in which every variable is set, to something of its own."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return f"the-secret-of-{name}"


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 4


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_a_good_file(text: str, tmp_path: Path) -> None:
    for name in ("spare", "headrace.key"):
        (tmp_path / name).write_text(f"a-secret-in-the-file-{name}")
    path = tmp_path / "headrace.yaml"
    path.write_text(text.replace("/run/secrets/openai-spare", "spare").replace("NAME.openai", "name.openai"), "utf-8")
    warnings = [one for one in load(path, Everything()).warnings if ": none: " not in one]
    assert not [one for one in warnings if "no effect in this version" not in one]
