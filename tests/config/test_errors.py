"""Faults and the error that holds them."""

from headrace.config.errors import ConfigError, Fault, sentence


def test_a_sentence_names_what_is_known() -> None:
    assert sentence("f.yaml", Fault(3, "a.b", "is wrong")) == "f.yaml:3: a.b: is wrong"
    assert sentence("f.yaml", Fault(3, "", "is wrong")) == "f.yaml:3: is wrong"
    assert sentence("f.yaml", Fault(None, "", "is wrong")) == "f.yaml: is wrong"
    assert sentence("f.yaml", Fault(None, "a", "is wrong")) == "f.yaml: a: is wrong"


def test_faults_stand_in_the_order_of_their_lines() -> None:
    error = ConfigError("f", (Fault(9, "a", "x"), Fault(None, "", "y"), Fault(2, "b", "z"), Fault(9, "c", "w")))
    assert str(error) == "f: y\nf:2: b: z\nf:9: a: x\nf:9: c: w"
