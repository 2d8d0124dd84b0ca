"""The shape of the source tree: what import-linter and ruff cannot say, or cannot say about modules still to come.

The rules stand in CONTRIBUTING.md. Each check reads the syntax tree, imports nothing, and covers a module from the
moment its file exists.
"""

import ast
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
PACKAGE = SRC / "headrace"
TESTS = ROOT / "tests"

MAX_LINES = 400  # the aim is 250

VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "manager", "managers", "misc"}

# The meaning of bytes: no input or output, clock, chance or logging. Time is an argument.
PURE = (
    "headrace.model",
    "headrace.http",
    "headrace.sse",
    "headrace.protocols",
    "headrace.relay.machine",
    "headrace.routing.plan",
    "headrace.upstream.classify",
    "headrace.metering.estimate",
    "headrace.metering.price",
)
IMPURE = {"asyncio", "logging", "os", "random", "secrets", "socket", "ssl", "time", "uuid"}

# A worker gets its settings as model values; it opens no database and serves no admin route.
WORKER = "headrace.worker"
NOT_IN_A_WORKER = ("headrace.state", "headrace.control", "headrace.config", "sqlalchemy", "pydantic", "fastapi")

# External packages that one package alone may import.
OWNED = {
    "aiosqlite": "headrace.state",
    "alembic": "headrace.state",
    "asyncpg": "headrace.state",
    "sqlalchemy": "headrace.state",
    "sqlite3": "headrace.state",
    "hiredis": "headrace.shared",
    "redis": "headrace.shared",
    "valkey": "headrace.shared",
}

# Where everything may be caught, and how often: the meter reads events and whole bodies. The meter never raises into
# the relay; the line and the worker
# that runs it have one place between them that turns what nobody foresaw into a problem.
# The bill is made of what the meter read, beside a stream as it is: a defect in it must cost no entry and no place.
CATCH_ALL = {("headrace.metering.meter",): 2, ("headrace.account",): 1, ("headrace.exchange", "headrace.worker"): 1}

# Tests that mirror no module: about the repository as a whole, about recorded streams, real SDKs, broken processes.
TESTS_OF_THE_WHOLE = {"test_architecture.py", "test_repository.py", "test_docs.py", "test_suite.py", "test_tutorial.py"}
TESTS_APART = {"wire", "sdk", "line", "stand", "chaos"}


@dataclass(frozen=True)
class Module:
    """One source file."""

    path: Path

    @cached_property
    def name(self) -> str:
        """The dotted name; a package's is that of its folder."""
        parts = self.path.relative_to(SRC).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    @cached_property
    def imported(self) -> dict[str, int]:
        """Every name that an import statement anywhere in the module could mean, with its line.

        `from a import b` means `a` and perhaps the module `a.b`: both are listed.
        """
        found: dict[str, int] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    found.setdefault(alias.name, node.lineno)
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                for name in (origin, *(f"{origin}.{alias.name}" for alias in node.names)):
                    found.setdefault(name, node.lineno)
        return found

    def _origin(self, node: ast.ImportFrom) -> str:
        """The absolute name that `from ... import` names."""
        if not node.level:
            return node.module or ""
        up = node.level - 1 if self.path.name == "__init__.py" else node.level
        parts = self.name.split(".")
        return ".".join([*parts[: len(parts) - up], *([node.module] if node.module else [])])

    def at(self, line: int) -> str:
        """A place as editors and terminals understand it."""
        return f"{self.path.relative_to(ROOT)}:{line}"


MODULES = [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]


