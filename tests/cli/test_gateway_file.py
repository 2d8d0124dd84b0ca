"""What commands beside the gateway read from its file."""

from pathlib import Path

import pytest
import typer

from headrace.cli.gateway_file import KeyPlace, KeyUnreadableError, base_url, read_gateway_file, root_url
from headrace.model.settings import Address, ServerSettings, TlsFiles

FILE = """
state: {directory: s, database: "env:HR_TEST_DB", secret: "env:HR_TEST_SECRET"}
channels:
  a:
    base_url: https://a.example/v1
    protocols: [chat]
    proxy: env:HR_TEST_PROXY
    credentials: [{name: one, secret: "env:HR_TEST_A"}, {name: two, secret: "env:HR_TEST_B"}]
models:
  m: {routes: [{channel: a}]}
keys:
  - {name: by-variable, secret: "env:HR_TEST_KEY"}
  - {name: by-file, secret: "file:k", models: [m]}
  - {name: written, secret: sk-written-0123456789}
  - {name: old, secret: sk-old-0123456789abcdef, expires: 2020-01-01}
  - {name: off, secret: sk-off-0123456789abcdef, state: disabled}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """With references to what is not set, but for the file of a key."""
    (tmp_path / "k").write_text("sk-from-file-0123456789\n")
    path = tmp_path / "g.yaml"
    path.write_text(FILE)
    return path


def test_it_is_read_without_its_secrets(file: Path) -> None:
    read = read_gateway_file(file)
    assert [key.name for key, _ in read.usable_keys()] == ["by-variable", "by-file", "written"]
    assert read.catalogue.find_model("m") is not None
    assert read.draft.settings.state.directory == str(file.parent / "s")


def test_each_key_is_read_from_its_place(file: Path) -> None:
    variable, path, written = (place for _, place in read_gateway_file(file).usable_keys())
    assert (variable.variable, path.file) == ("HR_TEST_KEY", str(file.parent / "k"))
    assert variable.read({"HR_TEST_KEY": " sk-v \n"}) == "sk-v"
    assert path.read({}) == "sk-from-file-0123456789"
    assert written.read({}) == "sk-written-0123456789"
    assert "sk-written" not in repr(written)
    with pytest.raises(KeyUnreadableError, match="HR_TEST_KEY, which is not set here"):
        variable.read({})


def test_a_key_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(KeyUnreadableError, match="cannot read the key"):
        KeyPlace(f"file:{tmp_path}").read()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(KeyUnreadableError, match="it is not text"):
        KeyPlace(f"file:{tmp_path / 'binary'}").read()


def test_a_bad_file_ends_the_command(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(FILE.replace("routes", "rutes"))
    with pytest.raises(typer.Exit) as ended:
        read_gateway_file(file)
    assert ended.value.exit_code == 2
    assert "did you mean routes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("listen", "tls", "url"),
    [
        ([Address("127.0.0.1", 8080)], False, "http://127.0.0.1:8080"),
        ([Address("0.0.0.0", 80)], True, "https://127.0.0.1:80"),
        ([Address("::", 8080)], False, "http://[::1]:8080"),
        ([Address("127.0.0.1", 0)], False, ""),
        ([Address(path="/run/g")], False, "unix:/run/g"),
        ([Address(path="/run/g"), Address("gate.example", 443)], True, "https://gate.example:443"),
    ],
)  # fmt: skip
def test_where_a_client_of_this_machine_goes(listen: list[Address], tls: bool, url: str) -> None:
    assert base_url(ServerSettings(listen=tuple(listen), tls=TlsFiles("c", "k") if tls else None)) == url


@pytest.mark.parametrize(
    "written", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/", "http://h:1/v1beta"]
)
def test_a_base_url_with_or_without_its_version(written: str) -> None:
    assert root_url(written) == "http://h:1"
