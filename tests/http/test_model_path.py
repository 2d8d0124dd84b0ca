import pytest

from headrace.http.model_path import decoded, encoded, has_dot_segment, model_and_verb, streams_events


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v1beta/models/gemini-3:generateContent", ("gemini-3", "generateContent")),
        ("/v1/models/gemini-3:streamGenerateContent", ("gemini-3", "streamGenerateContent")),
        ("/v1beta/models/org/name:x:countTokens", ("org/name:x", "countTokens")),
        ("/v1beta/models/org%2Fname%3Ax:embedContent", ("org/name:x", "embedContent")),
        ("/v1beta/models/a%252Fb:batchEmbedContents", ("a%2Fb", "batchEmbedContents")),
        ("/v1beta/models/%E5%8C%97:generateContent", ("北", "generateContent")),
        ("/v1beta/models/%FF:generateContent", ("%FF", "generateContent")),
        ("/v1beta/models/:generateContent", ("", "generateContent")),
        ("/v1beta/models/m", None),
        ("/v1beta/models/m:predict", None),
        ("/v1beta/models/m:generateContent/x", None),
        ("/v1beta/models/m:generateContent%20", None),
        ("/models/m:generateContent", None),
        ("/v2/models/m:generateContent", None),
    ],
)
def test_model_and_verb(path: str, found: tuple[str, str] | None) -> None:
    assert model_and_verb(path) == found


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("gemini-3.8-flash", "gemini-3.8-flash"),
        ("org/name:x@1", "org/name:x@1"),
        ("a b?c#d%e", "a%20b%3Fc%23d%25e"),
        ("北", "%E5%8C%97"),
        ("x\r\ny", "x%0D%0Ay"),
    ],
)
def test_a_name_in_a_path(name: str, wire: str) -> None:
    assert encoded(name) == wire
    assert decoded(wire) == name


def test_streams_events() -> None:
    for query in ("alt=sse", "a=b&alt=sse", "alt=sse&key=k", "$alt=sse", "%24alt=sse"):
        assert streams_events(query), query
    for query in ("", "alt=json", "alt=ssex", "xalt=sse", "alt"):
        assert not streams_events(query), query


def test_dot_segments() -> None:
    for name in (".", "..", "a/../b", "../b", "a/.", "./a"):
        assert has_dot_segment(name), name
    for name in ("", "gpt-4.1", "...", ".a", "a/.b", "a./b", "a..b/c"):
        assert not has_dot_segment(name), name
