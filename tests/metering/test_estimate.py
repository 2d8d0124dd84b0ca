import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.control.learn import ENOUGH
from headrace.metering.estimate import MESSAGES, TEXT, completed_usage, input_tokens, output_tokens
from headrace.model.estimate import NO_TEXT, Learned, Ratios, TextCount, weights
from headrace.model.usage import NOTHING, Usage
from headrace.protocols.features import Features
from headrace.protocols.media import MEDIA_TOKENS
from headrace.protocols.sent import count_request
from tests.metering.counted_texts import TOKENIZERS, Counted, counted_texts

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "estimates.md"
MIX = ("english", "japanese", "code", "chat")
CUTS = 12
"""Random points at which each text is cut."""
LEAST = 15
"""Tokens that come before a cut; of fewer no estimate is good, and none costs much."""

Errors = dict[str, list[float]]
"""Relative errors by kind of text."""


def said(pieces: list[str], together: int) -> TextCount:
    """The counts over a stream of such pieces, read one by one or in runs."""
    features = Features()
    for at in range(0, len(pieces), together):
        run = pieces[at : at + together]
        if together == 1:
            features.events += 1
            features.text(run[0])
        else:
            features.run(run)
    return features.counted()


def cuts(text: Counted) -> Iterator[int]:
    """Tokens before each cut, and all."""
    rng = random.Random(text.name)
    yield from (rng.randint(LEAST, len(text.ends)) for _ in range(CUTS))
    yield len(text.ends)


def errors(tokenizer: str, estimate: Callable[[Counted, int], tuple[int, int]]) -> Errors:
    """How far `estimate` (what it says, what is right) is off at every cut of every text."""
    found: Errors = {}
    for text in counted_texts(tokenizer):
        for at in cuts(text):
            guess, right = estimate(text, at)
            found.setdefault(text.kind, []).append(abs(guess - right) / right)
    return found


def means(found: Errors) -> dict[str, float]:
    """Mean error by kind, and over the mix, in which each kind weighs the same."""
    by_kind = {kind: sum(values) / len(values) for kind, values in found.items()}
    return {**by_kind, "mix": sum(by_kind[kind] for kind in MIX) / len(MIX)}


def show(name: str, found: dict[str, float]) -> None:
    """A row of the table in docs/reference/estimates.md; seen with `pytest -s`."""
    cells = "".join(f" {100 * found[kind]:.1f} |" for kind in (*MIX, "mix", "other"))
    sys.stdout.write(f"\n| {name} |{cells}")


# ---- how good they are


@pytest.mark.parametrize("together", [1, 32])
@pytest.mark.parametrize("each", [1, 3, 20])
def test_output_of_cut_streams_by_the_constants(each: int, together: int) -> None:
    """Whatever the pieces: a token for each event, several, or large blocks; read one by one, or in runs."""
    found = means(
        errors("o200k_base", lambda text, at: (output_tokens(said(text.pieces(0, at, each), together), None), at))
    )
    show(f"output, {each} a piece", found)
    assert found["mix"] <= 0.05
    assert max(found.values()) <= 0.15


