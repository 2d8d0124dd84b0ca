"""The suite's own promises: a hang is a failure, and so is what a loop leaves open."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import uvloop

SETTINGS = Path(__file__).parents[1] / "pyproject.toml"
HANGS = """
import asyncio, uvloop

def test_that_hangs():
    uvloop.run(asyncio.sleep(60))
"""


def test_what_a_loop_leaves_open_is_an_error_once_it_is_closed() -> None:
    loop = uvloop.new_event_loop()
    loop.run_until_complete(loop.create_server(asyncio.Protocol, "127.0.0.1", 0))
    with pytest.raises(ResourceWarning, match="unclosed resource <TCPServer"):
        loop.close()
    assert loop.is_closed()


def test_a_test_that_hangs_in_a_loop_ends(tmp_path: Path) -> None:
    """What pytest-timeout raises there, uvloop logs and goes on."""
    (tmp_path / "test_it.py").write_text(HANGS)
    limits = ["-o", "timeout=1", "-o", "faulthandler_timeout=2"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", SETTINGS, "--rootdir", tmp_path, "-p", "no:cacheprovider", *limits, "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 1
    assert "in test_that_hangs" in ended.stderr