def is_within(name: str, packages: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of the packages or lies in one."""
    return any(name == package or name.startswith(package + ".") for package in packages)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions and methods, nested ones too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_there_is_something_to_check() -> None:
    assert MODULES, f"no modules under {PACKAGE}"


def test_modules_are_small() -> None:
    long = {m.at(1): n for m in MODULES if (n := len(m.text.splitlines())) > MAX_LINES}
    assert not long, f"more than {MAX_LINES} lines; split by what the parts are about: {long}"


def test_names_say_what_is_inside() -> None:
    vague = [m.name for m in MODULES if VAGUE_NAMES & set(m.name.split("."))]
    assert not vague, f"a name that fits anything says nothing; name the thing: {vague}"


def test_every_module_says_its_job() -> None:
    mute = [m.at(1) for m in MODULES if not ast.get_docstring(m.tree)]
    assert not mute, f"no module docstring: {mute}"


def test_imports_stand_at_the_top() -> None:
    hidden = [
        m.at(node.lineno)
        for m in MODULES
        for function in functions(m.tree)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert not hidden, f"import inside a function; move it up, or cut the cycle it dodges: {sorted(set(hidden))}"


def test_imports_are_statements() -> None:
    """An import by call would be invisible to every check here."""
    calls = [
        m.at(node.lineno)
        for m in MODULES
        for node in ast.walk(m.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"__import__", "import_module", "importlib.import_module"}
    ]
    assert not calls, f"import by call: {calls}"


def test_pure_modules_know_no_world() -> None:
    impure = [
        f"{m.at(line)} {name}"
        for m in MODULES
        if is_within(m.name, PURE)
        for name, line in m.imported.items()
        if name.split(".")[0] in IMPURE
    ]
    assert not impure, f"pure module imports the world; pass in what it needs: {impure}"


def test_pure_functions_are_documented() -> None:
    mute = [
        f"{m.at(node.lineno)} {node.name}"
        for m in MODULES
        if is_within(m.name, PURE)
        for node in public_functions(m.tree)
        if not ast.get_docstring(node)
    ]
    assert not mute, f"public function of a pure module without a docstring (shapes, units, errors): {mute}"


def public_functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions of the module that carry no underscore."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node


def test_a_worker_reaches_nothing_of_the_control_process() -> None:
    by_name = {m.name: m for m in MODULES}
    came_from = {name: name for name in by_name if is_within(name, (WORKER,))}
    todo = list(came_from)
    reached: list[str] = []
    while todo:
        importer = by_name[todo.pop()]
        for name in importer.imported:
            # Importing a.b.c runs a and a.b too.
            for part in prefixes(name):
                if is_within(part, NOT_IN_A_WORKER):
                    reached.append(f"{chain(came_from, importer.name)} -> {part}")
                elif part in by_name and part not in came_from:
                    came_from[part] = importer.name
                    todo.append(part)
    assert not reached, f"a worker reaches what only the control process may: {sorted(set(reached))}"


def prefixes(name: str) -> list[str]:
    """`a.b.c` → `a`, `a.b`, `a.b.c`."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def chain(came_from: dict[str, str], name: str) -> str:
    """How the search got to a module, from the worker on."""
    steps = [name]
    while (before := came_from[steps[0]]) != steps[0]:
        steps.insert(0, before)
    return " -> ".join(steps)


def test_one_package_owns_each_driver() -> None:
    strays = [
        f"{m.at(line)} {name}"
        for m in MODULES
        for name, line in m.imported.items()
        if (owner := OWNED.get(name.split(".")[0])) and not is_within(m.name, (owner,))
    ]
    assert not strays, f"a driver outside the package that owns it: {strays}"


def test_everything_is_caught_in_few_places() -> None:
    places = {m.at(line): m.name for m in MODULES for line in catch_alls(m.tree)}
    strays = [at for at, name in places.items() if not any(is_within(name, group) for group in CATCH_ALL)]
    assert not strays, f"catches everything; name the errors, or let exchange make it a problem: {strays}"
    for group, most in CATCH_ALL.items():
        found = [at for at, name in places.items() if is_within(name, group)]
        assert len(found) <= most, f"{most} is enough for {group}: {found}"


def test_catching_everything_has_a_reason() -> None:
    bare = [m.at(line) for m in MODULES for line in catch_alls(m.tree) if not has_reason(m.path, line)]
    assert not bare, f"catches everything and gives no reason on the line: {bare}"


def catch_alls(tree: ast.Module) -> list[int]:
    """Lines that catch or suppress everything."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and (node.type is None or names_everything(node.type)):
            lines.append(node.lineno)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"suppress", "contextlib.suppress"}:
            lines += [node.lineno for argument in node.args if names_everything(argument)]
    return lines


def names_everything(caught: ast.expr) -> bool:
    """Whether `except caught:` leaves nothing through; a tuple does if one of its members does."""
    members = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(ast.unparse(member).rpartition(".")[2] in {"Exception", "BaseException"} for member in members)


def has_reason(path: Path, line: int) -> bool:
    """Whether the line ends in a comment that says more than which check to silence."""
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT and token.start[0] == line]
    return any(len(re.sub(r"#|noqa(: *[A-Z0-9, ]+)?|\W", "", comment)) > 10 for comment in comments)


def test_tests_mirror_the_source() -> None:
    strays = [str(path.relative_to(ROOT)) for path in mirroring_tests() if not any(p.exists() for p in mirrored(path))]
    assert not strays, f"mirrors no source module; a test file is named after the one it tests: {strays}"


def mirroring_tests() -> list[Path]:
    """Test files that must mirror a module."""
    return [
        path
        for path in sorted(TESTS.rglob("test_*.py"))
        if path.relative_to(TESTS).parts[0] not in TESTS_APART | TESTS_OF_THE_WHOLE
    ]


def mirrored(path: Path) -> tuple[Path, Path]:
    """`tests/sse/test_framing.py` → `headrace/sse/framing.py`, or `headrace/sse/framing/` where that is a package."""
    module = PACKAGE / path.relative_to(TESTS).parent / path.stem.removeprefix("test_")
    return module.with_suffix(".py"), module / "__init__.py"
