"""Decimal texts become billionths, exactly, and come back."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.forms import Form, Reading
from headrace.config.money import AMOUNT, FACTOR, MAX_AMOUNT, PRICE, read_nano, show_nano

READING = Reading(Path(), {})
decimals = st.builds(
    lambda whole, fraction, zeros: f"{whole}.{fraction}{'0' * zeros}" if fraction else f"{whole}",
    st.integers(0, MAX_AMOUNT - 1),
    st.text("0123456789", max_size=9),
    st.integers(0, 12),
)


@given(decimals)
def test_a_decimal_is_read_exactly(text: str) -> None:
    assert read_nano(text, "it", MAX_AMOUNT) == Decimal(text) * 10**9


@given(st.integers(0, MAX_AMOUNT * 10**9))
def test_every_shown_amount_reads_back(nano: int) -> None:
    shown = show_nano(nano)
    assert read_nano(shown, "it", MAX_AMOUNT) == nano
    assert Decimal(shown) * 10**9 == nano
    assert not shown.endswith((".", "0")) or "." not in shown


def test_what_a_binary_fraction_would_spoil() -> None:
    assert read_nano("999999999.999999999", "it", MAX_AMOUNT) == 999_999_999_999_999_999
    assert read_nano("0.1", "it", 1) + read_nano("0.2", "it", 1) == read_nano("0.3", "it", 1)


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1.", ".5", "1e3", "1E-2", "1,5", "1 000", "1_000", "0x1", "nan", "inf", "١", "$1", " 1"]
)
def test_what_is_no_decimal(text: str) -> None:
    with pytest.raises(ValueError, match="must be it"):
        read_nano(text, "it", MAX_AMOUNT)


@pytest.mark.parametrize("text", ["0.0000000001", "1.1234567891"])
def test_nothing_is_rounded(text: str) -> None:
    with pytest.raises(ValueError, match="at most 9 digits after the point"):
        read_nano(text, "it", MAX_AMOUNT)


@pytest.mark.parametrize(("form", "most"), [(AMOUNT, "1000000000"), (PRICE, "1000000"), (FACTOR, "1000")])
def test_each_has_its_range(form: Form[int], most: str) -> None:
    assert form.read("0", READING) == 0
    assert form.read(most, READING) == int(most) * 10**9
    with pytest.raises(ValueError, match=f"at most {most}"):
        form.read(f"{most}.000000001", READING)


def test_the_largest_amount_fits_into_64_bits() -> None:
    assert MAX_AMOUNT * 10**9 < 2**63


def test_nothing_is_shown_as_none() -> None:
    assert [show_nano(nano) for nano in (None, 0, 1, 10**9, 1_250_000_000)] == ["none", "0", "0.000000001", "1", "1.25"]
