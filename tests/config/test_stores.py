"""Where state is kept."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from headrace.config.forms import Reading
from headrace.config.stores import DatabaseText, SharedText, show_database, show_shared

DATABASE, SHARED = TypeAdapter(DatabaseText), TypeAdapter(SharedText)
URLS = [
    "postgresql://db/headrace",
    "postgresql://me:p%40ss@db.example:5432/headrace",
    "postgresql://[::1]:5432/headrace?sslmode=require",
    "postgresql:///headrace?host=/run/postgresql",
]


@pytest.mark.parametrize("url", URLS)
def test_a_database_is_an_address_or_a_reference_to_one(url: str, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f" {url}\n")
    reading = Reading(tmp_path, {"URL": url})
    for text in (url, "env:URL", "file:url"):
        assert DATABASE.validate_python(text, context=reading) == url


def test_the_usual_database_is_a_file() -> None:
    assert DATABASE.validate_python("sqlite", context=Reading(Path(), {})) == ""


@pytest.mark.parametrize(
    "text", ["", "db", "postgresql:/db/x", "postgresql://db/", "postgresql://db/a b", "postgresql://db/x\x07", "file:x"]
)
def test_what_is_no_database(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError) as caught:
        DATABASE.validate_python(text, context=Reading(tmp_path, {}))
    assert "Value error" in str(caught.value)


def test_an_address_is_not_shown() -> None:
    assert [show_database(url) for url in ("", URLS[1])] == ["sqlite", "postgresql://…"]


@pytest.mark.parametrize(
    "url",
    [
        "valkey://cache",
        "valkey://cache.example:6380/3",
        "valkeys://:p%40ss@cache.example",
        "valkey://me:pass@[::1]:6379/0",
    ],
)
def test_what_is_shared_is_an_address_or_a_reference_to_one(url: str, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f" {url}\n")
    reading = Reading(tmp_path, {"URL": url})
    for text in (url, "env:URL", "file:url"):
        assert SHARED.validate_python(text, context=reading) == url


def test_the_usual_place_of_limits_is_memory() -> None:
    assert SHARED.validate_python("memory", context=Reading(Path(), {})) == ""
    assert [show_shared(url) for url in ("", "valkeys://:secret@a")] == ["memory", "valkeys://…"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "none",
        "valkey:/a",
        "valkey://",
        "valkey://a/x",
        "valkey://a b",
        "valkey://a:b@c@d",
        "redis://a",
        "rediss://a",
    ],
)
def test_what_cannot_be_shared(text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SHARED.validate_python(text, context=Reading(Path(), {}))
    assert "Value error" in str(caught.value)
