"""`headrace models`."""

from tests.cli.declared import Beside


def test_the_list(beside: Beside) -> None:
    rows = [line.split() for line in beside.did("models", "list").splitlines()[2:]]
    assert rows == [
        ["gpt", "active", "sim", "(gpt-up),", "sim", "chat,", "responses", "unknown", "unknown", "file"],
        ["priced", "active", "sim", "chat", "1.25", "10", "file"],
        ["sim-*", "active", "sim", "chat,", "responses", "unknown", "unknown", "file"],
    ]
    gpt, priced, _ = beside.told("models", "list")
    assert (gpt["price"], gpt["max_output"], priced["price"]["rates"]) == (
        None,
        4000,
        {"input": "1.25", "output": "10"},
    )


def test_what_a_name_means(beside: Beside) -> None:
    assert beside.told("models", "show", "sim-x")["name"] == "sim-*"
    text = beside.did("models", "show", "gpt")
    assert "4,000 at most" in text and "keys with a budget cannot use it" in text and "gpt-up" in text
    assert "version" in beside.did("models", "show", "priced")
    assert "there is no model x" in beside.refused("models", "show", "x")
