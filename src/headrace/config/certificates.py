"""Files in PEM form: certificate authorities, a server's certificate, and its private key."""

import ssl
from pathlib import Path
from typing import Annotated

from headrace.config.forms import Form, Reading

MAX_KEY_FILE = 64 << 10


def _read_certificates(text: str, reading: Reading) -> str:
    path = reading.path(text)
    if not reading.references and not path.is_file():
        raise ValueError(f"file {path} does not exist, or is no regular file")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=str(path))
    except ssl.SSLError:
        raise ValueError(f"file {path} holds no certificates in PEM form") from None
    except (OSError, ValueError) as error:
        raise ValueError(_unreadable(path, error)) from None
    return str(path)


def _read_private_key(text: str, reading: Reading) -> str:
    path = reading.path(text)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_KEY_FILE)
    except (OSError, ValueError) as error:
        raise ValueError(_unreadable(path, error)) from None
    if b"PRIVATE KEY-----" not in content:
        raise ValueError(f"file {path} holds no private key in PEM form")
    if b"ENCRYPTED" in content:
        raise ValueError(f"the key in file {path} has a passphrase; `openssl pkey -in FILE -out FILE` takes it off")
    return str(path)


def _unreadable(path: Path, error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else "not a path"
    return f"cannot read file {str(path)!r}: {reason}"


def pair_error(cert: str, key: str) -> str | None:
    """Why a server cannot use the certificate with the key, said of the key; or None."""
    try:
        # Without a password OpenSSL would ask on the terminal for a key that has one.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError as error:
        if error.reason in {"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"}:
            return "is not the key of the first certificate in cert"
        return f"cannot be used with the certificate in cert: {error.reason or 'it cannot be read'}"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None


AuthoritiesText = Annotated[str, Form("the path of a PEM file, relative to this file", _read_certificates)]
CertificateText = AuthoritiesText
PrivateKeyText = Annotated[str, Form("the path of a PEM file, relative to this file", _read_private_key)]
