"""The names that others are made from, and how they are replaced by those of another project."""

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
from sampletool.kit.rename import Names, rename, rename_files
from tests.kit.trees import ROOT

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
    assert rename(text, Names("old", "prog"), Names("new", "n-t"), _COMMANDS) == expected
    assert rename(expected, Names("new", "n-t"), Names("old", "prog"), _COMMANDS) == text


@pytest.mark.parametrize(
    "new", [Names("new", "my-prog"), Names("prog", "old"), Names("old-prog", "prog")]
)
def test_a_new_name_may_have_an_old_one_in_it(new: Names) -> None:
    text = 'prog = "old.__main__:main"; "old"; `prog config get`; .prog/; "prog.toml"; PROG_JOBS'

    renamed = rename(text, Names("old", "prog"), new, _COMMANDS)

    assert renamed == (
        f'{new.program} = "{new.package}.__main__:main"; "{new.package}"; `{new.program} '
        f"config get`; .{new.program}/; "
        f'"{new.program}.toml"; {new.prefix}_JOBS'
    )


def test_in_a_tree_the_kit_and_what_is_no_text_stay_as_they_are() -> None:
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


def test_the_kit_takes_its_names_from_the_package_that_it_lies_in(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / PACKAGE / "kit",
        tmp_path / "other" / "kit",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (tmp_path / "other" / "__init__.py").write_text(
        '"""Other."""\nPROGRAM = "oth-er"\n__version__ = "1"\n'
    )
    (tmp_path / "other" / "__main__.py").write_text("from .kit.start import main\n\nmain()\n")
    (tmp_path / "oth-er.toml").write_text("[settings]\nlevel = 1\n")

    def answer(*call: str, **environ: str) -> Any:
        argv = [sys.executable, "-m", "other", *call, "--json"]
        ran = subprocess.run(
            argv, cwd=tmp_path, env={**os.environ, **environ}, capture_output=True, check=False
        )
        return json.loads(ran.stdout)["data"]

    assert answer("config", "get", "jobs", OTH_ER_JOBS="3")["value"] == 3
    assert answer("config", "get", "level")["source"] == "project"
    assert answer("lock", "list") == {"locks": []}


def test_the_console_script_is_the_program() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    assert scripts == {PROGRAM: f"{PACKAGE}.__main__:main"}


_READ_BY_ANY_PYTHON = ("__init__.py", "__main__.py", "kit/__init__.py", "kit/start.py")


@pytest.mark.parametrize("file", _READ_BY_ANY_PYTHON)
def test_an_old_python_can_read_what_refuses_it(file: str) -> None:
    ast.parse((ROOT / PACKAGE / file).read_text(), feature_version=(3, 4))


def old_pythons() -> list[Path]:
    """Return the old versions of Python 3 that pyenv has installed for this user."""
    installed = Path(pwd.getpwuid(os.geteuid()).pw_dir, ".pyenv", "versions")
    return sorted(
        path
        for path in installed.glob("*/bin/python")
        if re.match(r"3\.\d\.|3\.10", path.parts[-3])
    )


def test_every_old_python_that_is_here_gets_an_answer_that_refuses_it() -> None:
    for python in old_pythons():
        argv = [str(python), "-B", "-m", PACKAGE, "config", "list"]
        ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (4, ""), python
        assert json.loads(ran.stdout)["error"]["code"] == "PYTHON_TOO_OLD"
    assert sys.version_info >= (3, 11)
