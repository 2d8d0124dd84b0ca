"""Words about addresses."""

import errno

from headrace.cli.listening import cannot_listen, shown_address
from headrace.model.settings import Address


def test_an_address_as_a_client_writes_it() -> None:
    assert shown_address(Address("127.0.0.1", 80)) == "http://127.0.0.1:80"
    assert shown_address(Address("::1", 80)) == "http://[::1]:80"
    assert shown_address(Address(path="a/socket")) == "unix:a/socket"


def test_an_address_in_use_says_what_to_do() -> None:
    error = OSError(errno.EADDRINUSE, "error while attempting to bind")
    assert cannot_listen("a:1", error, "choose another") == (
        "cannot listen on a:1: address in use; stop what listens there, or choose another"
    )


def test_another_error_is_told_as_the_system_says_it() -> None:
    assert cannot_listen("a:1", OSError(13, "Permission denied"), "x") == "cannot listen on a:1: Permission denied"
    assert cannot_listen("a:1", OSError("odd"), "x") == "cannot listen on a:1: odd"


def test_an_address_that_speaks_tls() -> None:
    assert shown_address(Address("::1", 8443), tls=True) == "https://[::1]:8443"
    assert shown_address(Address(path="/s"), tls=True) == "unix:/s"
