"""Limits and budgets with a Valkey, on the whole line: over two workers, and while it is frozen."""

import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from headrace.shared.session import USUAL
from tests.line.spending import SPENDING, balance, secret_of
from tests.stand import procfs
from tests.stand.client import Reply
from tests.stand.gateway import GatewayThread
from tests.stand.stand import Stand, until
from tests.stand.valkey import Valkey
from tests.stand.wire import CHAT, TEXT, chat, error_in, texts

BACK_S = 5.0
USED = {"prompt_tokens": 1, "completion_tokens": 20_000, "total_tokens": 20_001}
"""0.30 for an answer."""
DEAR: dict[str, object] = {"text": "hi", "first_delay": 0.5, "usage": {"style": "final", "object": USED}}


def configured(valkey: Valkey, outage: str, workers: int = 1) -> str:
    text = SPENDING.replace("drain: 5s", f"drain: 5s\n  workers: {workers}")
    return text.replace("directory: $STATE", f"directory: $STATE, shared: {valkey.url}, shared_outage: {outage}")


# ---- two workers


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, valkey_process: Valkey) -> Iterator[Stand]:
    valkey_process.ensure()
    with Stand(Path(tmp_path_factory.mktemp("pair")), configured(valkey_process, "allow", 2), process=True) as made:
        yield made


@pytest.mark.skipif(not procfs.IS_THERE, reason="processes are looked at through /proc")
@pytest.mark.parametrize(
    ("pattern", "key", "members"),
    [("capped-dear", "tight", {}), ("priced", "tight-too", {"max_tokens": 20_000})],
    ids=["without max_tokens", "with"],
)
def test_parallel_calls_at_two_workers_spend_one_budget(
    pair: Stand, pattern: str, key: str, members: dict[str, Any]
) -> None:
    """Case B121: of 0.45 one call takes 0.30, and one more may begin while anything is left; all others are refused
    before anything goes up."""
    model = pair.model(pattern, DEAR)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: pair.ask(chat(model) | members, key=secret_of(key)), range(8)))
    assert sorted(reply.status for reply in replies) == [200] * 2 + [402] * 6
    assert len(pair.calls(model)) == 2
    until(lambda: balance(pair, key)["key"]["budget"]["held"] == "0", "the end of the holds")
    assert 0.6 <= float(str(balance(pair, key)["key"]["budget"]["spent"])) < 0.45 + 0.31
    assert pair.ask(chat(model) | members, key=secret_of(key)).status == 402


# ---- a Valkey that is frozen and not dead


def asked(stand: Stand, model: str, key: str, times: int) -> tuple[list[Reply], float]:
    """So many replies, one after the other, and what the middle one took, in seconds."""
    replies, took = [], []
    for _ in range(times):
        began = time.monotonic()
        replies.append(stand.ask(chat(model), key=secret_of(key)))
        took.append(time.monotonic() - began)
    return replies, statistics.median(took)


@pytest.mark.parametrize(("outage", "status"), [("allow", 200), ("refuse", 503)])
def test_a_frozen_valkey_holds_nobody_up(tmp_path: Path, valkey: Valkey, outage: str, status: int) -> None:
    """Case B117: after the first nobody waits for it; what is refused is told why, and once it goes on so do all."""
    with Stand(tmp_path, configured(valkey, outage)) as stand:
        gateway = stand.gateway
        assert isinstance(gateway, GatewayThread)
        model = stand.model("priced", {"events": CHAT})
        assert stand.ask(chat(model), key=secret_of("counted")).status == 200
        valkey.freeze()
        replies, middle_s = asked(stand, model, "counted", 30)
        assert {reply.status for reply in replies} == {status}
        assert middle_s < USUAL.timeout_s, "most did not wait at all"
        if status == 503:
            assert {error_in(reply.body)["code"] for reply in replies} == {"overloaded"}
            assert all(reply.header("retry-after") for reply in replies)
        assert stand.ask(chat(model)).status == 200, "a key without limits is not concerned"
        until(lambda: gateway.reports, "a word of it")
        valkey.thaw()
        until(lambda: any("is back:" in line for line in gateway.reports), "its return", BACK_S)
        assert texts(stand.ask(chat(model), key=secret_of("counted")).body) == TEXT
        assert balance(stand, "counted")["key"]["concurrent"]["used"] == 0
        gateway.reports.clear()
