"""What a batch of records changes, for every mixture of them."""

import pytest

from headrace.model.entry import Record
from headrace.state.changes import Changes, changes_from_records
from tests.state.journals import entry, opened, reached


@pytest.mark.parametrize(
    ("records", "changes"),
    [
        ((), Changes()),
        ((opened("a"),), Changes(opened={"a": (opened("a"), None)})),
        ((opened("a"), entry("a")), Changes(entries=[entry("a")])),
        ((opened("a"), reached("a"), entry("a")), Changes(entries=[entry("a")])),
        ((opened("a"), reached("a", 1), reached("a", 2)), Changes(opened={"a": (opened("a"), reached("a", 2))})),
        ((reached("a", 1), reached("a", 2)), Changes(reached={"a": reached("a", 2)})),
        ((reached("a"), entry("a")), Changes(entries=[entry("a")], closed=["a"])),
        ((entry("a"), reached("a")), Changes(entries=[entry("a")], closed=["a"])),
        ((entry("a"), opened("a")), Changes(entries=[entry("a")], closed=["a"])),
        (
            (opened("a"), opened("b"), entry("c"), entry("a"), reached("d")),
            Changes([entry("c"), entry("a")], {"b": (opened("b"), None)}, {"d": reached("d")}, ["c"]),
        ),
    ],
)
def test_a_batch(records: tuple[Record, ...], changes: Changes) -> None:
    assert changes_from_records(records) == changes
