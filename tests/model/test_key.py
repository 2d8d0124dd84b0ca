"""Keys."""

import pytest

from headrace.model.key import Former, Key


@pytest.mark.parametrize(("expires", "until", "expected"), [(None, 5.0, 5.0), (9.0, 5.0, 5.0), (4.0, 5.0, 4.0)])
def test_a_replaced_secret_is_the_key_with_an_end(expires: float | None, until: float, expected: float) -> None:
    former = Former(b"old", until)
    key = Key("k", b"new", owner="team", expires=expires, former=(former,))
    old = key.by_former(former)
    assert (old.name, old.owner, old.digest, old.expires, old.former) == ("k", "team", b"old", expected, ())
