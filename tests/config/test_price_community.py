"""The community's list of per-token costs."""

import pytest

from headrace.config.price_community import LeftOutError, Reading, is_community
from headrace.config.source import Block, read


def entry(text: str) -> Block:
    root, faults = read(f"{{{text}}}")
    assert not faults
    return root


def price(text: str) -> Block:
    return Reading().price("m", entry(text))


def test_figures_become_units_per_million() -> None:
    text = """
        "input_cost_per_token": 1.25e-06, "output_cost_per_token": 0.00001, "cache_read_input_token_cost": 1.25E-7,
        "cache_creation_input_token_cost": 1.5625e-06, "cache_creation_input_token_cost_above_1hr": 2.5e-6,
        "output_cost_per_reasoning_token": 1.2e-05, "input_cost_per_audio_token": 3.2e-05,
        "output_cost_per_audio_token": 6.4e-05, "input_cost_per_image_token": 5e-06,
        "output_cost_per_image_token": 3e-05, "file_search_cost_per_1k_calls": 2.5,
        "search_context_cost_per_query": {"search_context_size_low": 0.01, "search_context_size_high": 0.010},
        "max_tokens": 128000, "mode": "chat", "supports_vision": true, "input_cost_per_image": null
    """
    assert price(text) == {
        "input": "1.25",
        "output": "10",
        "cached_input": "0.125",
        "cache_write": {"5m": "1.5625", "1h": "2.5"},
        "reasoning": "12",
        "audio_input": "32",
        "audio_output": "64",
        "image": "5",
        "image_output": "30",
        "calls": {"file_search": "0.0025", "web_search": "0.01"},
    }


def test_no_digit_is_lost_or_made_up() -> None:
    """The first as a binary fraction, times a million: 0.5700000000000001."""
    assert price('"input_cost_per_token": 5.7e-07, "output_cost_per_token": 0.000000000000001') == {
        "input": "0.57",
        "output": "0.000000001",
    }


def test_tiers_stand_apart() -> None:
    text = """
        "input_cost_per_token": 2e-06, "input_cost_per_token_flex": 1e-06, "input_cost_per_token_priority": 4e-06,
        "output_cost_per_token_batches": 5e-06, "cache_read_input_token_cost_flex": 1e-07
    """
    assert price(text) == {
        "input": "2",
        "tiers": {"batch": {"output": "5"}, "flex": {"input": "1", "cached_input": "0.1"}, "priority": {"input": "4"}},
    }


LONG = """
    "input_cost_per_token": 1.25e-06, "input_cost_per_token_above_200k_tokens": 2.5e-06,
    "output_cost_per_token": 1e-05, "output_cost_per_token_above_200k_tokens": 1.5e-05,
    "output_cost_per_reasoning_token": 1e-05, "cache_read_input_token_cost": 1e-7
"""


def test_a_long_context_becomes_factors() -> None:
    factors = {"above": "200000", "factors": {"input": "2", "output": "1.5"}}
    assert price(LONG) == {"input": "1.25", "output": "10", "cached_input": "0.1", "long_context": factors}
    written = """, "cache_creation_input_token_cost": 1e-6, "cache_creation_input_token_cost_above_200k_tokens": 2e-6,
        "cache_creation_input_token_cost_above_1hr": 3e-6,
        "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 6e-6"""
    assert price(LONG + written)["long_context"] == factors | {
        "factors": {"cache_write": "2", "input": "2", "output": "1.5"}
    }
    same = '"input_cost_per_token": 1e-6, "input_cost_per_token_above_128k_tokens": 1e-6'
    assert price(same) == {"input": "1"}
    free = '"input_cost_per_token": 0, "input_cost_per_token_above_128k_tokens": 0'
    assert price(free) == {"input": "0"}


