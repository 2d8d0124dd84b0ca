"""The journal under a running gateway: what the disk and an upstream may do to it."""

import errno
import os
from typing import Any

import pytest

from headrace.journal import segment as module
from headrace.model.entry import Opened
from tests.stand.fixtures import stand as stand  # noqa: PLC0414  it is a fixture here too
from tests.stand.gateway import GatewayThread
from tests.stand.stand import Stand, until
from tests.stand.wire import C4, CHAT, DONE, chat


class FullDisk:
    """`os` for the journal alone, without room."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, file: int, data: bytes) -> int:
        """Nothing fits."""
        raise OSError(errno.ENOSPC, "no space left on device")


@pytest.fixture
def reports(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the journal says to the operator in this test."""
    assert isinstance(stand.gateway, GatewayThread) and stand.gateway.worker is not None
    lines: list[str] = []
    monkeypatch.setattr(stand.gateway.worker._journal, "_report", lines.append)
    return lines


def test_a_full_disk_stops_the_first_request_and_loses_no_entry(
    stand: Stand, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = stand.model("one", {"events": CHAT})
    with monkeypatch.context() as patch:
        patch.setattr(module, "os", FullDisk())
        reply = stand.ask(chat(model))
        assert reply.status == 503
        assert not stand.calls(model) and not stand.entries(model)
    until(lambda: len(stand.entries(model)) == 1, "the entry, by the timer")
    assert stand.entry(model).id == reply.id
    assert not [record for record in stand.records() if isinstance(record, Opened) and record.model == model]
    until(lambda: len(reports) == 2, "the reports")
    assert "no space left" in reports[0] and reports[1] == "the journal has room again"


def test_an_absurd_count_costs_the_usage_and_not_the_entry(stand: Stand, reports: list[str]) -> None:
    usage = C4.replace('"prompt_tokens": 1', f'"prompt_tokens": {10**25}')
    model = stand.model("one", {"events": [*CHAT[:4], usage, DONE]})
    assert stand.ask(chat(model)).status == 200
    entry = stand.entry(model)
    assert (entry.end, entry.status) == ("completed", 200)
    assert entry.usage.inconsistent == ("unencodable",) and not entry.usage.known
    assert len(reports) == 1 and "OverflowError" in reports[0] and entry.id in reports[0]
