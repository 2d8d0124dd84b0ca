import pytest

from headrace.model.request import ReplyHead
from headrace.upstream.recovery import retry_after_s

NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:07 GMT"}, 30),
        ({"retry-after": "Sun, 06 Nov 1994 08:00:00 GMT"}, 0),
        ({"retry-after": "Sun, 06 Foo 1994 08:50:07 GMT"}, None),
        ({"retry-after": "Sun, 46 Nov 1994 08:50:07 GMT"}, None),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "7", "retry-after-ms": "x"}, 7),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360),
        ({"x-ratelimit-reset-requests": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-reset-tokens": "17ms", "x-ratelimit-reset-requests": "8s"}, 0.017),
        ({"x-ratelimit-reset-tokens": "1s", "x-ratelimit-reset-requests": "8s",
          "x-ratelimit-remaining-requests": "0"}, 8),
        ({"x-ratelimit-reset-tokens": "9s", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-requests": "8s",
          "x-ratelimit-remaining-requests": "0"}, 9),
        ({"x-ratelimit-reset-tokens": "12"}, 12),
        ({"x-ratelimit-reset-tokens": "later"}, None),
        ({"anthropic-ratelimit-requests-reset": "1994-11-06T08:49:47Z"}, 10),
        ({"anthropic-ratelimit-requests-reset": "1994-11-06T08:49:47"}, 10),
        ({"anthropic-ratelimit-requests-reset": "1994-11-06T08:00:00Z"}, 0),
        ({"anthropic-ratelimit-requests-reset": "Tuesday"}, None),
    ],
)  # fmt: skip
def test_the_wait(headers: dict[str, str], seconds: float | None) -> None:
    head = ReplyHead(429, [(name.encode(), value.encode()) for name, value in headers.items()])
    got = retry_after_s(head, NOW)
    assert got == (None if seconds is None else pytest.approx(seconds))
