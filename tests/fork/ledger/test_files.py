"""The files of the ledger are complete, and use only what the how-to describes."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sampletool.kit.program import KIT_DIRECTORY
from tests.fork.ledger.script import COMMANDS, FILES, PART, paths_of_files

_HOW_TO = Path(KIT_DIRECTORY, "README.md").read_text()


def kit_imports() -> Iterator[tuple[str, str]]:
    """Yield each module of the kit that the files import, with each name from it."""
    for path in paths_of_files():
        if not path.endswith(".py"):
            continue
        for node in ast.walk(ast.parse((FILES / path).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                _, is_kit, module = node.module.rpartition("kit.")
                if is_kit:
                    for alias in node.names:
                        yield module, alias.name


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_file_and_a_test(command: str) -> None:
    # `import` is a keyword in Python.
    module = "import_" if command == "import" else command

    paths = paths_of_files()

    assert f"ledger/{PART}/commands/{module}.py" in paths
    assert f"tests/{PART}/commands/test_{module}.py" in paths


def test_the_how_to_names_everything_that_the_files_import_from_the_kit() -> None:
    missing = []
    for module, name in sorted(set(kit_imports())):
        file = f"kit/{module.replace('.', '/')}.py"
        has_module = f"kit.{module} import" in _HOW_TO or file in _HOW_TO
        has_name = re.search(rf"\b{name}\b", _HOW_TO) is not None
        if not (has_module and has_name):
            missing.append(f"{name} of kit.{module}")

    assert missing == []
