import json

import pytest

from headrace.simulator import messages_count
from headrace.simulator.answer import Asked, answer_from
from headrace.simulator.request import RequestError
from headrace.simulator.scenario import Content, Scenario

BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "123456"}]}


def test_the_prompt_is_counted() -> None:
    asked = messages_count.read_request(json.dumps(BODY).encode())
    assert asked == Asked("m", False, input="123456", prompt_tokens=2)
    answer = answer_from(Content(), asked, "i", 1)
    assert json.loads(messages_count.whole(answer, Scenario())) == {"input_tokens": 2}
    assert list(messages_count.events(answer, Scenario())) == []


def test_a_model_is_needed() -> None:
    with pytest.raises(RequestError, match="model"):
        messages_count.read_request(b"{}")
