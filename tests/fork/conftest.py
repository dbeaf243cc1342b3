"""A wheel and an sdist of this project, which are really built."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT

# These files belong to another project. `make forks` runs its tests.
collect_ignore = ["ledger/files"]


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the paths of the two archives, by `wheel` and `sdist`.

    A build takes more than 1 s, so the tests of a worker share them. A session fixture begins
    before a test has its HOME, so the build gets a HOME of its own.
    """
    builder = Path(sys.prefix, "bin", "hatchling")
    if not builder.exists():
        pytest.skip("hatchling is not installed: make .venv/.testable")
    directory = tmp_path_factory.mktemp("archives")
    dist = directory / "dist"
    home = str(directory)
    built = subprocess.run(
        [str(builder), "build", "-t", "wheel", "-t", "sdist", "-d", str(dist)],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = dist.glob("*.whl")
    (sdist,) = dist.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


@pytest.fixture
def installed(archives: dict[str, Path], tmp_path: Path) -> dict[str, str]:
    """Return the environment of a process that imports the wheel as pip installs it.

    The dependencies of the wheel are those of the tests.
    """
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", str(target), str(archives["wheel"])], check=True)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    imported = subprocess.run(
        [sys.executable, "-c", f"import {PACKAGE}; print({PACKAGE}.__file__)"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert imported.stdout.startswith(str(target))
    return environment
