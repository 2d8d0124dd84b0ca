"""`headrace prices rerate`."""

import msgspec

from headrace.model.entry import Money
from headrace.model.usage import Usage
from tests.cli.declared import Beside
from tests.cli.ledger import fill
from tests.state.journals import entry


def test_ended_exchanges_get_the_price_that_was_missing(beside: Beside) -> None:
    usage = Usage(input_total=1_000_000, output_total=100_000)
    missing = msgspec.structs.replace(entry("x", at=1000.0), model="gpt", usage=usage, money=Money(unpriced=("price",)))
    fill(beside.directory, missing, msgspec.structs.replace(missing, id="y", key="other"))
    assert beside.told("prices", "rerate")["amended"] == 0, "without a price nothing is rated"
    beside.did("prices", "set", "gpt", "--input", "1.25", "--output", "10")
    dry = beside.did("prices", "rerate", "--key", "dev", "--unknown", "--dry-run")
    assert "would be rated again" in dry and "0 → 2.25" in dry and "1 → 0" in dry
    told = beside.told("prices", "rerate", "--key", "dev", "--reason", "a price was missing")
    nothing = {"cost": "0", "charge": "0", "unknown_cost": 1}
    rated = {"cost": "2.25", "charge": "2.25", "unknown_cost": 0}
    assert told == {"dry_run": False, "entries": 1, "amended": 1, "before": nothing, "after": rated}
    assert beside.told("prices", "rerate", "--key", "dev")["amended"] == 0
    assert beside.told("usage", "--since", "1970-01-01", "--key", "dev")["total"]["cost"] == "2.25"
    text = beside.did("explain", "x")
    assert "superseded cost    not known" in text and "a price was missing" in text and "cost 2.25" in text
    assert beside.told("explain", "x")["amended"]["reason"] == "a price was missing"


def test_without_a_ledger(beside: Beside) -> None:
    assert beside.refused("prices", "rerate") == "there is no ledger yet: nothing has been served"
