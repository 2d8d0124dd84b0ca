"""OpenAI's `POST …/responses/input_tokens`: the tokens of an input, by the simulator's rule. Never a stream."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from headrace.simulator import responses
from headrace.simulator.answer import Answer, Asked
from headrace.simulator.scenario import Scenario
from headrace.simulator.spelling import Event

PATH = "/responses/input_tokens"
ENDS_IN_DONE = False

done_event = responses.done_event
error_body = responses.error_body
error_event = responses.error_event
id_from = responses.id_from
own_headers = responses.own_headers


def read_request(body: bytes) -> Asked:
    """What is to be counted; raises RequestError."""
    return replace(responses.read_request(body), stream=False)


def events(answer: Answer, scenario: Scenario) -> Iterator[Event]:
    """None."""
    return iter(())


def whole(answer: Answer, scenario: Scenario) -> bytes:
    """The object that holds the number."""
    return msgspec.json.encode({"object": "response.input_tokens", "input_tokens": answer.counts.prompt})
