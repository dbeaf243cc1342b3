"""The page says how to add things: what it says is done, in a copy of the tree, and works."""

import re
import shutil
import subprocess
from itertools import product
from pathlib import Path
from textwrap import dedent

import pytest

from sampletool.kit.parts import part_names
from sampletool.kit.program import PACKAGE
from sampletool.kit.testing.tool import Tool
from tests.kit.trees import ROOT, copy_mypy_cache, copy_tree, make_environment

_PAGE = ROOT / "docs" / "kit" / "how-to.md"
_FILE = re.compile(r"^\*\*([\w/.]+\.py)\*\*[^\n]*\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MAX_LINE_CHARACTERS = 100
"""`make style` allows this in the folders of a new part."""
_MADE_PAGE = re.compile(r"^\*\*([\w/.]+\.md)\*\*[^\n]*\n\n((?:    [^\n]*\n|\n)+)", re.MULTILINE)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the kit alone, in which every file of the page is where the page puts it."""
    copy = copy_tree(ROOT, tmp_path / "copy")
    for part, folder in product(part_names(), (PACKAGE, "tests", "docs")):
        shutil.rmtree(copy / folder / part, ignore_errors=True)
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
    pages = {name: dedent(content).strip() + "\n" for name, content in _MADE_PAGE.findall(page)}
    assert len(pages) == 1
    return files | pages


def test_no_line_of_its_code_is_longer_than_the_rules_allow() -> None:
    too_long = []
    for name, content in files_of_the_page().items():
        for number, line in enumerate(content.splitlines(), 1):
            if name.endswith(".py") and len(line) > _MAX_LINE_CHARACTERS:
                too_long.append(f"{name}:{number}")

    assert too_long == []


def test_its_own_tests_pass_and_so_do_those_of_the_house(tree: Path, tool: Tool) -> None:
    python = make_environment(tree)
    copy_mypy_cache(tree)
    environ = {**tool.environ, "PYTHONPATH": str(tree), "PYTEST_ADDOPTS": "-q -n0 -p no:cacheprovider"}

    def run(*call: str) -> None:
        ran = subprocess.run(call, cwd=tree, env=environ, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]

    def run_tests(*names: str) -> None:
        run(str(python), "-m", "pytest", *names)

    (run_it,) = re.findall(r"^```sh\n(.*?)^```$", _PAGE.read_text(), re.MULTILINE | re.DOTALL)
    house = ["test_command_folder.py", "commands/test_manifest.py", "contract/test_errors.py", "project/test_rules.py"]
    run(str(python), "-c", "from docs.kit.generate import write_index; write_index()")
    run(str(python), "-c", "from docs.kit.picture import screens; assert 'low_stock' not in ''.join(screens())")
    run(str(python), "-m", f"{PACKAGE}.kit.new_command", "gift-box/open-it")
    run_tests("tests/stock", "tests/gift_box", *(f"tests/kit/{name}" for name in house))
    run_tests("tests/kit/project/test_docs.py", "-k", "inventory.md or list_of_all_pages")
    run("bash", "-euc", run_it)
    for check in (["ruff", "check", "--no-cache"], ["ruff", "format", "--no-cache", "--check"], ["mypy"]):
        run(str(python), "-m", *check, f"{PACKAGE}/stock", "tests/stock", f"{PACKAGE}/gift_box", "tests/gift_box")


def test_half_a_command_gets_what_is_missing(tree: Path, tool: Tool) -> None:
    add = tree / "sampletool" / "stock" / "commands" / "item" / "add.py"
    add.write_text(add.read_text().replace("spec = ", "specification = "))
    copy = Tool({**tool.environ, "PYTHONPATH": str(tree)}, tool.cwd)

    assert copy("item", "add", "screw").code == "COMMAND_INCOMPLETE"
    assert copy("config", "list").status == 0
