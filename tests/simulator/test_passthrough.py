"""The simulator's smaller endpoints, in JSON and in forms."""

import json

import pytest

from headrace.simulator.answer import answer_from
from headrace.simulator.passthrough import PIECE_BYTES, Made, find, read_request, speech_from
from headrace.simulator.request import Request, RequestError
from headrace.simulator.scenario import Content

FORM = (
    b'--B\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n'
    b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n\0\r\n--A\xff123\r\n'
    b'--B\r\nContent-Disposition: form-data; name="n"\r\n\r\n2\r\n'
    b'--B\r\nContent-Disposition: form-data; name="stream"\r\n\r\ntrue\r\n--B--\r\n'
)


def request(body: object, type: str = "application/json") -> Request:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("POST", "/v1/x", "1.1", (("Content-Type", type),), content)


def made(path: str, body: object, type: str = "application/json") -> Made:
    asked, fields = read_request(request(body, type))
    make = find(path)
    assert make is not None
    return make(fields, answer_from(Content(), asked, "id", 1))


def value(path: str, body: object, type: str = "application/json") -> dict[str, object]:
    read: dict[str, object] = json.loads(made(path, body, type).pieces[0])
    return read


def test_a_form_is_read() -> None:
    asked, fields = read_request(request(FORM, "multipart/form-data; boundary=B"))
    assert (asked.model, asked.stream, asked.prompt_tokens) == ("m", True, 3)
    assert (fields.n, fields.file_bytes) == (2, 10)


@pytest.mark.parametrize("body", [b"", b"junk", FORM[:40]])
def test_a_form_that_cannot_be_read(body: bytes) -> None:
    with pytest.raises(RequestError):
        read_request(request(body, "multipart/form-data; boundary=B"))


def test_images_and_their_usage() -> None:
    asked = {"model": "m", "prompt": "12345", "n": 3}
    image = value("/v1/images/generations", asked)
    assert len(image["data"]) == 3  # type: ignore[arg-type]
    assert image["usage"]["total_tokens"] == 302  # type: ignore[index]
    assert "usage" not in value("/v1/images/variations", FORM, "multipart/form-data; boundary=B")


def test_moderations_have_a_result_for_each_input() -> None:
    made = value("/v1/moderations", {"input": ["a", "b"]})
    assert (len(made["results"]), made["model"]) == (2, "omni-moderation-latest")  # type: ignore[arg-type]


def test_speech_comes_in_pieces() -> None:
    speech = made("/v1/audio/speech", {"model": "m", "input": "x"})
    assert speech.in_pieces and len(speech.pieces) > 3
    assert {len(piece) for piece in speech.pieces} == {PIECE_BYTES}
    assert speech_from("a") == speech_from("a") != speech_from("b")


def test_transcriptions_as_json_and_as_text() -> None:
    json_form = value("/v1/audio/transcriptions", {"model": "m"})
    text_form = made("/v1/audio/translations", {"model": "m", "response_format": "text"})
    assert text_form.pieces[0].decode() == f"{json_form['text']}\n"


def test_rerank_sorts_by_words() -> None:
    documents = ["a dog", {"text": "a red cat"}]
    results = value("/v1/rerank", {"model": "m", "query": "red cat", "documents": documents})["results"]
    assert [one["index"] for one in results] == [1, 0]  # type: ignore[attr-defined]


def test_videos_are_queued() -> None:
    assert value("/v1/videos", {"model": "m", "prompt": "x"})["status"] == "queued"
    assert find("/v1/videos/x") is None
