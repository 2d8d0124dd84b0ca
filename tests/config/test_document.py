"""The reference page is what the code says."""

import subprocess
import sys
from pathlib import Path

from headrace.config.document import page
from headrace.config.explain import GROUPS, lines

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"


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
