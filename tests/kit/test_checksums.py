"""kit/checksums.py: a project that has taken the kit notices when somebody edits it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.checksums import checksums_text, differing_files
from sampletool.kit.program import KIT, KIT_DIRECTORY, PACKAGE
from sampletool.kit.testing.trees import write_checksums


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project that has taken the kit."""
    ignored = shutil.ignore_patterns("__pycache__")
    project = tmp_path / "project"
    shutil.copytree(KIT_DIRECTORY, project / PACKAGE / "kit", ignore=ignored)
    (project / PACKAGE / "__init__.py").write_text('PROGRAM = "prog"\n__version__ = "1"\n')
    write_checksums(project)
    return project


def compare(project: Path) -> subprocess.CompletedProcess[str]:
    # A fresh interpreter: a forked one has loaded our kit, not that of the project.
    command = [sys.executable, "-m", f"{KIT}.checksums"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)


def test_an_unchanged_kit_passes(project: Path) -> None:
    (project / PACKAGE / "own.py").touch()
    (project / PACKAGE / "kit" / "__pycache__").mkdir(exist_ok=True)
    (project / PACKAGE / "kit" / "__pycache__" / "old.cpython-311.pyc").touch()

    compared = compare(project)

    assert (compared.returncode, compared.stderr) == (0, "")


@pytest.mark.parametrize("name", ["app.py", "kit.mk", "commands/log.py"])
@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_an_edited_file_of_the_kit_is_named(project: Path, name: str, change: str) -> None:
    path = project / PACKAGE / "kit" / name
    if change == "edited":
        path.write_text(path.read_text() + "\n")
    else:
        path.unlink()

    compared = compare(project)

    assert compared.returncode == 1
    assert compared.stderr.startswith(f"The kit was edited: kit/{name}. ")
    assert "put your code next to the kit" in compared.stderr


def test_a_file_that_was_added_to_the_kit_is_named(project: Path) -> None:
    (project / PACKAGE / "kit" / "commands" / "mine.py").touch()

    assert compare(project).stderr.startswith("The kit was edited: kit/commands/mine.py. ")


def test_without_checksums_as_where_the_kit_is_developed_nothing_is_compared(project: Path) -> None:
    (project / PACKAGE / "kit" / "CHECKSUMS").unlink()
    (project / PACKAGE / "kit" / "app.py").write_text("new\n")

    assert compare(project).returncode == 0


def test_each_file_that_differs_is_named_once() -> None:
    before = {"same.py": b"1", "changed.py": b"1", "deleted.py": b"1", "CHECKSUMS": b"old"}
    after = {"same.py": b"1", "changed.py": b"2", "added.py": b"1", "CHECKSUMS": b"new"}

    differing = differing_files(checksums_text(before), after)

    assert differing == ["added.py", "changed.py", "deleted.py"]


def test_a_line_has_the_checksum_and_the_path_as_sha256sum_prints_them(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("text")
    program = shutil.which("sha256sum")
    if program is None:
        pytest.skip("sha256sum is not installed")

    printed = subprocess.run([program, "a.py"], cwd=tmp_path, capture_output=True, check=True)

    assert checksums_text({"a.py": b"text"}) == printed.stdout.decode()
