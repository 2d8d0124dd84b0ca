"""What an entry reads like."""

import msgspec

from headrace.cli.entry_summary import summary
from headrace.cli.entry_view import BAR_CELLS, SHOWN_GAPS, SHOWN_INSERTIONS, brief, hash_words, sections
from headrace.cli.output import Section
from headrace.model.entry import AttemptLine, Entry, Money, Wire
from headrace.model.usage import Calls, ExtraUsage, Usage
from headrace.relay.trace import GAP_BOUNDS_S
from headrace.state.errands import Amended
from tests.cli.entries import DIGEST, OTHER_DIGEST, PLAIN

MONEY = "money, in currency units"


def of(entry: Entry) -> dict[str, Section]:
    """The sections by title."""
    return {section.title: section for section in sections(entry)}


def facts(entry: Entry, title: str) -> dict[str, str]:
    """A section's facts by name."""
    return {row[0]: row[1] for row in of(entry)[title].rows}


def changed(**fields: object) -> Entry:
    return msgspec.structs.replace(PLAIN, **fields)


def wire(**fields: object) -> Entry:
    return changed(wire=msgspec.structs.replace(PLAIN.wire, **fields))


def test_sections_stand_in_the_order_of_the_course() -> None:
    assert list(of(PLAIN)) == [
        "exchange hr_0001",
        "attempts",
        "end",
        "usage",
        "money, in currency units",
        "wire",
        "gaps between events",
        "longest gaps",
        "inserted into the delivered body",
    ]


def test_it_begins_with_the_summary() -> None:
    assert next(sections(PLAIN)).rows == tuple(summary(PLAIN))


def test_every_attempt_has_its_verdict_and_times() -> None:
    first, second = of(PLAIN)["attempts"].rows
    assert first == ("1", "east", "main", "gpt", "0.001 s", "0.101 s", "503", "upstream_error", "status 503 overloaded")
    assert second == ("2", "west", "main", "gpt-x", "0.101 s", "1.500 s", "200", "relay", "connection reused; req_1")


def test_an_attempt_without_an_answer() -> None:
    lost = AttemptLine(
        channel="a", credential="b", upstream_model="m", started_s=0.0, ended_s=1.0, replayed=True, maybe_executed=True
    )
    (row,) = of(changed(attempts=(lost,)))["attempts"].rows
    assert row[6:] == ("none", "none", "replayed on a new connection; may have been executed")


def test_a_request_that_went_nowhere_has_no_attempts_and_no_gaps() -> None:
    refused = changed(attempts=(), wire=Wire(), usage=Usage(), usage_origin="none", status=404)
    assert list(of(refused)) == ["exchange hr_0001", "end", "usage", MONEY, "wire"]
    assert "first event" not in facts(refused, "wire")
    assert facts(refused, "wire")["hashes"] == "nothing of the upstream's was released"


def test_the_end_says_what_is_stored() -> None:
    entry = changed(
        end="interrupted", reason="upstream was cut", kind="upstream_interrupted", source="upstream", detail="reset",
        early_open=True, finish_reasons=("",), served_model="", client_request_id="c-1",
    )  # fmt: skip
    assert facts(entry, "end") == {
        "end": "interrupted",
        "why": "upstream was cut",
        "kind": "upstream_interrupted",
        "detail": "reset",
        "status": "200",
        "early open": "yes: the head was sent before the first event",
        "client's request id": "c-1",
    }


def test_a_good_end_has_less_to_say() -> None:
    end = facts(PLAIN, "end")
    assert (end["served model"], end["finish reasons"]) == ("gpt-2027", "stop")
    assert "kind" not in end
    assert facts(changed(reason="", status=None), "end")["why"] == "not said"
    assert facts(changed(status=None), "end")["status"] == "none was sent"


def test_usage_lists_what_was_reported_and_nothing_else() -> None:
    assert facts(PLAIN, "usage") == {
        "origin": "as the upstream reported",
        "input": "9 tokens",
        "of it cached": "4 tokens",
        "output": "20 tokens",
    }
    nought = facts(changed(usage=Usage(input_total=0, cached_input=0, output_total=0, reasoning=0)), "usage")
    assert nought == {"origin": "as the upstream reported", "input": "0 tokens", "output": "0 tokens"}
    doubtful = changed(usage=Usage(input_total=1, inconsistent=("total",)))
    assert facts(doubtful, "usage")["inconsistent"] == "total"


def test_the_wire_counts_everything() -> None:
    assert facts(PLAIN, "wire") == {
        "received": "1000 bytes",
        "released": "900 bytes",
        "removed": "100 bytes",
        "inserted": "42 bytes",
        "events": "8",
        "keepalives": "2",
        "hashes": f"in and out are equal: sha256 {DIGEST[:16]}…",
        "first event": "after 0.200 s",
        "last event": "after 1.400 s",
    }
    odd = facts(wire(repaired=2, unreadable=1), "wire")
    assert (odd["repaired"], odd["unreadable"]) == ("2 bytes", "1 events")


def test_different_hashes_cannot_be_overlooked() -> None:
    words = hash_words(msgspec.structs.replace(PLAIN.wire, hash_out=OTHER_DIGEST))
    assert words == f"in and out are NOT equal: in {DIGEST[:16]}…, out {OTHER_DIGEST[:16]}…"
    assert "out none" in hash_words(msgspec.structs.replace(PLAIN.wire, hash_out=""))


