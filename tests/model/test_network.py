"""Addresses and the networks that they are in."""

import pytest

from headrace.model.network import is_within


@pytest.mark.parametrize("address", ["192.0.2.7", "::ffff:192.0.2.7", "198.51.100.1", "2001:db8::1"])
def test_what_is_within(address: str) -> None:
    assert is_within(address, ("192.0.2.7/32", "198.51.100.0/24", "2001:db8::/32", "unix"))


@pytest.mark.parametrize("address", ["192.0.2.8", "198.51.101.1", "2001:db9::1", "", "unix", "localhost", "1"])
def test_what_is_not(address: str) -> None:
    assert not is_within(address, ("192.0.2.7/32", "198.51.100.0/24", "2001:db8::/32", "unix"))


def test_nothing_is_in_no_network() -> None:
    assert not is_within("192.0.2.7", ())
