"""Moments on the command line."""

import pytest
import typer

from headrace.cli.moments import iso_of, moment_ago, moment_ahead, read_span, span_of, words_of

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("24h", 86400), (" 7d ", 604800), ("2w", 1209600), ("0d", 0)],
)
def test_spans(text: str, seconds: int) -> None:
    assert read_span(text) == span_of(text, "--in") == seconds
    assert moment_ahead(text, NOW, "--at") == NOW + seconds
    assert moment_ago(text, NOW, "--since") == NOW - seconds


@pytest.mark.parametrize("text", ["2027-01-15T08:00:00Z", "2027-01-15T09:00:00+01:00"])
def test_dates_and_times(text: str) -> None:
    assert moment_ahead(text, 0.0, "--at") == moment_ago(text, 0.0, "--since") == NOW


@pytest.mark.parametrize("text", ["", "d", "5", "-5d", "1.5h", "5y", "tomorrow", "2027-13-01", "never"])
def test_what_is_neither(text: str) -> None:
    for read in (moment_ahead, moment_ago):
        with pytest.raises(typer.BadParameter, match="must be 2027-01-31, 2027-01-31T18:00:00Z, or "):
            read(text, NOW, "--at")
    with pytest.raises(typer.BadParameter, match="must be a time such as"):
        span_of(text, "--in")


def test_no_span_leads_out_of_the_calendar() -> None:
    assert words_of(moment_ahead("999999w", NOW, "--at")) == "9999-12-31 23:59:59 UTC"
    assert words_of(moment_ago("999999w", NOW, "--since")) == "1970-01-01 00:00:00 UTC"


def test_how_they_are_shown() -> None:
    assert (words_of(NOW + 0.9), words_of(None)) == ("2027-01-15 08:00:00 UTC", "never")
    assert iso_of(NOW + 0.9) == "2027-01-15T08:00:00Z"