def request(form: str, texts: list[str]) -> bytes:
    """A request with a message for each text."""
    roles = ["user" if at % 2 == 0 else "assistant" for at in range(len(texts))]
    body: dict[str, object]
    if form == "gemini":
        contents = [{"role": role, "parts": [{"text": text}]} for role, text in zip(roles, texts, strict=True)]
        body = {"contents": contents, "generationConfig": {"maxOutputTokens": 4096}}
    elif form == "messages":
        parts = [
            {"role": role, "content": [{"type": "text", "text": text}]} for role, text in zip(roles, texts, strict=True)
        ]
        body = {"model": "claude-x", "max_tokens": 4096, "messages": parts, "stream": True}
    elif form == "responses":
        items = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
        body = {"model": "gpt-5.6-sol", "input": items, "stream": True, "store": False}
    else:
        messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
        body = {"model": "gpt-5.6-sol", "messages": messages, "stream": True, "temperature": 0.7}
    if form == "chat, escaped":
        return json.dumps(body).encode()
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("form", ["chat", "chat, escaped", "responses", "messages", "gemini"])
def test_input_by_the_constants(form: str) -> None:
    """Against the text's tokens with OpenAI's frame: 4 tokens for a message, 3 for the request."""

    def estimate(text: Counted, at: int) -> tuple[int, int]:
        messages = 1 + at % 4
        edges = [at * part // messages for part in range(messages + 1)]
        texts = [text.text(first, last) for first, last in pairwise(edges)]
        return input_tokens(count_request(request(form, texts)), None), at + 4 * messages + 3

    found = means(errors("o200k_base", estimate))
    show(f"input, {form}", found)
    assert found["mix"] <= 0.05
    assert max(found.values()) <= 0.15


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_output_by_the_constants_for_any_tokenizer(tokenizer: str) -> None:
    """The constants are for one tokenizer. For others they serve until a model's own ratios are learned, which is
    tested in tests/control/test_learn.py."""
    found = means(errors(tokenizer, lambda text, at: (output_tokens(said(text.pieces(0, at, 1), 32), None), at)))
    show(f"constants for {tokenizer}", found)
    assert found["mix"] <= 0.30


def test_the_page_tells_the_constants() -> None:
    page = PAGE.read_text()
    names = ("ASCII bytes", "words", "marks", "ASCII digits", "other characters", "their bytes", "messages", "fixed")
    values = weights(TEXT)[2:] + weights(MESSAGES)[1::-1]
    for name, value in zip(names, values, strict=True):
        assert re.search(rf"^\| {name}[^|]*\|[^|]*\| {value:g} \|$", page, re.M), name
    for kind, tokens in MEDIA_TOKENS.items():
        assert f"| {kind} | {tokens:,} |" in page
    assert f"From {ENOUGH} completed entries" in page


# ---- what they are not


counts = st.builds(
    TextCount,
    **{name: st.integers(0, 10**9) for name in TextCount.__struct_fields__},
)
ratios = st.builds(Ratios, **{name: st.floats(0, 10) for name in Ratios.__struct_fields__})
lessons = st.none() | st.builds(Learned, input=st.none() | ratios, output=st.none() | ratios)


@given(counts, lessons)
def test_never_negative(count: TextCount, learned: Learned | None) -> None:
    assert output_tokens(count, learned) >= 0
    assert input_tokens(count, learned) >= 0


@given(st.text(max_size=400), st.text(max_size=400))
def test_more_text_is_never_fewer_tokens(one: str, two: str) -> None:
    assert output_tokens(said([one, two], 1), None) >= output_tokens(said([one], 1), None)


def test_nothing_is_nothing() -> None:
    assert output_tokens(NO_TEXT, None) == input_tokens(NO_TEXT, None) == 0


def test_learned_ratios_take_the_place_of_the_constants() -> None:
    learned = Learned(input=Ratios(fixed=7), output=Ratios(ascii_byte=2, event=1))
    count = TextCount(events=3, ascii_bytes=100, media_tokens=1000)
    assert output_tokens(count, learned) == 203 + 1000
    assert input_tokens(count, learned) == 7 + 1000
    assert input_tokens(count, Learned()) == input_tokens(count, None)


# ---- which usage is billed

ANSWER = TextCount(events=200, ascii_bytes=1000, words=160, marks=30)
ANSWER_TOKENS = output_tokens(ANSWER, None)
SENT = TextCount(events=2, ascii_bytes=500, words=80, marks=10)
SENT_TOKENS = input_tokens(SENT, None)
WHOLE = Usage(input_total=9, output_total=3)


def test_the_upstreams_figure_stands_where_it_came_last() -> None:
    assert completed_usage(WHOLE, True, SENT, ANSWER, None) == (WHOLE, "upstream")


def test_an_explicit_0_is_a_figure() -> None:
    none = Usage(input_total=0, output_total=0)
    assert completed_usage(none, True, SENT, ANSWER, None) == (none, "upstream")


def test_a_placeholder_at_the_start_is_none() -> None:
    """Messages says one token of output before there is any; then 200 deltas come, and a cut."""
    start = Usage(input_total=9, cached_input=4, output_total=1)
    usage, origin = completed_usage(start, False, SENT, ANSWER, None)
    assert (usage.input_total, usage.cached_input, usage.output_total) == (9, 4, ANSWER_TOKENS)
    assert origin == "estimated"


def test_it_is_at_least_the_last_figure() -> None:
    """A figure that counts more than the text shows, as reasoning that is kept back, is not estimated away."""
    running = Usage(input_total=9, output_total=5000, reasoning=4000)
    assert completed_usage(running, False, SENT, ANSWER, None) == (running, "upstream_partial")


def test_without_any_report_both_sides_are_estimated() -> None:
    usage, origin = completed_usage(NOTHING, False, SENT, ANSWER, None)
    assert (usage, origin) == (Usage(input_total=SENT_TOKENS, output_total=ANSWER_TOKENS), "estimated")


def test_the_parents_tokens_are_input() -> None:
    usage, _ = completed_usage(NOTHING, False, SENT, ANSWER, None, 700)
    assert usage.input_total == SENT_TOKENS + 700
    told, _ = completed_usage(WHOLE, False, SENT, ANSWER, None, 700)
    assert told.input_total == 9, "the upstream has counted them"


@pytest.mark.parametrize(("key", "cached"), [("a", SENT_TOKENS // 2), ("b", None), ("c", SENT_TOKENS)])
def test_an_estimated_input_is_cached_as_the_keys_earlier_ones_were(key: str, cached: int | None) -> None:
    learned = Learned(cached_shares={"a": 0.5, "c": 9.0})
    usage, _ = completed_usage(NOTHING, False, SENT, ANSWER, learned, key=key)
    assert (usage.input_total, usage.cached_input) == (SENT_TOKENS, cached)
    assert usage.leaves().uncached == SENT_TOKENS - (cached or 0)


def test_what_brought_nothing_costs_nothing() -> None:
    assert completed_usage(NOTHING, False, SENT, NO_TEXT, None) == (NOTHING, "none")
    assert completed_usage(NOTHING, True, SENT, TextCount(events=1), None) == (NOTHING, "none")


def test_an_answer_that_began_has_read_its_input() -> None:
    usage, origin = completed_usage(NOTHING, False, SENT, NO_TEXT, None, begun=True)
    assert (usage.input_total, usage.output_total, origin) == (SENT_TOKENS, 0, "estimated")


def test_what_has_no_output_needs_none_told() -> None:
    """Embeddings report their input alone."""
    read = Usage(input_total=12)
    assert completed_usage(read, True, SENT, NO_TEXT, None) == (read, "upstream")


def test_an_output_that_the_report_leaves_out_is_estimated() -> None:
    usage, origin = completed_usage(Usage(input_total=12), True, SENT, ANSWER, None)
    assert (usage.input_total, usage.output_total, origin) == (12, ANSWER_TOKENS, "estimated")


def test_an_input_that_the_report_leaves_out_is_estimated() -> None:
    usage, origin = completed_usage(Usage(output_total=5, cached_input=10**6), True, SENT, ANSWER, None)
    assert (usage.input_total, usage.output_total, origin) == (10**6, 5, "estimated"), "no less than its cached part"


figures = st.none() | st.integers(0, 10**9)
reports = st.builds(Usage, input_total=figures, output_total=figures, cached_input=figures, reasoning=figures)


@given(reports, st.booleans(), counts, counts, lessons, st.integers(0, 10**6), st.booleans())
def test_a_bill_is_never_below_what_was_told(
    reported: Usage,
    final: bool,
    sent: TextCount,
    generated: TextCount,
    learned: Learned | None,
    parent: int,
    begun: bool,
) -> None:
    usage, origin = completed_usage(reported, final, sent, generated, learned, parent, begun=begun)
    assert (usage.output_total or 0) >= (reported.output_total or 0)
    assert (usage.input_total or 0) >= (reported.input_total or 0)
    assert (origin in ("upstream", "upstream_partial")) == (usage == reported and reported.known)
    assert (origin == "none") == (not usage.known)
