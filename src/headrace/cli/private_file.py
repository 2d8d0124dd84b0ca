"""Writes files that only their owner may read, whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

PRIVATE = 0o600


def write_private(path: Path, text: str, *, replace: bool = False) -> None:
    """Make `path` with mode 0600; with `replace` over one that is there. FileExistsError otherwise, and OSError."""
    draft = path.with_name(f".{path.name}-{token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
        else:
            path.hardlink_to(draft)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
