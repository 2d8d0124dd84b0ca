"""The scripts in `lua/`, each behind what all of them know."""

from pathlib import Path

NAMES = ("beat", "claim", "cover", "enter", "leave", "look", "settle", "write")
_FOLDER = Path(__file__).with_name("lua")


def script_text(name: str) -> str:
    """A script as Valkey is given it."""
    return "\n".join((_FOLDER / f"{part}.lua").read_text(encoding="utf-8") for part in ("prelude", name))
