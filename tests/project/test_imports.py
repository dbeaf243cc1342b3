"""The import rules in pyproject.toml hold, and each of them finds a violation."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT

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
"""A file below the package, and a module that it must not import."""


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with a copy of the package, which has two more parts."""
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / PACKAGE, copy / PACKAGE)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for part in ("one", "other"):
        (copy / PACKAGE / part).mkdir()
        (copy / PACKAGE / part / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(copy))
    return copy


def _lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    linter = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [str(linter), "--no-cache"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def test_two_parts_without_imports_break_no_rule(copy: Path) -> None:
    completed = _lint_imports(copy)

    assert completed.returncode == 0, completed.stdout


def test_each_violation_is_found(copy: Path) -> None:
    for file, imported in _VIOLATIONS:
        path = copy / PACKAGE / file
        path.write_text(f"{path.read_text()}\nimport {imported}\n")

    output = " ".join(_lint_imports(copy).stdout.split())

    for file, imported in _VIOLATIONS:
        module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        assert f"{PACKAGE}.{module} -> {imported}" in output


def test_no_file_imports_the_click_that_is_inside_typer() -> None:
    for path in (ROOT / PACKAGE).rglob("*.py"):
        source = path.read_text()
        assert "import click" not in source, path
        assert "typer._click" not in source, path
