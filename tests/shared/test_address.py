"""Where Valkey is."""

import pytest

from headrace.shared.address import ValkeyAddress, address_from_url


def test_an_address_has_defaults() -> None:
    assert address_from_url("valkey://cache") == ValkeyAddress("cache", 6379, tls=False)


def test_all_parts_of_an_address() -> None:
    found = address_from_url("valkeys://me:p%40ss@[::1]:6380/3")
    assert found == ValkeyAddress("::1", 6380, tls=True, user="me", password="p@ss", database=3)
    assert address_from_url("valkey://:secret@cache").password == "secret"


def test_a_password_is_not_shown() -> None:
    found = address_from_url("valkey://me:hidden@cache/1")
    assert "hidden" not in repr(found) + str(found)
    assert str(found) == "cache:6379"


@pytest.mark.parametrize("url", ["redis://a", "valkey://", "valkey://a:hidden", "valkey://a/hidden", "valkey://[a"])
def test_what_is_no_address_is_not_quoted(url: str) -> None:
    with pytest.raises(ValueError, match=r"must|names|is no") as caught:
        address_from_url(url)
    assert "hidden" not in str(caught.value)
