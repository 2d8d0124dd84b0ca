"""`headrace prices import`."""

from pathlib import Path

from headrace.state.database import FILE
from tests.cli.declared import Beside


def test_a_table(beside: Beside, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("model,input,output\ngpt,1.25,10\npriced,3,4\n")
    assert beside.did("prices", "import", str(table), "--dry-run").startswith("2 would be added, 0 would be changed")
    assert not (beside.directory / FILE).exists()
    told = beside.told("prices", "import", str(table))
    assert told == {"added": ["gpt", "priced"], "changed": [], "unchanged": [], "shadowed": ["priced"]}
    table.write_text("model,input,output\ngpt,1.25,10\npriced,3,5\n")
    result = beside.run("prices", "import", str(table))
    assert result.stdout == "0 added, 1 changed, 1 as they were\n"
    assert result.stderr == "without effect, for the file has a price of its own for them: priced\n"
    assert beside.told("prices", "show", "gpt")["prices"][0]["rates"] == {"input": "1.25", "output": "10"}


def test_a_table_with_an_error_changes_nothing(beside: Beside, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("model,input,output\ngpt,1.25,10\nother,cheap,10\n")
    assert f"{table}:3: " in beside.refused("prices", "import", str(table), code=2)
    assert not beside.directory.exists()
