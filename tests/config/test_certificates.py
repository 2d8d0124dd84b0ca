"""Files of TLS: what is said of those that cannot be used, in the file's own lines."""

from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import TypeAdapter, ValidationError

from headrace.config import certificates
from headrace.config.draft import load
from headrace.config.errors import ConfigError
from headrace.config.forms import Reading
from headrace.model.settings import TlsFiles
from tests.config.conftest import Write


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a.pem and a.key, b.pem and b.key, and a.key under a passphrase."""
    folder = tmp_path_factory.mktemp("pairs")
    authority = trustme.CA()
    for name in ("a", "b"):
        issued = authority.issue_cert("localhost")
        issued.private_key_pem.write_to_path(str(folder / f"{name}.key"))
        chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
        (folder / f"{name}.pem").write_bytes(chain)
    key = load_pem_private_key((folder / "a.key").read_bytes(), None)
    sealed = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (folder / "sealed.key").write_bytes(sealed)
    (folder / "broken.key").write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    return folder


def test_the_systems_authorities_would_do(tmp_path: Path) -> None:
    adapter: TypeAdapter[str] = TypeAdapter(certificates.AuthoritiesText)
    with pytest.raises(ValidationError, match="cannot read file"):
        adapter.validate_python("a\0b", context=Reading(tmp_path, {}))
    with pytest.raises(ValidationError, match=r"no certificates|cannot read"):
        adapter.validate_python(".", context=Reading(tmp_path, {}))


def test_a_pair_is_taken(write: Write, pairs: Path) -> None:
    path = write("server:\n  tls: {cert: certs/a.pem, key: certs/a.key}\n")
    (path.parent / "certs").symlink_to(pairs)
    folder = path.parent / "certs"
    assert load(path).settings.server.tls == TlsFiles(str(folder / "a.pem"), str(folder / "a.key"))


def test_without_files_there_is_no_tls(write: Write) -> None:
    assert load(write("server: {tls: {}}\n")).settings.server.tls is None


@pytest.mark.parametrize(
    ("tls", "line", "path", "message"),
    [
        ("cert: $/a.pem\n    key: $/b.key", 4, "server.tls.key", "is not the key of the first certificate in cert"),
        ("cert: $/a.pem\n    key: $/sealed.key", 4, "server.tls.key", "has a passphrase; `openssl pkey"),
        ("cert: $/a.pem\n    key: $/broken.key", 4, "server.tls.key", "cannot be used with the certificate in cert"),
        ("cert: $/a.key\n    key: $/a.key", 3, "server.tls.cert", "holds no certificates in PEM form"),
        ("cert: $/a.pem\n    key: $/a.pem", 4, "server.tls.key", "holds no private key in PEM form"),
        ("cert: $/a.pem", 2, "server.tls", "needs key too"),
        ("key: $/a.key", 2, "server.tls", "needs cert too"),
        ("cert: $/a.pem\n    key: $/a.key\n  listen: unix:s", 2, "server.tls", "every address of server.listen is"),
    ],
)
def test_files_that_do_not_fit(write: Write, pairs: Path, tls: str, line: int, path: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(f"server:\n  tls:\n    {tls.replace('$', str(pairs))}\n"))
    (fault,) = caught.value.faults
    assert (fault.line, fault.path) == (line, path)
    assert message in fault.message


def test_a_pair_whose_file_has_gone_is_no_crash(tmp_path: Path, pairs: Path) -> None:
    assert certificates.pair_error(str(pairs / "a.pem"), str(tmp_path / "gone")) == (
        "cannot be read: No such file or directory"
    )
