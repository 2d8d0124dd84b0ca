"""Header names in lower case: one object for a name, and no more names kept than are bounded."""

from headrace.model.headers import MOST_NAMES, LowerCase, index


def test_one_object_stands_for_a_name() -> None:
    lower = LowerCase()
    assert lower[b"X-Api-Key"] == b"x-api-key"
    assert lower[b"X-API-KEY"] is lower[b"X-Api-Key"] is lower[b"x-api-key"]


def test_names_are_bounded() -> None:
    lower = LowerCase()
    for number in range(2 * MOST_NAMES):
        assert lower[b"X-%d" % number] == b"x-%d" % number
    assert len(lower) <= MOST_NAMES + 1
    before = len(lower)
    assert LowerCase()[b"N" * 65] == b"n" * 65
    assert lower[b"N" * 65] == b"n" * 65 and len(lower) == before


def test_an_index_has_the_first_values() -> None:
    assert index([(b"a", b"1"), (b"b", b"2")]) == {b"a": b"1", b"b": b"2"}
    assert index([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]) == {b"a": b"1", b"b": b"2"}
