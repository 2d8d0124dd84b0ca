"""Where state is kept outside the directory, as text: the database, and what workers share."""

import re
from typing import Annotated

from headrace.config.forms import Form, Reading
from headrace.config.secret import content_of_reference

# What stands in each part is for the driver to judge; this is what no driver could take.
_VALKEY = re.compile(r"valkeys?://([^\s/?#@]*@)?([^\s/?#@:\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[0-9]{0,5})?")
_POSTGRESQL = re.compile(r"postgresql://[^\s/?#]*/[^\s/?#]+(\?[^\s#]*)?")


def _read_database(text: str, reading: Reading) -> str:
    content = content_of_reference(text, reading)
    if content is not None:
        text = content.strip().decode("utf-8", "replace")
    if text == "sqlite":
        return ""
    if text.startswith("postgres://"):
        raise ValueError("must begin with postgresql://")
    if not _POSTGRESQL.fullmatch(text) or not text.isprintable():
        raise ValueError("must be sqlite or postgresql://[user:password@]host[:port]/database")
    return text


def _read_shared(text: str, reading: Reading) -> str:
    content = content_of_reference(text, reading)
    if content is not None:
        text = content.strip().decode("utf-8", "replace")
    if text == "memory":
        return ""
    if text.startswith(("redis://", "rediss://")):
        raise ValueError(
            "must begin with valkey://, or valkeys:// for TLS; Redis from version 7 on answers to that too"
        )
    if not _VALKEY.fullmatch(text) or not text.isprintable():
        raise ValueError("must be memory or valkey://[[user]:password@]host[:port][/number]")
    return text


def show_database(url: str) -> str:
    """`sqlite`, or no more than which kind it is: an address may hold a password."""
    return "postgresql://…" if url else "sqlite"


def show_shared(url: str) -> str:
    """`memory`, or no more than which kind it is: an address may hold a password."""
    return f"{url.partition(':')[0]}://…" if url else "memory"


DatabaseText = Annotated[
    str, Form("sqlite or postgresql://[user:password@]host[:port]/database, env:NAME or file:PATH",
              _read_database, show_database)
]  # fmt: skip
SharedText = Annotated[
    str, Form("memory or valkey://[[user]:password@]host[:port][/number], env:NAME or file:PATH",
              _read_shared, show_shared)
]  # fmt: skip
