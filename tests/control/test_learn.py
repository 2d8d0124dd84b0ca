import random
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.control import learn
from headrace.control.learn import Lessons
from headrace.metering.estimate import MESSAGES, TEXT, input_tokens, output_tokens
from headrace.model.entry import Entry
from headrace.model.estimate import NO_TEXT, Ratios, TextCount
from headrace.model.usage import ExtraUsage, Usage
from headrace.protocols.features import Features
from tests.metering.counted_texts import TOKENIZERS, Counted, counted_texts

TEXTUAL = TextCount(events=2, ascii_bytes=4_000, words=700, marks=90, digits=20)


def entry(
    usage: Usage,
    sent: TextCount = NO_TEXT,
    generated: TextCount = NO_TEXT,
    model: str = "m",
    key: str = "k",
    origin: str = "upstream",
) -> Entry:
    return Entry(
        id="hr_1",
        at=1.0,
        duration_s=1.0,
        protocol="chat",
        operation="chat.completions",
        key=key,
        model=model,
        end="completed",
        reason="stop",
        usage=usage,
        usage_origin=origin,
        sent=sent,
        generated=generated,
    )


def taught(entries: list[Entry]) -> Lessons:
    lessons = Lessons()
    for one in entries:
        lessons.add(one)
    return lessons


# ---- ratios


def answers(texts: list[Counted], rng: random.Random) -> Iterator[tuple[TextCount, int]]:
    """Beginnings of texts as complete answers, and their tokens."""
    for text in texts:
        for _ in range(8):
            tokens = rng.randint(15, len(text.ends))
            features = Features()
            features.run(text.pieces(0, tokens, 3))
            yield features.counted(), tokens


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_learned_ratios_fit_any_tokenizer(tokenizer: str) -> None:
    """Taught by every other text, tried on the rest; then the other way round."""
    texts = [text for text in counted_texts(tokenizer) if text.kind != "other"]
    found: dict[str, list[float]] = {}
    for half in (0, 1):
        rng = random.Random(half)
        lessons = taught([
            entry(Usage(output_total=tokens), generated=count) for count, tokens in answers(texts[half::2], rng)
        ])  # fmt: skip
        learned = lessons.learned()["m"]
        for text in texts[1 - half :: 2]:
            for count, tokens in answers([text], rng):
                found.setdefault(text.kind, []).append(abs(output_tokens(count, learned) - tokens) / tokens)
    means = {kind: sum(values) / len(values) for kind, values in found.items()}
    means["mix"] = sum(means.values()) / len(means)
    sys.stdout.write(f"\n| learned, {tokenizer} |" + "".join(f" {100 * means[kind]:.1f} |" for kind in sorted(means)))
    assert max(means.values()) <= 0.15
    assert means["mix"] <= 0.07


def like(factor: float) -> list[Entry]:
    """Entries of a model that takes `factor` times the tokens that the constants say."""
    found = []
    rng = random.Random(7)
    for _ in range(60):
        words = rng.randint(50, 2_000)
        count = TextCount(
            events=3,
            ascii_bytes=words * rng.randint(5, 7),
            other_bytes=rng.randint(0, words) * 3,
            words=words,
            marks=rng.randint(0, words),
            digits=rng.randint(0, 20),
        )
        usage = Usage(
            input_total=round(input_tokens(count, None) * factor),
            output_total=round(output_tokens(count, None) * factor),
        )
        found.append(entry(usage, count, count))
    return found


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.4])
def test_both_directions_are_learned(factor: float) -> None:
    learned = taught(like(factor)).learned()["m"]
    assert input_tokens(TEXTUAL, learned) == pytest.approx(input_tokens(TEXTUAL, None) * factor, rel=0.03)
    assert output_tokens(TEXTUAL, learned) == pytest.approx(output_tokens(TEXTUAL, None) * factor, rel=0.03)


def test_a_change_of_tokenizer_is_followed() -> None:
    learned = taught(like(1.0) * 10 + like(1.4) * 50).learned()["m"]
    assert output_tokens(TEXTUAL, learned) == pytest.approx(output_tokens(TEXTUAL, None) * 1.4, rel=0.1)


def test_alike_texts_say_little_about_others() -> None:
    """A model that has seen prose alone still knows of CJK text what the constants say, in proportion."""
    prose = [entry(Usage(output_total=round(output_tokens(TEXTUAL, None) * 1.2)), generated=TEXTUAL)] * 100
    wide = TextCount(events=1, other_bytes=3_000, other_chars=1_000)
    ratio = output_tokens(wide, taught(prose).learned()["m"]) / output_tokens(wide, None)
    assert 0.9 < ratio < 1.35


def test_a_model_of_few_entries_has_no_ratios() -> None:
    learned = taught(like(1.4)[: learn.ENOUGH - 1]).learned()
    assert "m" not in learned
    assert taught(like(1.4)[: learn.ENOUGH]).learned()["m"].output is not None


@pytest.mark.parametrize(
    "nonsense",
    [
        Usage(input_total=10**9, output_total=10**9),
        Usage(input_total=1, output_total=1),
        Usage(input_total=0, output_total=0),
        Usage(input_total=-5, output_total=-5),
        Usage(input_total=10**30, output_total=10**30),
        Usage(),
    ],
)
def test_nonsense_teaches_nothing(nonsense: Usage) -> None:
    good = taught(like(1.2)).learned()["m"]
    after = taught(like(1.2) + [entry(nonsense, TEXTUAL, TEXTUAL)] * 50).learned()["m"]
    assert (after.input, after.output) == (good.input, good.output)


