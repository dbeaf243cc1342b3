"""A project with another name: the same kit, and no trace of the old name."""

import ast
import json
import os
import pwd
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.rename import Names, rename, rename_files
from tests.kit.trees import ROOT, commit, copy_tree, make_environment, tracked

_NEW = Names("renamed", "rn")
_COMMANDS = ["config", "lock"]
_LEFT_OVER = re.compile(
    rf"{PACKAGE}|\b{PROGRAM}\.toml|[/\"'`]\.{PROGRAM}\b|{PROGRAM.upper()}_[A-Z]"
    rf"|[`\"]{PROGRAM}[`\" ]|\b{PROGRAM} (config|lock|--)"
)


@pytest.fixture
def renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project that is named anew; the working directory is outside any workspace."""
    tree = copy_tree(ROOT, tmp_path / "tree")
    commit(tree)
    rename_files(tree, tracked(tree), Names(PACKAGE, PROGRAM), _NEW)
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.chdir(tmp_path)
    return tree


def kit_of(package: Path) -> dict[str, bytes]:
    files = (file for file in (package / "kit").rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(package).as_posix(): file.read_bytes() for file in files}


def test_the_kit_is_the_same_to_the_byte(renamed: Path) -> None:
    assert kit_of(renamed / _NEW.package) == kit_of(ROOT / PACKAGE)


def test_no_answer_has_the_old_name_in_it(renamed: Path) -> None:
    python = make_environment(renamed)

    for call in ("--help", "config --help", "help", "config get", "config set x", "config path", "manifest", "doctor"):
        argv = [str(python), "-m", _NEW.package, *call.split()]
        ran = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert ran.returncode != 1, ran.stdout + ran.stderr
        assert _NEW.program in ran.stdout
        assert [*_LEFT_OVER.finditer(ran.stdout + ran.stderr)] == [], call


def test_the_tests_of_the_commands_pass_there_and_all_others_can_be_imported(renamed: Path) -> None:
    python = make_environment(renamed)

    for what in (["tests/kit/commands", "tests/kit/safety/test_places.py"], ["--collect-only"]):
        argv = [str(python), "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *what]
        ran = subprocess.run(argv, cwd=renamed, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from old.kit.testing.tool import Tool", "from new.kit.testing.tool import Tool"),
        ('tool = "old.__main__:main"', 'n-t = "new.__main__:main"'),
        ('(workspace / "tool.toml"), `.tool/locks`', '(workspace / "n-t.toml"), `.n-t/locks`'),
        ("TOOL_JOBS=2 tool config get _TOOL_COMPLETE", "N_T_JOBS=2 n-t config get _N_T_COMPLETE"),
        ("`tool --version`, `tool`, Usage: tool [OPTIONS]", "`n-t --version`, `n-t`, Usage: n-t [OPTIONS]"),
        ("[tool.ruff] a tool of your own; def x(tool: Tool)", "[tool.ruff] a tool of your own; def x(tool: Tool)"),
        ("tool(*call); tool.cwd; ran = tool('config')", "tool(*call); tool.cwd; ran = tool('config')"),
        ("TOOLS_OF older MYTOOL_X oldest_one", "TOOLS_OF older MYTOOL_X oldest_one"),
    ],
)
def test_only_names_are_renamed(text: str, expected: str) -> None:
    assert rename(text, Names("old", "tool"), Names("new", "n-t"), _COMMANDS) == expected
    assert rename(expected, Names("new", "n-t"), Names("old", "tool"), _COMMANDS) == text


def test_the_console_script_is_the_program() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    assert scripts == {PROGRAM: f"{PACKAGE}.__main__:main"}


_READ_BY_ANY_PYTHON = ("__init__.py", "__main__.py", "kit/__init__.py", "kit/start.py")


@pytest.mark.parametrize("file", _READ_BY_ANY_PYTHON)
def test_an_old_python_can_read_what_refuses_it(file: str) -> None:
    ast.parse((ROOT / PACKAGE / file).read_text(), feature_version=(3, 4))


def old_pythons() -> list[Path]:
    """Those that pyenv has installed for this user: for 2.7 there is nothing else to ask."""
    installed = Path(pwd.getpwuid(os.geteuid()).pw_dir, ".pyenv", "versions")
    return sorted(path for path in installed.glob("*/bin/python") if re.match(r"2|3\.\d\.|3\.10", path.parts[-3]))


def test_every_old_python_that_is_here_gets_an_answer_that_refuses_it() -> None:
    for python in old_pythons():
        argv = [str(python), "-B", "-m", PACKAGE, "config", "list"]
        ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (4, ""), python
        assert json.loads(ran.stdout)["error"]["code"] == "PYTHON_TOO_OLD"
    assert sys.version_info >= (3, 11)
