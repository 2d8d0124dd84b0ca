"""Sealed texts: they open under the same secret for the same purpose only, and say why they do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.sealing import SealError, key_id, seal, unseal

SECRET = bytes(range(32))
OTHER = bytes(range(1, 33))


@given(data=st.binary(max_size=500), purpose=st.text(max_size=20))
def test_what_is_sealed_opens_again(data: bytes, purpose: str) -> None:
    sealed = seal(SECRET, purpose, data)
    assert unseal(SECRET, purpose, sealed) == data
    assert len(sealed) == len(data) + 37


def test_each_seal_is_another_text() -> None:
    assert seal(SECRET, "a", b"same") != seal(SECRET, "a", b"same")


def test_nothing_of_the_text_shows() -> None:
    assert b"sk-upstream" not in seal(SECRET, "a", b"sk-upstream" * 10)


def test_another_secret_is_named_as_the_reason() -> None:
    with pytest.raises(SealError, match="another secret"):
        unseal(OTHER, "a", seal(SECRET, "a", b"text"))


def test_another_purpose_does_not_open_it() -> None:
    with pytest.raises(SealError, match="another purpose"):
        unseal(SECRET, "b", seal(SECRET, "a", b"text"))


@pytest.mark.parametrize("kept", range(len(seal(SECRET, "a", b"text"))))
def test_a_text_cut_anywhere_does_not_open(kept: int) -> None:
    with pytest.raises(SealError):
        unseal(SECRET, "a", seal(SECRET, "a", b"text")[:kept])


@pytest.mark.parametrize("at", range(len(seal(SECRET, "a", b"text"))))
def test_a_text_changed_anywhere_does_not_open(at: int) -> None:
    sealed = bytearray(seal(SECRET, "a", b"text"))
    sealed[at] ^= 1
    with pytest.raises(SealError):
        unseal(SECRET, "a", bytes(sealed))


def test_a_later_form_is_named_as_the_reason() -> None:
    with pytest.raises(SealError, match="form"):
        unseal(SECRET, "a", b"\x02" + seal(SECRET, "a", b"text")[1:])


def test_a_key_id_names_a_secret_and_no_part_of_it() -> None:
    assert key_id(SECRET) == key_id(bytes(SECRET)) != key_id(OTHER)
    assert key_id(SECRET) not in SECRET


def test_the_form_stays_as_it_is() -> None:
    """What an earlier version stored opens for ever: this text was sealed when the form was made."""
    sealed = bytes.fromhex(
        "01e6a1bd395c743831608928dc35ed58543edeae00a4c0fdd1727a764aebf49c62a9fc8fe296eb57bef99edccaaa3c2a"
    )
    assert unseal(SECRET, "upstream secret", sealed) == b"sk-upstream"
