"""`headrace verify`."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app
from headrace.cli.verify import Verdict, compare, without_insertions
from headrace.model.entry import Entry, Opened, Wire
from headrace.relay.trace import INSERTIONS, Trace
from tests.cli.entries import PLAIN

FIRST, SECOND = b"data: 1\n\n", b"data: 2\n\n"
KEEPALIVE = b": hopbase-keepalive\n\n"
ERROR = b'data: {"error":{}}\n\n'


def traced(*parts: bytes) -> tuple[Entry, bytes]:
    """The entry of a stream of these parts, and the body as a client gets it. FIRST and SECOND are the upstream's."""
    trace = Trace()
    for part in parts:
        if part in (FIRST, SECOND):
            trace.release(part)
        else:
            trace.insert(part)
    wire = trace.wire(0.0, trace.hash_in(), 0)
    return msgspec.structs.replace(PLAIN, wire=wire), b"".join(parts)


def verdict(entry: Entry, capture: bytes) -> Verdict:
    return compare(entry, capture).verdict


@pytest.mark.parametrize(
    "parts",
    [
        (FIRST, SECOND),
        (KEEPALIVE, FIRST, KEEPALIVE, KEEPALIVE, SECOND, ERROR),
        (FIRST, KEEPALIVE),
        (FIRST, *(KEEPALIVE,) * INSERTIONS),
    ],
)
def test_what_was_delivered_is_equal(parts: tuple[bytes, ...]) -> None:
    entry, body = traced(*parts)
    finding = compare(entry, body)
    assert finding.verdict is Verdict.EQUAL
    assert ("between" in finding.words) == (len(parts) > 2 or KEEPALIVE in parts)


def test_insertions_are_cut_out_where_they_stand() -> None:
    entry, body = traced(KEEPALIVE, FIRST, KEEPALIVE, SECOND, ERROR)
    assert without_insertions(entry.wire, body) == FIRST + SECOND


def test_every_change_of_a_released_byte_is_seen() -> None:
    entry, body = traced(FIRST, KEEPALIVE, SECOND)
    for place in range(len(body)):
        changed = body[:place] + bytes((body[place] ^ 1,)) + body[place + 1 :]
        inserted = len(FIRST) <= place < len(FIRST) + len(KEEPALIVE)
        assert verdict(entry, changed) is (Verdict.EQUAL if inserted else Verdict.DIFFERENT)


def test_another_length_is_told() -> None:
    entry, body = traced(FIRST, KEEPALIVE, SECOND)
    short, long = compare(entry, body[:-3]), compare(entry, body + b"\n")
    assert (short.verdict, long.verdict) == (Verdict.DIFFERENT, Verdict.DIFFERENT)
    assert "3 bytes shorter" in short.words
    assert "cannot be told from a hash" in short.words
    assert "1 bytes longer" in long.words
    assert "head" in compare(entry, b"HTTP/1.1 200 OK\r\n\r\n" + body).words
    assert verdict(entry, b"") is Verdict.DIFFERENT


def test_with_more_insertions_than_are_kept_nothing_is_told() -> None:
    entry, body = traced(FIRST, *(KEEPALIVE,) * (INSERTIONS + 1), SECOND)
    finding = compare(entry, body)
    assert finding.verdict is Verdict.UNKNOWN
    assert f"({INSERTIONS} times)" in finding.words


def test_what_no_entry_can_tell() -> None:
    refused = msgspec.structs.replace(PLAIN, wire=Wire(received=100, hash_out=sha256().hexdigest()))
    assert "the gateway's own" in compare(refused, b"{}").words
    unhashed = msgspec.structs.replace(PLAIN, wire=Wire(released=9))
    assert "no hash" in compare(unhashed, FIRST).words
    assert verdict(refused, b"{}") is verdict(unhashed, FIRST) is Verdict.UNKNOWN


def test_of_a_killed_worker_only_the_beginning_is_known() -> None:
    entry, body = traced(FIRST, KEEPALIVE)
    lost = msgspec.structs.replace(entry, end="interrupted", reason="worker_lost")
    finding = compare(lost, body + SECOND)
    assert finding.verdict is Verdict.EQUAL
    assert "up to the last checkpoint" in finding.words
    assert verdict(lost, b"x" + body[1:] + SECOND) is Verdict.DIFFERENT
    assert verdict(lost, body[:-1]) is Verdict.DIFFERENT


# ----------------------------------------------------------------------------------------------------- the command


def verify(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["verify", *arguments])


@pytest.fixture
def captured(journal: Callable[..., Path], tmp_path: Path) -> tuple[str, ...]:
    """The options for a state with one exchange and an open one, and a capture of the first."""
    entry, body = traced(FIRST, KEEPALIVE, SECOND)
    (tmp_path / "body").write_bytes(body)
    opened = Opened(id="hr_open", at=PLAIN.at, protocol="chat", key="dev")
    return ("--state", str(journal(entry, opened)), "--body", str(tmp_path / "body"))


def test_a_good_capture_is_0(captured: tuple[str, ...]) -> None:
    result = verify("last", *captured)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"exchange {PLAIN.id}\n  equal ")
    assert "39 bytes, 21 of them inserted" in result.stdout


def test_a_bad_capture_is_1(captured: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(FIRST + KEEPALIVE + FIRST)
    result = verify(PLAIN.id, *captured)
    assert result.exit_code == 1
    assert "\n  different " in result.stdout


def test_for_programs(captured: tuple[str, ...]) -> None:
    told = json.loads(verify("last", *captured, "--json").stdout)
    assert (told["id"], told["verdict"]) == (PLAIN.id, "equal")
    assert (told["captured"], told["delivered"], told["inserted"]) == (39, 39, 21)
    assert told["hash_capture"] == told["hash_out"] == sha256(FIRST + SECOND).hexdigest()


def test_a_difference_of_the_gateways_own_hashes_is_told(journal: Callable[..., Path], tmp_path: Path) -> None:
    entry, body = traced(FIRST)
    entry = msgspec.structs.replace(entry, wire=msgspec.structs.replace(entry.wire, hash_in="00"))
    (tmp_path / "body").write_bytes(body)
    result = verify("last", "--state", str(journal(entry)), "--body", str(tmp_path / "body"))
    assert "a fault of the gateway" in result.stdout


@pytest.mark.parametrize(("id", "message"), [("hr_open", "is still open"), ("hr_none", "no exchange hr_none")])
def test_an_exchange_without_an_entry(id: str, message: str, captured: tuple[str, ...]) -> None:
    result = verify(id, *captured)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_no_capture(captured: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "body").unlink()
    result = verify("last", *captured)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"cannot read {tmp_path / 'body'}: ")


@pytest.mark.parametrize("arguments", [[], ["last"], ["last", "--body", "b", "--state", "a", "--config", "c"]])
def test_bad_usage(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b").touch()
    assert verify(*arguments).exit_code == 2
