"""Secrets of keys."""

import re
import zlib

import pytest

from headrace.cli.keys.secret import ALPHABET, PREFIX, RANDOM, check_of, new_secret


def test_its_form() -> None:
    assert re.fullmatch(r"sk-hr-[0-9A-Za-z]{49}", new_secret())


def test_what_is_random_has_192_bits_and_more() -> None:
    assert len(set(ALPHABET)) ** RANDOM >= 2**192


def test_no_two_are_alike() -> None:
    secrets = {new_secret() for _ in range(1000)}
    assert len(secrets) == 1000
    assert {one[len(PREFIX)] for one in secrets} == set(ALPHABET), "each place takes every character"


def test_the_last_six_characters_are_the_crc_of_the_rest() -> None:
    secret = new_secret()
    value = 0
    for character in secret[-6:]:
        value = value * len(ALPHABET) + ALPHABET.index(character)
    assert value == zlib.crc32(secret[:-6].encode())


@pytest.mark.parametrize("place", [6, 20, 48])
def test_a_mistyped_one_is_known_by_them(place: int) -> None:
    secret = new_secret()
    other = "a" if secret[place] != "a" else "b"
    typed = secret[:place] + other + secret[place + 1 :]
    assert check_of(typed[:-6]) != typed[-6:]
