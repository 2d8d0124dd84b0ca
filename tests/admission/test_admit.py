"""What a key may ask for, in which order it is told, and what is near to a mistyped name."""

from headrace.admission.admit import admit, admit_call, unknown_model
from headrace.model.channel import BaseUrl, Channel, Credential, Model, Route
from headrace.model.key import Key
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call
from headrace.model.settings import StreamSettings
from headrace.model.wire import Asked, WireProtocol

CHAT = WireProtocol.CHAT
KEY = Key("dev", b"digest")
MODEL = Model("gpt-x", (Route("a"),))
HOME = Channel("a", BaseUrl("https", "a.example", 443, ""), frozenset({CHAT}), (Credential("main", "s"),), home=True)


class Models:
    """A catalogue with one model."""

    def __init__(
        self, offered: bool | WireProtocol = True, formats: tuple[str, ...] = ("openai_responses",), home: bool = False
    ) -> None:
        self.offered = offered
        self.words = formats
        self.home = home

    def find_model(self, name: str) -> Model | None:
        """By its exact name."""
        return MODEL if name == MODEL.name else None

    def offers(self, model: Model, protocol: WireProtocol) -> bool:
        """All, none or one."""
        return self.offered if isinstance(self.offered, bool) else protocol is self.offered

    def formats(self, model: Model) -> tuple[str, ...]:
        """Those given."""
        return self.words

    def find_home(self, key: Key, protocol: WireProtocol, operation: str) -> Channel | None:
        """If there is one."""
        return HOME if self.home else None

    def close_names(self, name: str, key: Key) -> tuple[str, ...]:
        """Near to anything that begins alike."""
        return ("gpt-x",) if name.startswith("gpt") else ()


def call(model: str) -> Call:
    return Call(CHAT, "chat.completions", model, asked=Asked.JSON, body=b"{}")


def test_admitted() -> None:
    assert admit("gpt-x", CHAT, KEY, Models()) is MODEL
    assert admit_call(call("gpt-x"), KEY, Models(), StreamSettings()) is MODEL


def test_an_unknown_model() -> None:
    problem = admit("gpt-y", CHAT, KEY, Models())
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.http_status, problem.param, problem.did_you_mean) == (
        Kind.MODEL_NOT_FOUND,
        404,
        "model",
        "gpt-x",
    )
    assert unknown_model("claude", KEY, Models()).did_you_mean is None


def test_a_name_is_told_in_bounds() -> None:
    problem = unknown_model("x" * 300_000, KEY, Models())
    assert len(problem.message) < 400


def test_a_model_that_the_key_may_not_use() -> None:
    problem = admit("gpt-x", CHAT, Key("dev", b"", models=("claude-*",)), Models(offered=False))
    assert isinstance(problem, Problem) and (problem.kind, problem.http_status) == (Kind.MODEL_NOT_ALLOWED, 403)


def test_a_protocol_that_is_not_offered() -> None:
    problem = admit("gpt-x", CHAT, KEY, Models(offered=False))
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.http_status, problem.accepted_formats) == (
        Kind.PROTOCOL_NOT_OFFERED,
        400,
        ("openai_responses",),
    )
    assert "openai_responses" in problem.message
    nothing = admit("gpt-x", CHAT, KEY, Models(offered=False, formats=()))
    assert isinstance(nothing, Problem) and "nothing" in nothing.message
    embeds = admit("gpt-x", CHAT, KEY, Models(offered=WireProtocol.EMBEDDINGS, formats=()))
    assert isinstance(embeds, Problem) and embeds.message.endswith("It takes: /v1/embeddings.")


def test_a_request_without_a_model_goes_home() -> None:
    limits = StreamSettings(total=7200.0)
    home = admit_call(call(""), KEY, Models(home=True), limits)
    assert isinstance(home, Model) and home.routes == (Route("a"),) and home.stream is limits
    problem = admit_call(call(""), KEY, Models(), limits)
    assert isinstance(problem, Problem) and (problem.kind, problem.param) == (Kind.BAD_REQUEST, "model")
