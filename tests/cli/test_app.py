"""The root command, and the page that documents it."""

import re
from pathlib import Path

import pytest
import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.testing import CliRunner

import headrace
from headrace.cli.app import app
from tests.cli import process

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
GROUPS = ["keys", "models", "owners", "prices"]
SINGLE = ["check", "connect", "demo", "explain", "init", "migrate", "serve", "simulate", "try", "usage", "verify"]


def root() -> TyperGroup:
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    return command


def commands(group: TyperGroup, path: str = "") -> dict[str, TyperCommand]:
    """Every command that does something, by the words that one types for it."""
    found: dict[str, TyperCommand] = {}
    for name, one in group.commands.items():
        if isinstance(one, TyperGroup):
            found |= commands(one, f"{path}{name} ")
        else:
            assert isinstance(one, TyperCommand)
            found[path + name] = one
    return found


COMMANDS = commands(root())


def parts() -> dict[str, str]:
    """The page's parts by heading."""
    headings = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    return dict(zip(headings[1::2], headings[2::2], strict=True))


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    result = process.run("--version", folder=tmp_path)
    assert (result.returncode, result.stdout) == (0, f"headrace {headrace.__version__}\n")


def test_an_output_of_another_encoding_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "水.yaml").write_text("server: 1\n")
    result = process.run("check", "--config", "水.yaml", folder=tmp_path, PYTHONIOENCODING="latin-1:strict")
    assert result.returncode == 2
    assert result.stderr.startswith("\\u6c34.yaml:1: ")


def test_the_commands() -> None:
    assert sorted(root().commands) == sorted([*SINGLE, *GROUPS])


@pytest.mark.parametrize("arguments", [[], ["bogus"], ["--bogus"], ["serve", "extra"], ["serve", "--config"]])
def test_bad_usage_is_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, arguments).exit_code == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_plain_and_whole(name: str) -> None:
    result = CliRunner().invoke(app, [*name.split(), "--help"], terminal_width=200)
    assert result.exit_code == 0
    for parameter in COMMANDS[name].params:
        assert isinstance(parameter, TyperOption | TyperArgument)
        help_text = getattr(parameter, "help", None)
        assert help_text, f"{parameter.name} has no help"
        assert help_text.endswith((".", "]")), f"{parameter.name}: {help_text}"


def test_short_help_is_not_cut() -> None:
    for group in ([], *([name] for name in GROUPS)):
        listing = CliRunner().invoke(app, [*group, "--help"]).stdout
        assert "..." not in listing.partition("Commands:")[2], group


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_stands_in_the_page(name: str) -> None:
    part = parts()[f"headrace {name}"]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", part, re.MULTILINE)[2:]
    documented = {tuple(re.findall(r"`([^` ]+)[^`]*`", names)): (default, meaning) for names, default, meaning in rows}
    expected = {}
    for parameter in COMMANDS[name].params:
        names = tuple(parameter.opts) if isinstance(parameter, TyperOption) else (str(parameter.metavar),)
        default = (
            "none"
            if parameter.default in (None, False)
            else f"`{getattr(parameter.default, 'value', parameter.default)}`"
        )
        help_text = str(getattr(parameter, "help", ""))
        if "[default: " in help_text:
            help_text, _, shown = help_text.removesuffix("]").partition(" [default: ")
            default = f"`{shown}`"
        expected[names] = ("required" if parameter.required else default, help_text)
    assert documented == expected


def test_the_page_has_a_part_for_each_command_and_no_other() -> None:
    assert [name for name in parts() if name.startswith("headrace ")] == [f"headrace {name}" for name in COMMANDS]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_names_the_exit_codes(name: str) -> None:
    (codes,) = re.findall(r"^Exit code: (.+?)\n\n", parts()[f"headrace {name}"] + "\n", re.MULTILINE | re.DOTALL)
    assert codes.startswith("0 ")
    assert "2 for bad usage" in codes


def test_the_page_has_the_options_of_the_root() -> None:
    assert all(name in PAGE for parameter in root().params for name in parameter.opts if name.startswith("--"))
