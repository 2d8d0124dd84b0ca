"""Addresses and networks; what is wrong with others is told as files in bad.py."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from headrace.config.forms import Reading
from headrace.config.networks import Network, TrustedProxy

READING = Reading(Path(), {})


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("192.0.2.7", "192.0.2.7/32"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.0/255.0.0.0", "10.0.0.0/8"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:DB8::/32", "2001:db8::/32"),
        ("::1", "::1/128"),
        ("::/0", "::/0"),
    ],
)
def test_networks_are_written_in_one_way(text: str, network: str) -> None:
    for kind in (Network, TrustedProxy):
        assert TypeAdapter(kind).validate_python(text, context=READING) == network


def test_a_unix_socket_is_among_proxies_only() -> None:
    assert TypeAdapter(TrustedProxy).validate_python("unix", context=READING) == "unix"
    with pytest.raises(ValidationError, match="an IP address or a network"):
        TypeAdapter(Network).validate_python("unix", context=READING)
