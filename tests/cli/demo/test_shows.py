"""The list of shows."""

from headrace.cli.demo.shows import ANSWER, SHOWS, Show, shows_of


def test_each_has_a_model_of_its_own() -> None:
    assert len({show.model for show in SHOWS}) == len(SHOWS)


def test_every_protocol_shows_the_same() -> None:
    protocols = {show.reading.protocol: show.reading for show in SHOWS}
    assert sorted(shows_of(protocols[show.reading.protocol])[0].model for show in SHOWS[::4]) == sorted(
        show.model for show in SHOWS if show.whole
    )


def test_a_protocols_shows_cover_what_is_promised() -> None:
    shows: tuple[Show, ...] = shows_of(SHOWS[0].reading)
    assert [show.whole for show in shows] == [True, False, False, False]
    assert [show.keepalives > 0 for show in shows] == [False, True, False, False]
    assert [show.failover for show in shows] == [False, False, True, False]
    assert [show.is_cut for show in shows] == [False, False, False, True]


def test_every_upstream_says_the_answer() -> None:
    assert all(show.scenario["text"] == ANSWER for show in SHOWS)
