"""The examples of the library page work with the library alone: copied away, next to filelock."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import filelock
import pytest

from sampletool.kit.project import ROOT

PAGE = ROOT / "docs" / "kit" / "library.md"
LIBRARY = ROOT / "sampletool" / "kit" / "safety"
_EXAMPLE = re.compile(
    r"^## (?P<title>.*?)\n[^#]*?"
    r"^```python\n(?P<program>.*?)^```\n\n"
    r"```output\n(?P<output>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Example:
    """A program on the page, and what the page says that it prints."""

    title: str
    program: str
    output: str


EXAMPLES = [Example(**found.groupdict()) for found in _EXAMPLE.finditer(PAGE.read_text())]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the library and filelock, and nothing else."""
    directory = tmp_path_factory.mktemp("packages")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(LIBRARY, directory / "safety", ignore=ignored)
    shutil.copytree(Path(filelock.__file__).parent, directory / "filelock", ignore=ignored)
    return directory


def run_alone(program: str, packages: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program that can import the standard library and these packages, but no other."""
    # -S leaves out site-packages, where this project and its other dependencies are installed.
    command = [sys.executable, "-S", "-c", program]
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "PYTHONPATH": str(packages)}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_each_example_prints_what_the_page_says_with_the_library_alone(
    example: Example, packages: Path, tmp_path: Path
) -> None:
    ran = run_alone(example.program, packages, tmp_path)

    assert (ran.stdout, ran.stderr) == (example.output, "")


def test_every_example_of_the_page_is_tested() -> None:
    programs = PAGE.read_text().count("```python")

    assert len(EXAMPLES) == programs >= 6


def test_the_examples_cannot_import_this_project(packages: Path, tmp_path: Path) -> None:
    """Otherwise the examples could use the copy of the library in this project."""
    ran = run_alone("import sampletool", packages, tmp_path)

    assert "No module named 'sampletool'" in ran.stderr


def test_every_module_of_the_library_can_be_imported_alone(packages: Path, tmp_path: Path) -> None:
    modules = sorted(file.stem for file in LIBRARY.glob("[a-z]*.py"))
    program = "\n".join(f"import safety.{module}" for module in modules)

    ran = run_alone(program, packages, tmp_path)

    assert (ran.returncode, ran.stderr) == (0, "")
