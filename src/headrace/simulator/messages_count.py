"""Anthropic's `POST …/messages/count_tokens`: the tokens of a prompt, by the simulator's rule. Never a stream."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from headrace.simulator import messages
from headrace.simulator.answer import Answer, Asked
from headrace.simulator.scenario import Scenario
from headrace.simulator.spelling import Event

PATH = "/messages/count_tokens"
ENDS_IN_DONE = False

done_event = messages.done_event
error_body = messages.error_body
error_event = messages.error_event
id_from = messages.id_from
own_headers = messages.own_headers


def read_request(body: bytes) -> Asked:
    """What is to be counted; raises RequestError."""
    return replace(messages.read_turns(body)[0], stream=False)


def events(answer: Answer, scenario: Scenario) -> Iterator[Event]:
    """None: what a script may force into a stream is that of messages."""
    return iter(())


def whole(answer: Answer, scenario: Scenario) -> bytes:
    """`{"input_tokens": n}`."""
    return msgspec.json.encode({"input_tokens": answer.counts.prompt})
