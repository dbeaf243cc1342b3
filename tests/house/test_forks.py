"""Who forks this deletes what they do not want, and what is left passes its own tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.scale import SOAK

_ROOT = Path(__file__).parents[2]

_WITH_A_STORE = [
    "double-claim",
    "get-then-set",
    "in-process-queue",
    "lost-increments",
    "lost-list-items",
    "retry-twice",
    "stale-write",
    "zombie-worker",
]

DELETIONS = {
    "the race lab": [
        "sampletool/lab",
        "sampletool/commands/lab",
        "sampletool/commands/_lab_options.py",
        "sampletool/commands/_lab_picture.py",
        "tests/lab",
        "tests/commands/test_lab.py",
        "docs/labs",
        "docs/generate/labs.py",
    ],
    "the auditor": [
        "sampletool/audit",
        "sampletool/commands/audit.py",
        "tests/audit",
        "tests/commands/test_audit.py",
        "docs/audit.md",
    ],
    "shared state": [
        "sampletool/state",
        *(f"sampletool/commands/{name}" for name in ("counter", "state", "task")),
        "sampletool/commands/_store_options.py",
        "sampletool/commands/_store_values.py",
        "tests/state",
        "tests/commands/test_store.py",
        "tests/bench/state.py",
        "docs/shared-state.md",
        "sampletool/lab/stores.py",
        "tests/lab/test_stores.py",
        *(f"sampletool/lab/scenarios/{name.replace('-', '_')}.py" for name in _WITH_A_STORE),
        *(f"docs/labs/{name}.{kind}" for name in _WITH_A_STORE for kind in ("md", "svg")),
    ],
    "the sample domain": [
        "sampletool/domain",
        *(
            f"sampletool/commands/{name}.py"
            for name in ("init", "build", "test", "process", "_building", "_csv_inputs")
        ),
        "tests/domain",
        *(
            f"tests/commands/test_{name}.py"
            for name in ("init", "build", "build_containers", "build_planted", "test", "process")
        ),
        "docs/building.md",
        "docs/process.md",
        *(f"sampletool/lab/scenarios/{name}.py" for name in ("lock_conflict", "shared_output")),
        *(f"docs/labs/{name}.{kind}" for name in ("lock-conflict", "shared-output") for kind in ("md", "svg")),
    ],
}
"""What to delete for each thing not wanted. The written pages that remain are the forker's to rewrite."""

_CHOICES = [list(DELETIONS), *([[thing] for thing in DELETIONS] if SOAK else [])]
_QUICK = ["tests/house/test_imports.py", "tests/house/test_startup.py", "tests/test_command_folder.py"]
_NEVER = ["--ignore=tests/house/test_forks.py", "--ignore=tests/house/test_docs.py"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("unwanted", _CHOICES, ids=" and ".join)
def test_what_is_left_passes_its_own_tests(unwanted: list[str], tmp_path: Path) -> None:
    """With large counts one by one, and all of what is left; else all at once, a few, and every other imported."""
    copy = tmp_path / "fork"
    for name in ("sampletool", "tests", "docs"):
        shutil.copytree(_ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(_ROOT / name, copy)
    for name in [name for thing in unwanted for name in DELETIONS[thing]]:
        path = copy / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    calls = [["tests", *_NEVER]] if SOAK else [["tests", *_NEVER, "--collect-only", "-n0"], _QUICK]
    for call in calls:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *call],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-3000:]
