"""Which usage an entry has and a bill rests on, whatever shape the upstream gave it and however the stream ended."""

import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.model.entry import Entry
from headrace.model.usage import Usage
from tests.line.spending import INPUT, OUTPUT, SPENDING, balance, secret_of
from tests.stand import gemini
from tests.stand.client import Client, End
from tests.stand.gateway import GatewayProcess
from tests.stand.messages import BLOCK, DELTA, PATH, STOP, STOP_BLOCK, event, message, text
from tests.stand.stand import Stand, until
from tests.stand.wire import C0, C1, C2, DONE, chat, chunk, error_in, events, request
from tests.wire.reference import blocks
from tests.wire.responses_streams import FOLDER

RESPONSES_PATH = "/v1/responses"
RESP = [block.decode() for block in blocks((FOLDER / "plain.sse").read_bytes())]
"""The reference stream of Responses: eleven events, usage in the last."""
TIMES = 500
JITTER_S = 0.02


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with Stand(Path(tmp_path_factory.mktemp("usage")), SPENDING) as made:
        yield made


def reported(prompt: int, completion: int) -> dict[str, int]:
    """A usage object of Chat Completions."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def responses(model: str) -> dict[str, object]:
    return {"model": model, "input": "How does the water reach the wheel?", "stream": True}


def told(entry: Entry) -> tuple[int | None, int | None, str, int | None]:
    """Input, output, who said so, and the charge."""
    return entry.usage.input_total, entry.usage.output_total, entry.usage_origin, entry.money.charge


# ---- what the upstream reports


@pytest.mark.parametrize("members", ["", ', "usage": null'], ids=["absent", "null"])
def test_a_last_chunk_without_usage_erases_none(stand: Stand, members: str) -> None:
    """Case B028."""
    finish = chunk({}, "stop", usage=reported(14, 52))
    last = f'data: {{"id": "c", "object": "chat.completion.chunk", "choices": []{members}}}\n\n'
    model = stand.model("priced", {"events": [C0, C1, C2, finish, last, DONE]})
    stand.ask(chat(model))
    assert told(stand.entry(model)) == (14, 52, "upstream", 14 * INPUT + 52 * OUTPUT)


def test_usage_on_every_chunk_counts_once_and_the_last_wins(stand: Stand) -> None:
    """Case B029."""
    grown = [chunk({"content": said}, usage=reported(1, count)) for count, said in enumerate("ABC", 1)]
    model = stand.model("priced", {"events": [*grown, chunk({}, "stop", usage=reported(1, 3)), DONE]})
    stand.ask(chat(model))
    assert told(stand.entry(model)) == (1, 3, "upstream", INPUT + 3 * OUTPUT)
    assert len(stand.entries(model)) == 1


def anthropic(first: dict[str, int], last: dict[str, int]) -> list[str]:
    """The reference stream of Messages with these figures at its start and at its end."""
    start = event("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "up",
                                            "content": [], "stop_reason": None, "usage": first})  # fmt: skip
    delta = event("message_delta", delta={"stop_reason": "end_turn"}, usage=last)
    return [start, BLOCK, text("A"), text("北"), text("C"), STOP_BLOCK, delta, STOP]


@pytest.mark.parametrize(
    ("first", "last", "usage"),
    [
        (
            {"input_tokens": 9, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 4, "output_tokens": 1},
            {"input_tokens": 9, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 4, "output_tokens": 16},
            Usage(input_total=14, cached_input=1, cache_write=4, cache_write_5m=4, output_total=16),
        ),
        (
            {"input_tokens": 0, "output_tokens": 0},
            {"input_tokens": 4522, "cache_creation_input_tokens": 4511, "output_tokens": 5},
            Usage(input_total=9033, cache_write=4511, cache_write_5m=4511, output_total=5),
        ),
    ],
    ids=["repeated", "at the end alone"],
)
def test_figures_of_messages_are_cumulative(
    stand: Stand, first: dict[str, int], last: dict[str, int], usage: Usage
) -> None:
    """Cases B031 and B032: what stands at both ends is not added, and what stands at the end alone is not lost."""
    model = stand.model("priced", {"events": anthropic(first, last)})
    stand.ask(message(model), path=PATH)
    entry = stand.entry(model)
    assert (entry.usage, entry.usage_origin) == (usage, "upstream")
    leaves = entry.usage.leaves()
    assert (leaves.uncached, leaves.cache_read, leaves.cache_write_5m) == (
        last["input_tokens"],
        last.get("cache_read_input_tokens", 0),
        last["cache_creation_input_tokens"],
    )


# ---- streams that do not end well


def test_the_placeholder_of_a_broken_stream_is_not_its_output(stand: Stand) -> None:
    """Case B034: one token of output at the start, then 200 deltas, then a reset."""
    words = [text(" the wheel turns") for _ in range(200)]
    started = anthropic({"input_tokens": 9, "output_tokens": 1}, {})[:2]
    model = stand.model("priced", {"events": [*started, *words, DELTA], "cut": {"after_events": 202, "how": "rst"}})
    stand.ask(message(model), path=PATH)
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin, entry.usage.input_total) == ("interrupted", "estimated", 9)
    assert 400 < (entry.usage.output_total or 0) < 800, "600 words"
    assert entry.money.charge == 9 * INPUT + (entry.usage.output_total or 0) * OUTPUT


def leave(stand: Stand, model: str) -> None:
    with stand.connect() as client:
        stand.send(client, responses(model), path=RESPONSES_PATH)
        client.read(until="北".encode())


def stay(stand: Stand, model: str) -> None:
    stand.ask(responses(model), path=RESPONSES_PATH)


@pytest.mark.parametrize(
    ("pattern", "how", "ask", "end", "whose"),
    [
        ("priced", "rst", stay, "interrupted", "upstream"),
        ("priced-impatient", "stall", stay, "stalled", "upstream"),
        ("priced", "stall", leave, "client_gone", "client"),
    ],
    ids=["reset", "stall", "abort"],
)
def test_a_failed_stream_has_its_entry_and_its_bill(
    stand: Stand, pattern: str, how: str, ask: Callable[[Stand, str], None], end: str, whose: str
) -> None:
    """Case B035: who broke it, and what was sent and delivered by then."""
    model = stand.model(pattern, {"events": RESP, "cut": {"after_events": 6, "how": how}})
    ask(stand, model)
    check_interrupted(stand.entry(model), end, whose)
    assert len(stand.entries(model)) == 1


def check_interrupted(entry: Entry, end: str, whose: str) -> None:
    """An entry of the first six events of the reference stream."""
    assert (entry.end, entry.usage_origin) == (end, "estimated")
    assert entry.source == whose or (whose == "client" and entry.reason == "client left")
    assert 4 <= (entry.usage.input_total or 0) <= 40, "some eight words"
    assert 1 <= (entry.usage.output_total or 0) <= 6, "two characters"
    assert entry.money.charge == (entry.usage.input_total or 0) * INPUT + (entry.usage.output_total or 0) * OUTPUT


ENDLESS: dict[str, object] = {"text": "word ", "repeat": 100_000, "gap": 0.02}
FLOOD: dict[str, object] = {"events": [{"text": chunk({"content": "x" * 8000}), "repeat": 4000}]}


def test_sigterm_is_told_in_each_protocol_and_leaves_entries_and_bills(tmp_path: Path) -> None:
    """Cases B035 and B119: streams that do not end, and a client that does not read."""
    with Stand(tmp_path, SPENDING.replace("drain: 5s", "drain: 500ms"), process=True) as stand:
        model = stand.model("priced", {"events": RESP, "cut": {"after_events": 6, "how": "stall"}})
        endless, flood = stand.model("priced", ENDLESS), stand.model("priced", FLOOD)
        assert isinstance(stand.gateway, GatewayProcess)
        with (
            stand.connect() as one, stand.connect() as two, stand.connect() as three, stand.connect() as four,
            stand.connect(receive_buffer=4096) as deaf,
        ):  # fmt: skip
            deaf.send(request(chat(flood)))
            stand.send(two, chat(endless))
            stand.send(three, message(endless), path=PATH)
            stand.send(four, gemini.BODY, path=gemini.path(endless))
            stand.send(one, responses(model), path=RESPONSES_PATH)
            one.read(until="北".encode())
            for client in (two, three, four):
                client.read(until=b"word")
            stand.gateway.signal(signal.SIGTERM)
            assert b"event: response.failed" in events(one.rest().body)[-1]
            assert error_in(two.rest().body)["code"] == "stopped"
            assert events(three.rest().body)[-1].startswith(b'event: error\ndata: {"type":"error"')
            last = four.rest().body.split(b"\r\n\r\n")[-2]
            assert gemini.error_in(last)["status"]
            assert {client.rest().end for client in (one, two, three, four)} == {End.FRAMED}
            assert stand.gateway.exit_code() == 0, "the client that does not read holds it up no longer"
        check_interrupted(stand.entry(model), "stopped", "gateway")
        assert [entry.end for entry in stand.entries(endless, count=3)] == ["stopped"] * 3
        assert stand.entry(flood).end in ("stopped", "client_gone")
        assert all(entry.money.charge for entry in stand.entries(endless))


# ---- once


def test_a_client_that_leaves_as_the_last_event_comes_is_counted_once(stand: Stand) -> None:
    """Case B037: one entry for each, whichever was first, and each hold given back once."""
    model = stand.model("priced", {"events": RESP, "gaps": {10: JITTER_S / 2}})
    rng = random.Random(37)
    pauses = [rng.uniform(0, JITTER_S) for _ in range(TIMES)]

    def once(number: int) -> str:
        with stand.connect() as client:
            found = stand.send(client, responses(model), path=RESPONSES_PATH, key=secret_of("racing")).id
            client.read(until=b"response.output_item.done")
            _part(client, number, pauses[number])
            return found

    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(once, range(TIMES)))
    entries = stand.entries(model, count=TIMES)
    assert sorted(entry.id for entry in entries) == sorted(ids)
    assert {entry.end for entry in entries} == {"completed", "client_gone"}
    until(lambda: balance(stand, "racing")["key"]["concurrent"]["used"] == 0, "the last place")
    standing = balance(stand, "racing")["key"]
    counted = sum(entry.money.counted for entry in entries)
    assert standing["budget"]["held"] == "0"
    assert round(float(str(standing["budget"]["spent"])) * 1e9) == counted > 0


def _part(client: Client, number: int, pause_s: float) -> None:
    """Leave about when the last event comes; some surely before, and some surely behind it."""
    if number % 10 == 1:
        client.read(until=b"response.completed")
    elif number % 10:
        time.sleep(pause_s)
    if number % 2:
        client.reset()
    else:
        client.close()
