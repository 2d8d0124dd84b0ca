"""What an exchange costs and what is charged for it, on the whole line, in every way that it can end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.model.limits import NANO
from tests.line.spending import INPUT, OUTPUT, SPENDING, secret_of
from tests.stand.client import End
from tests.stand.stand import Stand, until
from tests.stand.wire import C0, CHAT, chat, chunk, request, texts

REPORTED = INPUT + 3 * OUTPUT
"""What the reference stream's usage costs: one token in, three out."""
LONG = [C0, *(chunk({"content": " the wheel turns"}) for _ in range(200))]


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with Stand(Path(tmp_path_factory.mktemp("money")), SPENDING) as made:
        yield made


def test_a_whole_answer_costs_what_its_upstream_reported(stand: Stand) -> None:
    model = stand.model("priced", {"events": CHAT})
    stand.ask(chat(model))
    money = stand.entry(model).money
    assert (money.cost, money.charge, money.counted, money.unpriced) == (REPORTED, REPORTED, REPORTED, ())
    assert money.price and money.multiplier == NANO
    assert stand.entry(model).usage_origin == "upstream"


def test_the_charge_is_the_cost_times_the_key_s_factor(stand: Stand) -> None:
    model = stand.model("priced", {"events": CHAT})
    stand.ask(chat(model), key=secret_of("twice"))
    entry = stand.entry(model)
    assert (entry.money.cost, entry.money.charge, entry.money.multiplier) == (REPORTED, 2 * REPORTED, 2 * NANO)
    assert entry.labels == (("team", "blue"),)


def test_the_owner_s_factor_counts_too(stand: Stand) -> None:
    model = stand.model("priced", {"events": CHAT})
    stand.ask(chat(model), key=secret_of("shared-1"))
    assert stand.entry(model).money.charge == 3 * REPORTED


def test_without_a_price_the_cost_is_unknown_and_not_0(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT})
    stand.ask(chat(model))
    money = stand.entry(model).money
    assert (money.cost, money.charge, money.counted, money.price) == (None, None, 0, "")


def test_a_used_dimension_without_a_price_makes_the_cost_unknown(stand: Stand) -> None:
    model = stand.model("half-priced", {"events": CHAT})
    stand.ask(chat(model))
    money = stand.entry(model).money
    assert (money.cost, money.charge, money.counted) == (None, None, INPUT)
    assert money.unpriced == ("output",)


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_a_cut_stream_is_charged_for_what_was_generated(stand: Stand, how: str) -> None:
    """Case B034: not the placeholder, not nothing."""
    model = stand.model("priced", {"events": LONG, "cut": {"after_events": 150, "how": how}})
    stand.ask(chat(model))
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin) == ("interrupted", "estimated")
    assert 300 < (entry.usage.output_total or 0) < 700, "some 450 words"
    assert (entry.usage.input_total or 0) > 0
    expected = (entry.usage.input_total or 0) * INPUT + (entry.usage.output_total or 0) * OUTPUT
    assert (entry.money.cost, entry.money.charge) == (expected, expected)


def test_a_client_that_leaves_is_charged_for_what_was_generated(stand: Stand) -> None:
    model = stand.model("priced", {"events": LONG, "gap": 0.01})
    with stand.connect() as client:
        stand.send(client, chat(model))
        client.read(b"the wheel turns")
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin) == ("client_gone", "estimated")
    assert 0 < (entry.usage.output_total or 0) < 600
    assert entry.money.charge


def test_a_client_that_leaves_before_anything_came_pays_nothing(stand: Stand) -> None:
    model = stand.model("priced", {"events": LONG, "first_delay": 3})
    with stand.connect() as client:
        client.send(request(chat(model)))
        until(lambda: stand.ch1.calls(model), "the upstream's call")
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin, entry.money.charge, entry.money.cost) == ("client_gone", "none", 0, 0)


@pytest.mark.parametrize("status", [400, 500])
def test_a_refusal_is_free(stand: Stand, status: int) -> None:
    model = stand.model("priced", {"status": status})
    stand.ask(chat(model))
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin, entry.money.charge, entry.money.cost) == ("refused", "none", 0, 0)


def test_an_explicit_0_is_a_report(stand: Stand) -> None:
    """Case B034: what the upstream says is nothing costs nothing."""
    model = stand.model("priced", {"text": "hello", "usage": "zero"})
    stand.ask(chat(model))
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin, entry.money.charge) == ("completed", "upstream", 0)


def test_a_good_end_without_usage_is_estimated(stand: Stand) -> None:
    model = stand.model("priced", {"text": "hello there, " * 50, "usage": "none"})
    stand.ask(chat(model))
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin) == ("completed", "estimated")
    assert 100 < (entry.usage.output_total or 0) < 300
    assert entry.money.charge


def test_counts_of_the_text_are_kept_and_never_the_text(stand: Stand) -> None:
    model = stand.model("priced", {"text": "水は水車へ流れる and the wheel turns"})
    stand.ask(chat(model, messages=[{"role": "user", "content": "How does the water reach the wheel?"}]))
    entry = stand.entry(model)
    assert entry.generated.other_bytes == len("水は水車へ流れる".encode())
    assert entry.generated.ascii_bytes == len(" and the wheel turns")
    assert 4 <= entry.sent.words <= 8


def test_charging_changes_no_byte(stand: Stand) -> None:
    model = stand.model("priced", {"events": CHAT})
    reply = stand.ask(chat(model, usage=True), key=secret_of("fifty"))
    assert reply.body == "".join(CHAT).encode() and reply.end is End.FRAMED and texts(reply.body)
