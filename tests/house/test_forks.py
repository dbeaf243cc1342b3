"""Who forks this takes out what they do not want, and what is left passes its own tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.without import ROOMS, take_out
from tests.support.scale import SOAK

_ROOT = Path(__file__).parents[2]
_THERE = [room for room in ROOMS if (_ROOT / ROOMS[room][0]).exists()]
"""A fork has some of them, or none."""
_CHOICES = [_THERE, *([[room] for room in _THERE] if SOAK else [])]
NEVER = [f"--ignore=tests/house/test_{name}.py" for name in ("forks", "rename")]
_QUICK = [
    f"tests/{name}.py"
    for name in ("house/test_imports", "house/test_startup", "house/test_docs", "test_command_folder")
]


def copy_of_the_tree(directory: Path) -> Path:
    copy = directory / "fork"
    passing = shutil.ignore_patterns("__pycache__", ".*_cache")
    for name in ("sampletool", "tests", "docs"):
        shutil.copytree(_ROOT / name, copy / name, ignore=passing)
    for file in [*_ROOT.glob("*.md"), _ROOT / "pyproject.toml", _ROOT / "Makefile"]:
        shutil.copy(file, copy)
    return copy


def run(copy: Path, *call: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", *call],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("unwanted", _CHOICES, ids=" and ".join)
def test_what_is_left_passes_its_own_tests(unwanted: list[str], tmp_path: Path) -> None:
    """With large counts one by one, and all of what is left; else all at once, a few, and every other imported."""
    copy = copy_of_the_tree(tmp_path)

    take_out(copy, unwanted)

    run(copy, "ruff", "check", "--no-cache", ".")
    run(copy, "ruff", "format", "--no-cache", "--check", ".")
    pytest_ = ["pytest", "-q", "-x", "-p", "no:cacheprovider"]
    if SOAK:
        run(copy, "mypy", "--cache-dir", str(tmp_path / "types"))
        run(copy, *pytest_, "tests", *NEVER)
    else:
        run(copy, *pytest_, "tests", *NEVER, "--collect-only", "-n0")
        run(copy, *pytest_, *_QUICK)


def test_the_lists_name_nothing_that_is_not_there() -> None:
    """As long as nothing has been taken out; a pattern may match nothing."""
    named = [path for paths in ROOMS.values() for path in paths if "*" not in path]

    assert len(_THERE) < len(ROOMS) or [path for path in named if not (_ROOT / path).exists()] == []


def test_it_is_told_what_was_deleted_and_what_else_can_be(tmp_path: Path) -> None:
    copy = copy_of_the_tree(tmp_path)
    for room in _THERE[:1]:
        call = [sys.executable, "-m", "tests.house.without", room]

        env = {**os.environ, "PYTHONPATH": str(copy)}

        first, second = (
            subprocess.run(call, cwd=copy, env=env, capture_output=True, text=True, check=False) for _ in range(2)
        )

        assert f"deleted {ROOMS[room][0]}\n" in first.stdout
        assert (first.returncode, second.returncode, second.stdout) == (0, 2, "")
        assert room not in second.stderr


def test_commands_and_tests_of_a_forks_own_go_with_the_room_that_they_import(tmp_path: Path) -> None:
    texts = {
        "sampletool/lab/play.py": "",
        "sampletool/commands/_race.py": "def show():\n    import sampletool.lab.play",
        "sampletool/commands/races/__init__.py": "",
        "sampletool/commands/races/show.py": "from sampletool.commands import _race",
        "sampletool/commands/mine/__init__.py": "",
        "sampletool/commands/mine/show.py": "import json",
        "tests/commands/test_races_show.py": "def show(): pass",
        "tests/commands/test_mine_show.py": "import sampletool.commands.mine.show",
        "tests/mine/test_more.py": "from tests.commands.test_races_show import show",
        "README.md": "Try `tool races show`.\n\nTry `tool mine show`.\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    deleted = take_out(tmp_path, ["lab"])

    left = [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*.*")) if path.is_file()]
    assert left == [
        "README.md",
        "sampletool/commands/mine/__init__.py",
        "sampletool/commands/mine/show.py",
        "tests/commands/test_mine_show.py",
    ]
    assert (tmp_path / "README.md").read_text() == "Try `tool mine show`.\n"
    assert [str(path.relative_to(tmp_path)) for path in deleted] == [
        "sampletool/lab",
        "sampletool/commands/_race.py",
        "sampletool/commands/races/show.py",
        "sampletool/commands/races",
        "tests/commands/test_races_show.py",
        "tests/mine/test_more.py",
    ]