def test_outliers_bend_little() -> None:
    """One entry of ten has twice the tokens, as where a prompt is added that nobody sees."""
    entries = []
    for at, one in enumerate(like(1.0) * 5):
        entries.append(one)
        if at % 10 == 0:
            told = Usage(input_total=2 * (one.usage.input_total or 0), output_total=2 * (one.usage.output_total or 0))
            entries.append(entry(told, one.sent, one.generated))
    learned = taught(entries).learned()["m"]
    assert output_tokens(TEXTUAL, learned) == pytest.approx(output_tokens(TEXTUAL, None), rel=0.08)


def test_short_texts_and_media_teach_no_ratios() -> None:
    tiny = TextCount(events=1, ascii_bytes=10, words=2)
    with_image = TextCount(events=1, ascii_bytes=4_000, words=700, media_tokens=1_000)
    learned = taught([entry(Usage(input_total=2_000, output_total=9), with_image, tiny)] * 50).learned()["m"]
    assert (learned.input, learned.output) == (None, None)


@pytest.mark.parametrize("origin", ["estimated", "upstream_partial", "none"])
def test_only_the_upstreams_own_figures_teach(origin: str) -> None:
    usage = Usage(input_total=1_000, output_total=1_000, cached_input=500)
    assert not taught([entry(usage, TEXTUAL, TEXTUAL, origin=origin)] * 50).learned()
    assert not taught([entry(usage, TEXTUAL, TEXTUAL, model="")] * 50).learned()


def test_where_other_models_took_part_nothing_is_taught() -> None:
    usage = Usage(
        input_total=1_000,
        output_total=1_000,
        extra=(ExtraUsage(kind="fallback", model="x", usage=Usage(input_total=1)),),
    )
    assert not taught([entry(usage, TEXTUAL, TEXTUAL)] * 50).learned()


@pytest.mark.parametrize("shown", [True, False])
def test_reasoning_counts_where_it_is_shown(shown: bool) -> None:
    """What was kept back is no part of the text, and must not make it dearer."""
    text = output_tokens(TEXTUAL, None)
    usage = Usage(output_total=text if shown else 3 * text, reasoning=text // 2 if shown else 2 * text)
    learned = taught([entry(usage, generated=TEXTUAL)] * 50).learned()["m"]
    assert output_tokens(TEXTUAL, learned) == pytest.approx(text, rel=0.02)


def test_an_answer_that_is_all_reasoning() -> None:
    usage = Usage(output_total=900, reasoning=900)
    learned = taught([entry(usage, generated=TEXTUAL)] * 50).learned()["m"]
    assert output_tokens(TEXTUAL, learned) == pytest.approx(900, rel=0.05)


# ---- lengths


def lengths(*figures: int) -> int | None:
    lesson = taught([entry(Usage(output_total=figure)) for figure in figures]).learned().get("m")
    return lesson.output_p95 if lesson is not None else None


def test_the_95th_percentile_of_answers() -> None:
    assert lengths(*range(1, 20)) is None
    assert lengths(*range(1, 21)) == 19
    assert lengths(*range(1, 101)) == 95


def test_only_the_latest_answers_count() -> None:
    assert lengths(*[10_000] * 1_000, *[100] * 940) == 10_000
    assert lengths(*[10_000] * 1_000, *[100] * 960) == 100


# ---- cached shares


def test_a_keys_cached_share() -> None:
    lessons = taught(
        [
            *[entry(Usage(input_total=1_000, cached_input=800), key="a")] * 50,
            *[entry(Usage(input_total=1_000), key="b")] * 50,
            *[entry(Usage(input_total=1_000, cached_input=9_000), key="c")] * 3,
        ]
    )
    assert lessons.learned()["m"].cached_shares == {"a": 0.8, "c": 1.0}


def test_a_cached_share_follows_the_latest() -> None:
    old = [entry(Usage(input_total=1_000, cached_input=0))] * 100
    new = [entry(Usage(input_total=1_000, cached_input=1_000))] * 50
    assert taught(old + new).learned()["m"].cached_shares["k"] > 0.95


def test_the_shares_of_so_many_keys_are_kept() -> None:
    told = Usage(input_total=10, cached_input=5)
    shares = taught([entry(told, key=f"k{at}") for at in range(learn.MOST_SHARES + 5)]).learned()["m"].cached_shares
    assert len(shares) == learn.MOST_SHARES
    assert "k4" not in shares and "k5" in shares


# ---- models


def test_each_model_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learn, "MOST_MODELS", 2)
    told = Usage(input_total=10, cached_input=5)
    lessons = taught([entry(told, model=model) for model in ("a", "b", "a", "c")])
    assert lessons.learned().keys() == {"a", "c"}, "the one that was used longest ago goes"


def test_asking_twice_says_the_same() -> None:
    lessons = taught(like(1.2))
    assert lessons.learned() == lessons.learned()


figures = st.none() | st.integers(-(10**20), 10**20)
counts = st.builds(TextCount, **{name: st.integers(-5, 10**12) for name in TextCount.__struct_fields__})


@given(st.lists(st.tuples(figures, figures, figures, figures, counts, counts), max_size=40))
def test_it_never_raises(rows: list[tuple[Usage, TextCount, TextCount]]) -> None:
    lessons = taught([entry(*row) for row in rows])
    for lesson in lessons.learned().values():
        for ratios, constants in ((lesson.input, MESSAGES), (lesson.output, TEXT)):
            if ratios is not None:
                assert all(
                    0 <= getattr(ratios, name) <= 5 * getattr(constants, name) for name in Ratios.__struct_fields__
                )
