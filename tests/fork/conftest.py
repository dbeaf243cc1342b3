"""A wheel and an sdist of this project, really built."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from tests.kit.trees import ROOT


@pytest.fixture
def archives(tmp_path: Path) -> dict[str, Path]:
    """By `wheel` and `sdist`."""
    builder = Path(sys.prefix, "bin", "hatchling")
    if not builder.exists():
        pytest.skip("hatchling is not installed: make .venv/.testable")
    call = [str(builder), "build", "-t", "wheel", "-t", "sdist", "-d", str(tmp_path / "dist")]
    built = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return {"wheel": next((tmp_path / "dist").glob("*.whl")), "sdist": next((tmp_path / "dist").glob("*.tar.gz"))}


@pytest.fixture
def installed(archives: dict[str, Path], tmp_path: Path) -> dict[str, str]:
    """The environment of a process that imports the wheel as pip installs it. Its dependencies are those of tests."""
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(target)]
    subprocess.run([*pip, str(archives["wheel"])], check=True)
    environ = {**os.environ, "PYTHONPATH": str(target)}
    where = [sys.executable, "-c", f"import {PACKAGE}; print({PACKAGE}.__file__)"]
    found = subprocess.run(where, env=environ, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert found.startswith(str(target))
    return environ