def test_the_histogram_goes_from_the_first_gap_to_the_last() -> None:
    rows = of(PLAIN)["gaps between events"].rows
    assert [row[:2] for row in rows] == [
        ("to 25 ms", "4"),
        ("to 50 ms", "0"),
        ("to 100 ms", "2"),
        ("to 250 ms", "0"),
        ("to 500 ms", "0"),
        ("to 1 s", "1"),
    ]
    assert [len(row[2]) for row in rows] == [BAR_CELLS, 0, BAR_CELLS // 2, 0, 0, BAR_CELLS // 4]


def test_every_bucket_has_a_name() -> None:
    rows = of(wire(gaps=(1,) * (len(GAP_BOUNDS_S) + 1)))["gaps between events"].rows
    assert rows[0][0] == "to 5 ms"
    assert [row[0] for row in rows[-2:]] == ["to 60 s", "over 60 s"]
    assert len({row[0] for row in rows}) == len(GAP_BOUNDS_S) + 1


def test_one_gap_among_many_still_has_a_bar() -> None:
    rows = of(wire(gaps=(10_000, 1)))["gaps between events"].rows
    assert [len(row[2]) for row in rows] == [BAR_CELLS, 1]


def test_the_longest_gaps() -> None:
    many = of(wire(longest_gaps=tuple((number, 1.0) for number in range(8))))["longest gaps"].rows
    assert len(many) == SHOWN_GAPS
    assert of(PLAIN)["longest gaps"].rows == (("before event 3", "0.900 s"), ("before event 5", "0.090 s"))


def test_insertions_are_told_by_place() -> None:
    title = "inserted into the delivered body"
    assert of(PLAIN)[title].rows == (("at byte 300", "21 bytes"), ("at byte 321", "21 bytes"))
    many = of(wire(insertions=tuple((offset, 21) for offset in range(SHOWN_INSERTIONS + 3))))[title].rows
    assert len(many) == SHOWN_INSERTIONS + 1
    assert many[-1] == ("and", "3 more")
    full = of(wire(insertions=tuple((offset, 21) for offset in range(200))))[title].rows
    assert full[-1] == ("and", "192 more (only the first 200 are kept)")


def test_brief_says_the_same_in_a_few_lines() -> None:
    assert brief(PLAIN) == Section(
        "entry hr_0001",
        (
            ("ended", "completed: stop"),
            ("fault", "nobody's"),
            ("went to", "east: 503 upstream_error after 0.100 s; then west: 200 after 1.399 s"),
            ("tokens", "9 in (4 of them from a cache), 20 out; as the upstream reported"),
            ("first event", "after 0.200 s"),
            ("bytes", "received 1000, released 900, removed 100, inserted 42 (2 keepalives)"),
            ("hashes", f"in and out are equal: sha256 {DIGEST[:16]}…"),
        ),
    )


def test_brief_counts_one_keepalive_as_one() -> None:
    rows = {row[0]: row[1] for row in brief(wire(keepalives=1, inserted=21)).rows}
    assert rows["bytes"].endswith("inserted 21 (1 keepalive)")


def test_usage_beside_tokens() -> None:
    usage = Usage(
        input_total=9, output_total=20, cache_write_5m=3, image_output=4, calls=Calls(web_search=2, file_search=1),
        extra=(ExtraUsage(kind="image_generation", model="img", usage=Usage(output_total=7)),), tier="flex", geo="eu",
    )  # fmt: skip
    said = facts(changed(usage=usage), "usage")
    assert (said["of that for 5 minutes"], said["of it images"]) == ("3 tokens", "4 tokens")
    assert (said["web search"], said["file search"]) == ("2 calls", "1 call")
    assert (said["image generation"], said["tier"]) == ("an unknown number in, 7 out, by img", "flex, eu")
    unnamed = changed(
        usage=Usage(extra=(ExtraUsage(kind="svg", model="", usage=Usage(input_total=1, output_total=0)),))
    )
    assert facts(unnamed, "usage")["svg"] == "1 in, 0 out, by a model that was not named"


def test_money_with_what_it_was_made_of() -> None:
    money = Money(cost=10, charge=15, counted=12, price="ab12", multiplier=1_500_000_000, unpriced=("image",))
    assert facts(changed(money=money), MONEY) == {
        "cost": "0.00000001",
        "charge": "0.000000015",
        "counted in budgets": "0.000000012",
        "price": "version ab12",
        "multiplier": "1.5",
        "without a price": "image",
    }


def test_money_that_is_not_known_is_not_nought() -> None:
    assert facts(PLAIN, MONEY)["cost"] == facts(PLAIN, MONEY)["charge"] == "not known"


def test_money_that_was_rated_again() -> None:
    amended = Amended(original=Money(charge=5, price="old"), revision=2, at=PLAIN.at, reason="new prices")
    (section,) = (one for one in sections(PLAIN, amended) if one.title == MONEY)
    assert section.rows[-3:] == (
        ("rated again", "2 times, last at 2027-01-15 08:00:00 UTC: new prices"),
        ("superseded cost", "not known (price old)"),
        ("superseded charge", "0.000000005"),
    )


def test_an_attempt_has_its_own_cost() -> None:
    attempts = tuple(msgspec.structs.replace(one, cost=10**9) for one in PLAIN.attempts)
    assert of(changed(attempts=attempts))["attempts"].rows[1][-1] == "connection reused; req_1; cost 1"
