"""Who may import whom, written once in pyproject.toml; and the rule can catch a violation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    linter = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [str(linter), "--no-cache"], cwd=directory, capture_output=True, text=True, env=None, check=False
    )


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package, with two parts more."""
    shutil.copytree(_ROOT / "sampletool", tmp_path / "copy" / "sampletool")
    shutil.copy(_ROOT / "pyproject.toml", tmp_path / "copy")
    for part in ("one", "other"):
        (tmp_path / "copy" / "sampletool" / part).mkdir()
        (tmp_path / "copy" / "sampletool" / part / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "copy"))
    return tmp_path / "copy"


def test_the_parts_keep_the_rule(copy: Path) -> None:
    ran = lint(copy)

    assert ran.returncode == 0, ran.stdout


_VIOLATIONS = [
    ("kit/contract/duration.py", "sampletool.kit.places"),
    ("kit/places.py", "sampletool.kit.settings.precedence"),
    ("kit/commands/config/get.py", "sampletool.kit.app"),
    ("kit/commands/config/get.py", "sampletool.kit.stepping.tracer"),
    ("kit/context.py", "sampletool.one"),
    ("one/__init__.py", "sampletool.other"),
    ("kit/context.py", "platformdirs"),
    ("kit/stepping/tracer.py", "filelock"),
]


def test_every_violation_is_caught(copy: Path) -> None:
    for file, imported in _VIOLATIONS:
        path = copy / "sampletool" / file
        path.write_text(f"{path.read_text()}\nimport {imported}\n")

    said = " ".join(lint(copy).stdout.split())

    for file, imported in _VIOLATIONS:
        importer = f"sampletool.{file.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
        assert f"{importer} -> {imported}" in said


def test_nobody_imports_click_which_typer_carries() -> None:
    for path in (_ROOT / "sampletool").rglob("*.py"):
        assert "import click" not in path.read_text()
        assert "typer._click" not in path.read_text()
