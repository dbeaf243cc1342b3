"""What is left without any part stands on its own. `make forks` runs all of its tests, and those without each part."""

import subprocess
from pathlib import Path

import pytest

from sampletool.kit.parts import part_names

from .forks import without


def test_without_parts_everything_left_can_be_imported_and_every_page_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    binaries = without(part_names(), tree).parent
    monkeypatch.delenv("PYTHONPATH")

    def run(*command: str) -> None:
        ran = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"{command}:\n{ran.stdout}{ran.stderr}"

    pytest_here = (f"{binaries}/python", "-m", "pytest", "-n0", "-p", "no:cacheprovider")
    run(f"{binaries}/ruff", "check", ".")
    run(f"{binaries}/ruff", "format", "--check", ".")
    run(*pytest_here, "--collect-only", "--assert=plain")
    files = [f"tests/kit/project/test_{name}.py" for name in ("docs", "mutants")]
    run(*pytest_here, *files, "-k", "link or named or mutants")
