import pytest

from headrace.upstream.address import is_forbidden, numeric


@pytest.mark.parametrize(
    "text",
    ["169.254.169.254", "169.254.0.1", "169.254.170.2", "fe80::1", "fe80::1%eth0", "febf::1", "fd00:ec2::254",
     "fd00:ec2::254%1", "fd20:ce::254", "100.100.100.200", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe",
     "::ffff:100.100.100.200", "::169.254.169.254", "64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1"],
)  # fmt: skip
def test_forbidden(text: str) -> None:
    address = numeric(text)
    assert address is not None and is_forbidden(address)


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1", "10.0.0.1", "192.168.1.1", "172.16.0.1", "8.8.8.8", "100.100.100.201", "169.253.1.1", "::1", "::",
     "fd00::1", "2606:4700::1", "::ffff:8.8.8.8", "fec0::1", "64:ff9b::8.8.8.8"],
)  # fmt: skip
def test_allowed(text: str) -> None:
    address = numeric(text)
    assert address is not None and not is_forbidden(address)


@pytest.mark.parametrize("text", ["example.org", "", "0x7f.1", "2852039166", "169.254.43518", "1.2.3.4.5", "[::1]"])
def test_names(text: str) -> None:
    assert numeric(text) is None
