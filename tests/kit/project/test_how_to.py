"""The page "Add a command" works: a test follows it in a project that has nothing but the kit."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import copy_mypy_cache, make_environment, write_checksums

markdown_it = pytest.importorskip(
    "markdown_it", reason="markdown-it-py is missing: make .venv/.testable"
)

_PAGE = ROOT / PACKAGE / "kit" / "README.md"
_MAX_LINE_CHARACTERS = 100
"""`make style` allows this in the folders of a new part."""


def files_on_page(page: str) -> dict[str, str]:
    """Return the content of each file that a Markdown page shows, by its path.

    The path is in the paragraph above a block of code, as a reader sees it: a renderer takes
    `**a/__init__.py**` for a/init.py in bold. Raise AssertionError if a block has no path.
    """
    files = {}
    tokens = markdown_it.MarkdownIt("commonmark").parse(page)
    for position, token in enumerate(tokens):
        is_python = token.type == "fence" and token.info == "python"
        # An indented block is a page: it contains other blocks.
        if is_python or token.type == "code_block":
            path = _path_in(tokens[position - 2])
            assert path is not None, f"no path above line {token.map[0] + 1}"
            assert path not in files, f"{path} is on the page twice"
            files[path] = token.content
    return files


def _path_in(paragraph: Any) -> str | None:
    """Return the text of a paragraph that consists of one path in backticks, else None."""
    if paragraph.type != "inline":
        return None
    parts = []
    for part in paragraph.children:
        # The delimiters of bold text leave empty texts.
        if part.type in ("text", "code_inline") and part.content:
            parts.append(part)
    if [part.type for part in parts] != ["code_inline"]:
        return None
    return str(parts[0].content)


def files_of_example() -> dict[str, str]:
    """Return the files of the page, by their paths."""
    return files_on_page(_PAGE.read_text())


_FILES_OF_PROJECT = (
    f"{PACKAGE}/__init__.py",
    f"{PACKAGE}/__main__.py",
    "tests/__init__.py",
    "tests/conftest.py",
    ".gitignore",
    "constraints.txt",
    "Makefile",
    "pyproject.toml",
)
"""What a project has besides the kit and its parts. What they say of the parts here is harmless."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a project with the kit, without parts, and with every file of the page."""
    tree = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / PACKAGE / "kit", tree / PACKAGE / "kit", ignore=ignored)
    (tree / "tests").mkdir()
    for name in _FILES_OF_PROJECT:
        shutil.copy(ROOT / name, tree / name)
    for name, content in files_of_example().items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    for folder in ("tests/stock", "tests/stock/commands"):
        (tree / folder / "__init__.py").touch()
    write_checksums(tree)
    return tree


def test_a_reader_sees_the_path_of_each_file() -> None:
    paths = set(files_of_example())

    assert f"{PACKAGE}/stock/__init__.py" in paths
    assert f"{PACKAGE}/stock/commands/item/__init__.py" in paths
    assert "docs/stock/inventory.md" in paths


@pytest.mark.parametrize(
    "heading", ["**a/__init__.py**", "Some text.", "`a/b.py` and `a/c.py`", ""]
)
def test_a_block_without_a_path_that_a_reader_sees_is_noticed(heading: str) -> None:
    block = '```python\n"""Code."""\n```\n'

    right = files_on_page(f"# Title\n\n**`a/__init__.py`**\n\n{block}")

    assert right == {"a/__init__.py": '"""Code."""\n'}
    with pytest.raises(AssertionError, match="no path above line"):
        files_on_page(f"# Title\n\n{heading}\n\n{block}")


def test_no_line_of_its_code_is_longer_than_the_rules_allow() -> None:
    too_long = []
    for name, content in files_of_example().items():
        for number, line in enumerate(content.splitlines(), 1):
            if name.endswith(".py") and len(line) > _MAX_LINE_CHARACTERS:
                too_long.append(f"{name}:{number}")

    assert too_long == []


class Checkout:
    """A copy of the project, and an environment in which its commands can be run."""

    def __init__(self, tree: Path, tool: Tool) -> None:
        self.tree = tree
        self.python = str(make_environment(tree))
        options = "-q -n0 -p no:cacheprovider"
        self.environ = {**tool.environ, "PYTHONPATH": str(tree), "PYTEST_ADDOPTS": options}

    def run(self, *command: str) -> None:
        """Run a command. Fail, with the end of its output, if it fails."""
        ran = subprocess.run(
            command,
            cwd=self.tree,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]

    def run_module(self, *arguments: str) -> None:
        """Run `python -m` with these arguments."""
        self.run(self.python, "-m", *arguments)

    def run_code(self, code: str) -> None:
        """Run a Python program."""
        self.run(self.python, "-c", code)


_SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_NEW_CODE = (
    f"{PACKAGE}/stock",
    "tests/stock",
    f"{PACKAGE}/parcel",
    "tests/parcel",
    f"{PACKAGE}/gift_box",
    "tests/gift_box",
)


def test_its_own_tests_pass_and_no_rule_is_broken(tree: Path, tool: Tool) -> None:
    checkout = Checkout(tree, tool)
    copy_mypy_cache(tree)
    create_from_template, run_the_example = _SHELL_BLOCK.findall(_PAGE.read_text())

    checkout.run("bash", "-euc", create_from_template)
    for arguments in (
        ["gift-box/open-it"],
        ["gift-box/import", "--plain"],
        ["greet", "--plain", "--part", "gift_box"],
    ):
        checkout.run_module(f"{PACKAGE}.kit.new_command", *arguments)
    checkout.run_module(f"{PACKAGE}.kit.testing.pages")
    checkout.run_module("pytest", "tests/stock", "tests/gift_box")
    checkout.run_module("pytest", "--rules")
    checkout.run("bash", "-euc", run_the_example)
    checkout.run_module("ruff", "check", "--no-cache", *_NEW_CODE)
    checkout.run_module("ruff", "format", "--no-cache", "--check", *_NEW_CODE)
    checkout.run_module("mypy", *_NEW_CODE)


def test_a_command_file_without_a_spec_is_an_error_that_names_the_file(
    tree: Path, tool: Tool
) -> None:
    add = tree / PACKAGE / "stock" / "commands" / "item" / "add.py"
    add.write_text(add.read_text().replace("spec = ", "specification = "))
    copy = Tool({**tool.environ, "PYTHONPATH": str(tree)}, tool.cwd)

    error = copy("item", "add", "screw").error

    assert error["code"] == "COMMAND_INCOMPLETE"
    assert error["context"]["file"].endswith("stock/commands/item/add.py")
    assert copy("config", "list").status == 0
