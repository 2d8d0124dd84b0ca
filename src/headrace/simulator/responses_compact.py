"""OpenAI's `POST …/responses/compact`: the input as one opaque item, which counts as output. Never a stream."""

from base64 import b64encode

import msgspec

from headrace.simulator import responses_input_tokens
from headrace.simulator.answer import Answer
from headrace.simulator.responses_objects import UsageField, usage_object
from headrace.simulator.scenario import Scenario

PATH = "/responses/compact"
ENDS_IN_DONE = False

done_event = responses_input_tokens.done_event
error_body = responses_input_tokens.error_body
error_event = responses_input_tokens.error_event
events = responses_input_tokens.events
id_from = responses_input_tokens.id_from
own_headers = responses_input_tokens.own_headers
read_request = responses_input_tokens.read_request


class _Item(msgspec.Struct, kw_only=True):
    id: str
    type: str = "compaction"
    encrypted_content: str


class _Compaction(msgspec.Struct, kw_only=True):
    id: str
    object: str = "response.compaction"
    created_at: int
    output: list[_Item]
    usage: UsageField


def whole(answer: Answer, scenario: Scenario) -> bytes:
    """The `response.compaction` object."""
    item = _Item(
        id=f"cmp_{answer.id.removeprefix('resp_')}",
        encrypted_content=b64encode(answer.choices[0].text.text.encode()).decode(),
    )
    usage = usage_object(answer.counts, scenario.content.usage)
    return msgspec.json.encode(_Compaction(id=answer.id, created_at=answer.created, output=[item], usage=usage))
