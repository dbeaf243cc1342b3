"""sampletool/kit/rename.py: the names of a project are replaced by those of another one."""

import ast
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.project import ROOT
from sampletool.kit.rename import Names, rename, rename_files

_COMMANDS = ["config", "lock"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from old.kit.testing.tool import Tool", "from new.kit.testing.tool import Tool"),
        ('prog = "old.__main__:main"', 'n-t = "new.__main__:main"'),
        ('(workspace / "prog.toml"), `.prog/locks`', '(workspace / "n-t.toml"), `.n-t/locks`'),
        (".prog.toml.*.tmp <b>.prog</b> a.prog.toml", ".n-t.toml.*.tmp <b>.n-t</b> a.prog.toml"),
        ("PROG_JOBS=2 prog config get _PROG_COMPLETE", "N_T_JOBS=2 n-t config get _N_T_COMPLETE"),
        (
            "`prog --version`, `prog`, Usage: prog [OPTIONS]",
            "`n-t --version`, `n-t`, Usage: n-t [OPTIONS]",
        ),
        ("<temp>/prog-<uid>/", "<temp>/n-t-<uid>/"),
        (
            "[prog.ruff] a prog of your own; def x(prog: Prog)",
            "[prog.ruff] a prog of your own; def x(prog: Prog)",
        ),
        (
            "prog(*call); prog.cwd; ran = prog('config')",
            "prog(*call); prog.cwd; ran = prog('config')",
        ),
        ("PROGS_OF older MYPROG_X oldest_one", "PROGS_OF older MYPROG_X oldest_one"),
        ("my-prog --version, prog --version", "my-prog --version, n-t --version"),
    ],
)
def test_only_names_are_renamed(text: str, expected: str) -> None:
    old = Names("old", "prog")
    new = Names("new", "n-t")

    there = rename(text, old, new, _COMMANDS)
    back = rename(there, new, old, _COMMANDS)

    assert there == expected
    assert back == text


@pytest.mark.parametrize(
    "new",
    [Names("new", "my-prog"), Names("prog", "old"), Names("old-prog", "prog")],
)
def test_a_new_name_can_contain_an_old_one(new: Names) -> None:
    text = 'prog = "old.__main__:main"; "old"; `prog config get`; .prog/; "prog.toml"; PROG_JOBS'

    renamed = rename(text, Names("old", "prog"), new, _COMMANDS)

    assert renamed == (
        f'{new.program} = "{new.package}.__main__:main"; "{new.package}"; '
        f"`{new.program} config get`; .{new.program}/; "
        f'"{new.program}.toml"; {new.prefix}_JOBS'
    )


def test_the_kit_and_files_that_are_not_text_stay_as_they_are() -> None:
    files = {
        "old/kit/app.py": b"old",
        "old/a/commands/weigh_it.py": b"",
        "docs/prog.toml": b"`prog`; prog weigh-it, prog heavy, prog lift",
        "docs/adding.md": b"**old/a/commands/lift.py**",
        "old/picture.png": b"old \xff",
    }

    renamed = rename_files(files, Names("old", "prog"), Names("new", "n-t"))

    assert renamed == {
        "new/kit/app.py": b"old",
        "new/a/commands/weigh_it.py": b"",
        "docs/n-t.toml": b"`n-t`; n-t weigh-it, prog heavy, n-t lift",
        "docs/adding.md": b"**new/a/commands/lift.py**",
        "new/picture.png": b"old \xff",
    }


@pytest.fixture
def other_project(tmp_path: Path) -> Path:
    """Return a directory with the kit in a package with other names, and a workspace."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / PACKAGE / "kit", tmp_path / "other" / "kit", ignore=ignored)
    names = '"""Other."""\nPROGRAM = "oth-er"\n__version__ = "1"\n'
    (tmp_path / "other" / "__init__.py").write_text(names)
    (tmp_path / "other" / "__main__.py").write_text(
        "from .kit.start import main\n\nmain('other')\n"
    )
    (tmp_path / "oth-er.toml").write_text("[settings]\nlevel = 1\n")
    return tmp_path


def data_of(project: Path, *arguments: str, **environ: str) -> Any:
    """Run a command of the other project, and return the data of its response."""
    ran = subprocess.run(
        [sys.executable, "-m", "other", *arguments, "--json"],
        cwd=project,
        env={**os.environ, **environ},
        capture_output=True,
        check=False,
    )
    return json.loads(ran.stdout)["data"]


def test_the_kit_takes_its_names_from_the_package_around_it(other_project: Path) -> None:
    jobs = data_of(other_project, "config", "get", "jobs", OTH_ER_JOBS="3")
    level = data_of(other_project, "config", "get", "level")
    locks = data_of(other_project, "lock", "list")

    assert jobs["value"] == 3
    assert level["source"] == "project"
    assert locks == {"locks": []}


def test_the_console_script_is_the_program() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    assert scripts == {PROGRAM: f"{PACKAGE}.__main__:main"}


_READ_BY_ANY_PYTHON = ("__init__.py", "__main__.py", "kit/__init__.py", "kit/start.py")


@pytest.mark.parametrize("file", _READ_BY_ANY_PYTHON)
def test_an_old_python_can_parse_the_files_that_refuse_it(file: str) -> None:
    ast.parse((ROOT / PACKAGE / file).read_text(), feature_version=(3, 4))


def old_pythons() -> list[Path]:
    """Return the old versions of Python 3 that pyenv has installed for this user."""
    home = pwd.getpwuid(os.geteuid()).pw_dir
    found = []
    for path in sorted(Path(home, ".pyenv", "versions").glob("*/bin/python")):
        version = path.parts[-3]
        if re.match(r"3\.\d\.|3\.10", version):
            found.append(path)
    return found


def test_each_installed_old_python_is_refused_with_a_response() -> None:
    for python in old_pythons():
        command = [str(python), "-B", "-m", PACKAGE, "config", "list"]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

        assert (ran.returncode, ran.stderr) == (4, ""), python
        assert json.loads(ran.stdout)["error"]["code"] == "PYTHON_TOO_OLD"
