"""Estimates tokens where an upstream did not say how many there were, and says where a bill's usage comes from. Pure.

The upstream's own figure stands wherever it came after the last output, an explicit 0 too. Otherwise the larger of the
estimate and the last figure is taken, and the usage is marked: `upstream_partial` where all of it is the upstream's,
`estimated` where any part is ours. How good estimates are: docs/reference/estimates.md.
"""

from operator import mul
from typing import Final

import msgspec

from headrace.model.estimate import Learned, Ratios, TextCount, quantities, weights
from headrace.model.usage import NOTHING, Usage

UPSTREAM: Final = "upstream"
PARTIAL: Final = "upstream_partial"
ESTIMATED: Final = "estimated"
NONE: Final = "none"

TEXT: Final = Ratios(ascii_byte=0.168, word=0.2, mark=0.61, digit=0.59, other_char=0.336, wide_byte=0.372)
"""Tokens of text until a model's own ratios are learned: fitted once to `o200k_base` over prose, code and JSON."""
MESSAGES: Final = msgspec.structs.replace(TEXT, fixed=3.0, event=4.0)
"""The same for a request, whose messages stand in a frame of control tokens (OpenAI's figures)."""


def output_tokens(count: TextCount, learned: Learned | None) -> int:
    """Tokens of generated text."""
    ratios = learned.output if learned is not None else None
    return _tokens(count, ratios or TEXT)


def input_tokens(sent: TextCount, learned: Learned | None) -> int:
    """Tokens of a request, its inline media included; 0 where nothing was sent."""
    if sent.empty:
        return 0
    ratios = learned.input if learned is not None else None
    return _tokens(sent, ratios or MESSAGES)


def completed_usage(
    reported: Usage,
    is_final: bool,
    sent: TextCount,
    generated: TextCount,
    learned: Learned | None,
    parent_tokens: int = 0,
    *,
    key: str = "",
    begun: bool = False,
) -> tuple[Usage, str]:
    """The usage to bill, and its origin's word.

    `is_final`: nothing was generated after the last report. `parent_tokens`: all tokens of the response that the
    request goes on from. `begun`: an answer has begun, even if no text of it came; without it only text or a report
    says that anything was used. `key` names whose habit splits an estimated input into cached and not.
    """
    has_text = bool(generated.ascii_bytes or generated.other_bytes)
    if not (reported.known or has_text or begun):
        return NOTHING, NONE
    told_output = reported.output_total is not None and is_final
    tells_no_output = is_final and reported.known and not has_text
    if told_output or tells_no_output:
        output = reported.output_total
    else:
        output = max(output_tokens(generated, learned), reported.output_total or 0)
    ours = output != reported.output_total
    usage = msgspec.structs.replace(reported, output_total=output) if ours else reported
    if reported.input_total is None and not tells_no_output:
        usage = _with_input(usage, input_tokens(sent, learned) + max(parent_tokens, 0), learned, key)
        ours = True
    return usage, ESTIMATED if ours else UPSTREAM if is_final else PARTIAL


def _with_input(usage: Usage, tokens: int, learned: Learned | None, key: str) -> Usage:
    """`usage` with an estimated input, split as the key's earlier ones were."""
    share = learned.cached_shares.get(key, 0.0) if learned is not None else 0.0
    cached = int(tokens * min(max(share, 0.0), 1.0)) if usage.cached_input is None else usage.cached_input
    return msgspec.structs.replace(usage, input_total=max(tokens, cached), cached_input=cached or usage.cached_input)


def _tokens(count: TextCount, ratios: Ratios) -> int:
    tokens: float = sum(map(mul, quantities(count), weights(ratios)))
    return round(tokens) + count.media_tokens
