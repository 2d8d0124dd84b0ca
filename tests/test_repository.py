"""What the repository holds: nothing that ties it to one machine, one package registry, or unpinned versions."""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"

# Written with [.] so that this file holds none of the names itself.
REGISTRY = re.compile(
    r"pypi[.]org|pythonhosted[.]org|pypi[.]python[.]org|npmjs[.](?:org|com)|yarnpkg[.]com|npmmirror[.]com|"
    r"unpkg[.]com|jsdelivr[.]net|crates[.]io|rubygems[.]org|proxy[.]golang[.]org|anaconda[.]org",
    re.IGNORECASE,
)
DOWNLOAD = re.compile(r"https?://[^\s\"'<>)]+[.](?:whl|tar[.]gz|tgz|tar[.]bz2|tar[.]xz|zip|crate)\b", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(?<![\w.~$}*-])/(?:root|work|home/[\w.-]+|Users/[\w.-]+)(?![\w.-])")
UNPUBLISHED = re.compile(r"\b(?:SPEC|PROTOCOLS|FAULTS|DESIGN)(?:[.]md| [A-J]?[0-9][.0-9]*| [A-J](?:[.][0-9])?)\b")
"""Documents that readers of the repository do not have: what they need of them stands in docs/."""
FOREIGN_LOCKS = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"}

PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*])?==(?P<version>[^\s;\\]+)")


@pytest.fixture(scope="module")
def files() -> list[Path]:
    """Every file that is in the repository or would be with `git add`."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    git = shutil.which("git")
    assert git, "git is not installed"
    listing = subprocess.run(
        # A checkout that belongs to another user is still ours to read.
        [git, "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    paths = [ROOT / os.fsdecode(name) for name in listing.split(b"\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def matches(files: list[Path], pattern: re.Pattern[str]) -> list[str]:
    """`file:line text` of each match."""
    found = []
    for path in files:
        text = path.read_bytes().decode("utf-8", errors="replace")
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(ROOT)}:{line} {match[0]}")
    return found


def test_no_package_registry_is_named(files: list[Path]) -> None:
    assert not matches(files, REGISTRY)


def test_nothing_points_to_a_download(files: list[Path]) -> None:
    assert not matches(files, DOWNLOAD)


def test_no_path_of_one_machine(files: list[Path]) -> None:
    assert not matches(files, MACHINE_PATH)


def test_nothing_refers_to_unpublished_documents(files: list[Path]) -> None:
    assert not [found for found in matches(files, UNPUBLISHED) if not found.startswith("tests/test_repository.py")]


def test_no_lock_of_another_tool(files: list[Path]) -> None:
    foreign = [str(path.relative_to(ROOT)) for path in files if path.name in FOREIGN_LOCKS]
    assert not foreign, f"versions are locked in requirements/ alone: {foreign}"


def test_npm_locks_hold_no_addresses(files: list[Path]) -> None:
    locks = [p for p in files if p.name in {"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"}]
    assert not matches(locks, re.compile(r"\bresolved\b|\btarball:"))


def locked() -> list[Path]:
    """The requirement files that pip installs from."""
    return sorted(REQUIREMENTS.glob("*.txt"))


def entries(path: Path) -> Iterator[str]:
    """Logical lines: continuations joined, comments and blank lines dropped."""
    for line in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if text := line.partition("#")[0].strip():
            yield text


def pins(path: Path) -> dict[str, str]:
    """Package → version; names as the registry compares them."""
    found = (PIN.match(entry) for entry in entries(path))
    return {normal(match["name"]): match["version"] for match in found if match}


def normal(name: str) -> str:
    """`Foo.bar_baz` → `foo-bar-baz`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def asked(path: Path) -> list[str]:
    """The requirements that an .in file states itself."""
    return [entry for entry in entries(path) if not entry.startswith("-")]


def test_every_in_file_is_locked() -> None:
    names = {path.stem for path in REQUIREMENTS.glob("*.in")}
    assert names == {"run", "dev", "build"}
    assert names == {path.stem for path in locked()}


def test_every_requirement_is_pinned_by_hash() -> None:
    loose = [
        f"{path.name}: {entry[:80]}"
        for path in locked()
        for entry in entries(path)
        if not PIN.match(entry) or not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry) or "://" in entry
    ]
    assert not loose, f"run `make lock`: {loose}"


def test_every_request_has_a_pin() -> None:
    missing = [
        f"{path.name}: {requirement}"
        for path in REQUIREMENTS.glob("*.in")
        for requirement in asked(path)
        if normal(re.split(r"[\[<>=!~; ]", requirement)[0]) not in pins(path.with_suffix(".txt"))
    ]
    assert not missing, f"run `make lock`: {missing}"


@pytest.mark.parametrize("part", ["run", "build"])
def test_dev_holds_the_same_versions(part: str) -> None:
    dev = pins(REQUIREMENTS / "dev.txt")
    own = pins(REQUIREMENTS / f"{part}.txt")
    assert own
    assert own.items() <= dev.items(), "run `make lock`"


def test_the_package_asks_for_what_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert sorted(project["project"]["dependencies"]) == sorted(asked(REQUIREMENTS / "run.in"))
    assert set(project["build-system"]["requires"]) <= set(asked(REQUIREMENTS / "build.in"))
