"""A wheel and an sdist of this project, really built."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the paths of the two archives by `wheel` and `sdist`.

    They are built once for all tests of a worker, because a build takes more than 1 s. A session fixture begins before
    a test has its HOME, so the build gets a HOME of its own.
    """
    builder = Path(sys.prefix, "bin", "hatchling")
    if not builder.exists():
        pytest.skip("hatchling is not installed: make .venv/.testable")
    directory = tmp_path_factory.mktemp("archives")
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory), "TMPDIR": str(directory)}
    call = [str(builder), "build", "-t", "wheel", "-t", "sdist", "-d", str(directory / "dist")]
    built = subprocess.run(call, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return {"wheel": next((directory / "dist").glob("*.whl")), "sdist": next((directory / "dist").glob("*.tar.gz"))}


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
