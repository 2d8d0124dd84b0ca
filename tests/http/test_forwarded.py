"""Who is believed about a client's address, and how far."""

import pytest

from headrace.http.forwarded import client_address
from headrace.model.request import RequestHead

PROXIES = ("10.0.0.0/8", "2001:db8::/32")


def address(peer: str, *told: str, trusted: tuple[str, ...] = PROXIES) -> str:
    headers = [(b"x-forwarded-for", value.encode("latin-1")) for value in told]
    return client_address(RequestHead("GET", "/", "", headers, peer=peer), trusted)


def test_without_trusted_proxies_it_is_the_peer() -> None:
    assert address("192.0.2.1", "198.51.100.7", trusted=()) == "192.0.2.1"
    assert address("10.0.0.1", "198.51.100.7", trusted=()) == "10.0.0.1"


def test_a_stranger_is_not_believed() -> None:
    assert address("192.0.2.1", "10.0.0.9") == "192.0.2.1"


def test_a_proxy_is_believed_about_who_came_to_it() -> None:
    assert address("10.0.0.1", "198.51.100.7") == "198.51.100.7"
    assert address("10.0.0.1", "1.1.1.1, 198.51.100.7") == "198.51.100.7", "the left part is the client's own word"
    assert address("10.0.0.1", "1.1.1.1", "198.51.100.7") == "198.51.100.7", "several fields are one list"
    assert address("::ffff:10.0.0.1", "198.51.100.7") == "198.51.100.7"


def test_a_chain_of_proxies_is_followed() -> None:
    assert address("10.0.0.1", "198.51.100.7, 2001:db8::5, 10.3.3.3") == "198.51.100.7"
    assert address("10.0.0.1", "10.0.0.3,10.0.0.2") == "10.0.0.3", "all are proxies: the first of them"
    assert address("10.0.0.1") == "10.0.0.1", "a proxy that says nothing"


@pytest.mark.parametrize("told", ["unknown", "", "198.51.100.7, _hidden", "a" * 500, "fe80::1%" + "x" * 500])
def test_a_word_that_is_no_address_leaves_it_unknown(told: str) -> None:
    assert address("10.0.0.1", told) == ""


@pytest.mark.parametrize(
    ("told", "found"),
    [("198.51.100.7:4711", "198.51.100.7"), ("[2a00::1]:4711", "2a00::1"), ("[2a00::1]", "2a00::1"), ("2a00::1",) * 2],
)
def test_ports_are_dropped(told: str, found: str) -> None:
    assert address("10.0.0.1", told) == found


def test_a_unix_socket_is_believed_only_by_name() -> None:
    assert address("", "198.51.100.7") == ""
    assert address("", "198.51.100.7", trusted=("unix",)) == "198.51.100.7"
    assert address("192.0.2.1", "198.51.100.7", trusted=("unix",)) == "192.0.2.1"