def test_a_tier_whose_long_context_costs_otherwise_is_left_out() -> None:
    alike = """, "input_cost_per_token_priority": 2e-6, "input_cost_per_token_above_200k_tokens_priority": 4e-6,
        "output_cost_per_token_priority": 2e-5, "output_cost_per_token_above_200k_tokens_priority": 3e-5"""
    assert price(LONG + alike)["tiers"] == {"priority": {"input": "2", "output": "20"}}
    for other in (
        ', "input_cost_per_token_flex": 1e-6',
        ', "input_cost_per_token_flex": 1e-6, "input_cost_per_token_above_200k_tokens_flex": 3e-6',
        ', "input_cost_per_token_above_200k_tokens_flex": 3e-6',
        ', "output_cost_per_token_flex": 3e-6, "input_cost_per_token_above_200k_tokens_flex": 3e-6',
    ):
        reading = Reading()
        assert "tiers" not in reading.price("m", entry(LONG + other))
        assert reading.ignored == {"the tier flex, whose long context costs otherwise": ["m"]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('"output_cost_per_image": 0.04', "has no price per token"),
        ('"input_cost_per_token_flex": 1e-6', "has no price per token"),
        ('"input_cost_per_token": "much"', "input_cost_per_token is no price"),
        ('"input_cost_per_token": -1e-6', "input_cost_per_token is no price"),
        ('"input_cost_per_token": .nan', "input_cost_per_token is no price"),
        ('"input_cost_per_token": Infinity', "input_cost_per_token is no price"),
        ('"input_cost_per_token": [1]', "input_cost_per_token is no price"),
        ('"input_cost_per_token": 1e-999999999', "input_cost_per_token is no price"),
        ('"input_cost_per_token": 1e999999', "input_cost_per_token is no price"),
        ('"input_cost_per_token": 1.2345678901e-06', "input_cost_per_token has more digits than a price can have"),
        ('"input_cost_per_token": 1.25000000000000000000000000000000000001e-06', "has more digits than a price"),
        ('"search_context_cost_per_query": {"low": [1]}', "search_context_cost_per_query is no price"),
        (
            '"input_cost_per_token": 3e-6, "input_cost_per_token_above_200k_tokens": 4e-6',
            "input costs in a long context what no factor says exactly",
        ),
        (
            '"input_cost_per_token": 1e-6, "output_cost_per_token_above_200k_tokens": 4e-6',
            "output has a price in a long context only",
        ),
        (
            '"input_cost_per_token": 1e-6, "input_cost_per_token_above_128k_tokens": 2e-6,'
            ' "input_cost_per_token_above_256k_tokens": 4e-6',
            "has prices above more than one number of tokens",
        ),
        (
            '"input_cost_per_token": 1e-6, "cache_creation_input_token_cost": 1e-6,'
            ' "cache_creation_input_token_cost_above_1hr": 1e-6,'
            ' "cache_creation_input_token_cost_above_200k_tokens": 2e-6,'
            ' "cache_creation_input_token_cost_above_1hr_above_200k_tokens": 3e-6',
            "cache_write costs in a long context what no factor says exactly",
        ),
    ],
)
def test_what_cannot_be_said_exactly_is_left_out(text: str, reason: str) -> None:
    with pytest.raises(LeftOutError, match=reason):
        price(text)


def test_fields_without_a_counterpart_are_remembered() -> None:
    reading = Reading()
    sizes = '"search_context_cost_per_query": {"low": 0.03, "high": 0.05}'
    assert reading.price("a", entry(f'"input_cost_per_token": 0, "input_cost_per_image": 0.1, {sizes}')) == {
        "input": "0"
    }
    reading.price("b", entry('"input_cost_per_token": 0, "input_cost_per_image": 0.2, "input_cost_per_second": 0.0'))
    assert reading.ignored == {"input_cost_per_image": ["a", "b"], "search_context_cost_per_query": ["a"]}


def test_the_file_is_told_from_ones_own() -> None:
    assert is_community(entry('"a": {"mode": "x"}, "b": {"cache_read_input_token_cost": 0}'))
    assert not is_community(entry('"a": {"input": 1}, "b": [{"input": 1}], "c": null'))
