"""A fresh project passes its own checks and its own tests, and is small."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import (
    copy_mypy_cache,
    make_environment,
    tracked_files,
)
from tests.fork.support import create_project, run_in
from tests.project.style import Counts, count


@pytest.fixture
def vendored(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a new project that contains the kit, with an environment."""
    project = create_project(tool, "--ci", "github")
    make_environment(project)
    copy_mypy_cache(project)
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(["-q", "-n0", "-p no:cacheprovider"]))
    return project


@pytest.fixture
def dependent(
    tool: Tool,
    archives: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Return a new project that depends on the kit, with an environment that has the kit."""
    wheel = str(archives["wheel"])
    project = create_project(tool, "--kit", "dependency", "--kit-from", wheel)
    python = make_environment(project)
    install_wheel(archives["wheel"], python)
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(["-q", "-n0", "-p no:cacheprovider"]))
    return project


def install_wheel(wheel: Path, python: Path) -> None:
    """Install a wheel into an environment that has everything that the wheel needs."""
    packages = next(python.parents[1].glob("lib/python*/site-packages"))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(packages), str(wheel)], check=True)


def test_a_project_passes_its_checks_and_stays_as_it_is(vendored: Path) -> None:
    run_in(vendored, "make", "check")

    assert run_in(vendored, "git", "status", "--porcelain") == ""


def break_a_rule(project: Path) -> None:
    """Remove the examples of a command, which is right for every tool but the rules of the kit."""
    list_command = project / "acme" / "inventory" / "commands" / "inventory" / "list.py"
    code, removed_count = re.subn(r"    examples=.*\n", "", list_command.read_text())
    assert removed_count == 1
    list_command.write_text(code)


def failure_of_check(project: Path) -> str:
    """Run `make check`, and return what it prints. Fail if it succeeds."""
    ran = subprocess.run(
        ["make", "check"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    return ran.stdout


_BROKEN_RULE = """\
acme/inventory/commands/inventory/list.py: the spec has no example.
Add one to `examples` (see "The spec" in the rules, """


def test_make_check_reports_a_broken_rule(vendored: Path) -> None:
    break_a_rule(vendored)

    assert _BROKEN_RULE in failure_of_check(vendored)


def test_make_check_reports_a_broken_rule_if_the_kit_is_a_dependency(dependent: Path) -> None:
    break_a_rule(dependent)

    assert _BROKEN_RULE in failure_of_check(dependent)


def test_a_project_passes_its_tests(vendored: Path) -> None:
    run_in(vendored, "make", "test")

    assert run_in(vendored, "git", "status", "--porcelain") == ""


def test_a_project_that_depends_on_the_kit_passes_its_checks_and_tests(dependent: Path) -> None:
    run_in(dependent, "make", "check", "test")

    assert run_in(dependent, "git", "status", "--porcelain") == ""


def test_a_program_that_depends_on_the_kit_has_its_own_names(dependent: Path) -> None:
    python = str(dependent / ".venv" / "bin" / "python")

    assert run_in(dependent, python, "-m", "acme", "--version") == "acme 0.1.0\n"
    help_text = run_in(dependent, python, "-m", "acme", "--help")
    assert "inventory" in help_text
    assert PACKAGE not in help_text
    (dependent / "acme.toml").touch()
    run_in(dependent, python, "-m", "acme", "inventory", "add", "screw")
    assert (dependent / "in_stock.toml").read_text() == "screw = 1\n"


def test_make_shows_where_the_how_to_of_a_copied_kit_is(vendored: Path) -> None:
    assert run_in(vendored, "make", "how-to") == "acme/kit/README.md\n"


def test_make_shows_where_the_how_to_of_an_installed_kit_is(dependent: Path) -> None:
    how_to = Path(run_in(dependent, "make", "how-to").strip())

    assert how_to.is_relative_to(dependent / ".venv")
    assert how_to.read_text().startswith("# Add a command\n")


def test_with_long_names_no_line_is_too_long(tool: Tool) -> None:
    name = "a" * 40
    project = create_project(
        tool,
        *("--author", "A" * 100),
        *("--description", "d" * 100),
        *("--repository", "https://example.org/".ljust(200, "a")),
        name=name,
    )

    ruff = str(Path(sys.prefix, "bin", "ruff"))
    run_in(project, ruff, "check", "--no-cache", "--select", "E501", f"{name}/inventory", "tests")


@pytest.mark.parametrize(
    "description",
    [
        "Ann’s tool ‘counts’ screws – and “nuts”",  # noqa: RUF001 - the quotes are the point
        'Says "hello" \\ and ends with a "quote"',
        "screw " * 16 + "nut",
    ],
    ids=["typographic", "quoted", "long"],
)
def test_ruff_accepts_any_description(tool: Tool, description: str) -> None:
    project = create_project(tool, "--description", description)

    ruff = str(Path(sys.prefix, "bin", "ruff"))
    run_in(project, ruff, "check", "--no-cache", ".")
    run_in(project, ruff, "format", "--no-cache", "--check", ".")


def test_the_code_besides_the_kit_is_small(tool: Tool) -> None:
    project = create_project(tool)
    code = Counts()
    tests = Counts()
    for path in tracked_files(project):
        if path.endswith(".py") and not path.startswith("acme/kit/"):
            count(project / path, tests if path.startswith("tests/") else code)

    assert code.code_lines <= 220
    assert tests.code_lines <= 80


def test_few_files_are_not_code(tool: Tool) -> None:
    project = create_project(tool)

    others = [path for path in tracked_files(project) if not path.startswith(("acme/", "tests/"))]
    assert others == [
        ".gitignore",
        "AGENTS.md",
        "CHANGELOG.md",
        "LICENSE",
        "Makefile",
        "README.md",
        "constraints.txt",
        "pyproject.toml",
    ]
