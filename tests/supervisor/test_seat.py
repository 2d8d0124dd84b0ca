"""The machine of one seat, as transcripts: who is started, who is let go, and how long it rests."""

from headrace.supervisor.seat import LONGEST_REST_S, SHORT_LIVES, Phase, Replaced, Rest, Seat, Spawn


def phase_of(seat: Seat) -> Phase:
    """Its phase now: a type checker takes that of a moment ago for it."""
    return seat.phase


def taken() -> Seat:
    """A seat whose first child serves since 0."""
    seat = Seat()
    assert seat.fill(0.0) == (Spawn(1),)
    assert phase_of(seat) is Phase.STARTING
    assert seat.ready(1) == ()
    assert phase_of(seat) is Phase.TAKEN
    return seat


def test_it_is_filled_once() -> None:
    assert taken().fill(1.0) == ()


def test_who_dies_is_followed_at_once() -> None:
    seat = taken()
    assert seat.died(1, 100.0) == (Spawn(2),)
    assert phase_of(seat) is Phase.STARTING
    assert seat.ready(2) == ()
    assert phase_of(seat) is Phase.TAKEN


def test_who_dies_soon_again_and_again_is_followed_after_longer_and_longer_rests() -> None:
    seat = taken()
    now, rests = 1.0, []
    for number in range(1, SHORT_LIVES + 1):
        assert seat.died(number, now) == (Spawn(number + 1),), "not yet a loop"
    for number in range(SHORT_LIVES + 1, SHORT_LIVES + 10):
        (rest,) = seat.died(number, now)
        assert isinstance(rest, Rest)
        assert phase_of(seat) is Phase.RESTING
        rests.append(rest.seconds)
        now += rest.seconds
        assert seat.rested(now) == (Spawn(number + 1),)
    assert rests[:6] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    assert set(rests[6:]) == {LONGEST_REST_S}


def test_a_life_of_ten_seconds_makes_all_good_again() -> None:
    seat, last = taken(), SHORT_LIVES + 1
    for number in range(1, last):
        assert seat.died(number, 1.0) == (Spawn(number + 1),)
    assert seat.died(last, 2.0) == (Rest(0.1),)
    seat.rested(3.0)
    seat.ready(last + 1)
    assert seat.died(last + 1, 13.0) == (Spawn(last + 2),)
    for number in range(last + 2, last + 2 + SHORT_LIVES):
        assert seat.died(number, 13.5) == (Spawn(number + 1),), "they are counted anew"
    assert seat.died(last + 2 + SHORT_LIVES, 13.5) == (Rest(0.1),), "and so are the rests"


def test_a_change_begins_with_the_successor_and_ends_with_the_old_one() -> None:
    seat = taken()
    assert seat.replace(5.0) == (Spawn(2),)
    assert (seat.phase, seat.sitting, seat.successor) == (Phase.CHANGING, 1, 2)
    assert seat.replace(5.0) == (), "one at a time"
    assert seat.ready(2) == (Replaced(1),)
    assert (seat.phase, seat.sitting, seat.successor) == (Phase.TAKEN, 2, None)
    assert seat.died(1, 900.0) == (), "it has left its seat; nobody follows it"
    assert phase_of(seat) is Phase.TAKEN


def test_a_successor_that_dies_leaves_the_old_one_where_it_was() -> None:
    seat = taken()
    seat.replace(5.0)
    assert seat.died(2, 5.1) == ()
    assert (seat.phase, seat.sitting) == (Phase.TAKEN, 1)
    assert seat.replace(6.0) == (Spawn(3),)


def test_the_old_one_that_dies_in_a_change_is_followed_by_the_successor() -> None:
    seat = taken()
    seat.replace(5.0)
    assert seat.died(1, 5.1) == ()
    assert (seat.phase, seat.sitting, seat.successor) == (Phase.STARTING, 2, None)
    assert seat.ready(2) == ()
    assert phase_of(seat) is Phase.TAKEN


def test_only_who_serves_can_be_replaced() -> None:
    seat = Seat()
    assert seat.replace(0.0) == ()
    seat.fill(0.0)
    assert seat.replace(0.0) == ()


def test_nobody_follows_in_a_closed_seat() -> None:
    for seat in (taken(), taken()):
        seat.replace(5.0)
        seat.close()
        assert seat.died(2, 6.0) == ()
        assert seat.died(1, 6.0) == ()
        assert seat.rested(7.0) == ()
        assert phase_of(seat) is Phase.CLOSED


def test_a_word_of_a_child_that_is_not_awaited_changes_nothing() -> None:
    seat = taken()
    assert seat.ready(1) == ()
    seat.replace(1.0)
    assert seat.ready(1) == ()
    assert phase_of(seat) is Phase.CHANGING
