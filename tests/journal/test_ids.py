"""Ids of exchanges: their form, their order, and that they do not repeat."""

import re
import time

from headrace.journal.ids import Ids, base32


def test_base32_keeps_the_order_of_numbers() -> None:
    numbers = [0, 1, 31, 32, 1023, 1024, 2**64 - 1, 2**64, 2**127, 2**128 - 1]
    texts = [base32(number) for number in numbers]
    assert texts == sorted(texts)
    assert {len(text) for text in texts} == {26}
    assert base32(0) == "0" * 26
    assert base32(2**128 - 1) == "7" + "z" * 25


def test_an_id_has_its_form_and_tells_its_time() -> None:
    before = time.time_ns() // 1_000_000
    text = Ids(0xABCD).new()
    assert re.fullmatch(r"hr_[0-9a-hjkmnp-tv-z]{26}", text)
    number = 0
    for digit in text.removeprefix("hr_"):
        number = number * 32 + "0123456789abcdefghjkmnpqrstvwxyz".index(digit)
    assert before <= number >> 80 <= time.time_ns() // 1_000_000
    assert number >> 64 & 0xFFFF == 0xABCD


def test_ids_do_not_repeat() -> None:
    ids = Ids(1)
    assert len({ids.new() for _ in range(10_000)}) == 10_000
