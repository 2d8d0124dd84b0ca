"""GET /v1/usage: a key's own page."""

import json

from headrace.admission.standing import standing_claims, usage_page
from headrace.model.allowance import Balance
from headrace.model.key import Key
from headrace.model.limits import NANO, Budget, Limits, Window
from headrace.model.owner import Owner

AT = 1_796_000_000.0  # 2026-11-30T00:53:20Z


def test_all_of_it() -> None:
    key = Key(
        "k", b"d", owner="team", limits=Limits(10, 500, 3), budget=Budget(5 * NANO, Window.MONTH), expires=AT + 60
    )
    owner = Owner("team", Limits(), Budget(0, Window.TOTAL))
    asked = standing_claims(key, owner, AT)
    page = json.loads(
        usage_page(
            key,
            asked,
            [
                Balance(4, 700, 2, NANO // 8, 3 * NANO, requests_reset_s=12.34, tokens_reset_s=59.0),
                Balance(4, 700, 2, None, 0),
            ],
            AT,
        )
    )
    assert page == {
        "object": "usage",
        "at": "2026-11-30T00:53:20Z",
        "key": {
            "name": "k",
            "requests_per_minute": {"limit": 10, "used": 4, "remaining": 6, "reset_s": 12.3},
            "tokens_per_minute": {"limit": 500, "used": 700, "remaining": 0, "reset_s": 59.0},
            "concurrent": {"limit": 3, "used": 2, "remaining": 1},
            "budget": {
                "amount": "5",
                "window": "month",
                "spent": "0.125",
                "held": "3",
                "remaining": "1.875",
                "resets_at": "2026-12-01T00:00:00Z",
            },
        },
        "owner": {
            "name": "team",
            "requests_per_minute": None,
            "tokens_per_minute": None,
            "concurrent": None,
            "budget": {
                "amount": "0",
                "window": "total",
                "spent": None,
                "held": "0",
                "remaining": None,
                "resets_at": None,
            },
        },
        "expires_at": "2026-11-30T00:54:20Z",
        "expired": False,
    }


def test_a_key_without_anything() -> None:
    key = Key("k", b"d", expires=AT - 1)
    page = json.loads(usage_page(key, standing_claims(key, None, AT), [Balance(0, 0, 0, None, 0)], AT))
    assert page["expired"] is True and "owner" not in page
    assert page["key"]["budget"] is None and page["key"]["concurrent"] is None
