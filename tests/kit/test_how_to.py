"""The page says how to add things: what it says is done, in a copy of the tree, and works."""

import re
import subprocess
from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool
from tests.kit.trees import ROOT, copy_tree, make_environment

_PAGE = ROOT / "docs" / "kit" / "how-to.md"
_FILE = re.compile(r"^\*\*([\w/.]+\.py)\*\*[^\n]*\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy in which every file of the page is where the page puts it."""
    copy = copy_tree(ROOT, tmp_path / "copy")
    for name, content in files_of_the_page().items():
        path = copy / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for folder in ("tests/stock", "tests/stock/commands"):
        (copy / folder / "__init__.py").touch()
    return copy


def files_of_the_page() -> dict[str, str]:
    page = _PAGE.read_text()
    files = dict(_FILE.findall(page))
    assert len(files) == page.count("```python")
    return files


def test_its_own_tests_pass_and_so_do_those_of_the_house(tree: Path, tool: Tool) -> None:
    python = make_environment(tree)

    def run(*call: str) -> None:
        ran = subprocess.run(
            [str(python), "-m", *call], cwd=tree, env=tool.environ, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]

    help_of_every_command = "test_help_of_every_command_is_there_and_its_summary_fits_into_a_line"
    house = [f"tests/kit/test_command_folder.py::{help_of_every_command}", "tests/kit/commands/test_manifest.py"]
    run("pytest", "-q", "-n0", "-p", "no:cacheprovider", "tests/stock", *house)
    run("ruff", "check", "--no-cache", "sampletool/stock", "tests/stock")
    run("ruff", "format", "--no-cache", "--check", "sampletool/stock", "tests/stock")
    run("mypy", "--cache-dir", str(tree.parent / "types"), "sampletool/stock", "tests/stock")


def test_half_a_command_is_told_what_is_missing(tree: Path, tool: Tool) -> None:
    add = tree / "sampletool" / "stock" / "commands" / "item" / "add.py"
    add.write_text(add.read_text().replace("spec = ", "specification = "))
    copy = Tool({**tool.environ, "PYTHONPATH": str(tree)}, tool.cwd)

    assert copy("item", "add", "screw").code == "COMMAND_INCOMPLETE"
    assert copy("config", "list").status == 0
