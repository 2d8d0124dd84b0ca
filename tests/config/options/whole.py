"""The file in which every option is set to something else than its default, loaded."""

from functools import cache
from pathlib import Path

import trustme

from headrace.config.draft import Draft, load

TEXT = Path(__file__).with_name("whole.yaml").read_text(encoding="utf-8")
ENVIRON = {
    "STATE_SECRET": "ab" * 32,
    "UPSTREAM": "sk-of-the-upstream-0123456789",
    "KEY": "sk-hr-of-the-client-0123456789",
}
SECRETS = (*ENVIRON.values(), "pw-of-the-database", "pw-of-the-valkey", "pw-of-the-proxy", "a-header-may-hold-one")
"""What no output may hold."""


@cache
def _pair() -> tuple[bytes, bytes]:
    issued = trustme.CA().issue_cert("localhost")
    return issued.cert_chain_pems[0].bytes(), issued.private_key_pem.bytes()


def load_whole(folder: Path, text: str = TEXT) -> Draft:
    """Write the file, or one that differs from it a little, and load it."""
    cert, key = _pair()
    (folder / "cert.pem").write_bytes(cert)
    (folder / "key.pem").write_bytes(key)
    path = folder / "headrace.yaml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return load(path, ENVIRON)
