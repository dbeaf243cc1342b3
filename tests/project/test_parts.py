"""The project works without any part, and each part keeps the rules for all commands."""

import os
import subprocess
from pathlib import Path

import pytest

from sampletool.kit.part_discovery import part_names
from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.schema import described
from sampletool.kit.testing.tool import declared_specs
from sampletool.kit.testing.trees import commit, copy_tree, make_environment


def without(parts: list[str], tree: Path) -> Path:
    """Copy the project into `tree`, remove the parts, and return the interpreter of the copy."""
    copy_tree(ROOT, tree)
    commit(tree)
    python = make_environment(tree)
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # There may be no parts left.
    if parts:
        remove = [str(python), "-m", f"{PACKAGE}.kit.parts", "remove", *parts]
        subprocess.run(remove, cwd=tree, env=environ, check=True, stdout=subprocess.DEVNULL)
    return python


def test_without_parts_everything_left_can_be_imported_and_every_page_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    binaries = without(part_names(), tree).parent
    monkeypatch.delenv("PYTHONPATH")

    def run(*command: str) -> None:
        completed = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        output = completed.stdout + completed.stderr
        assert completed.returncode == 0, f"{command}:\n{output}"

    pytest_here = (f"{binaries}/python", "-m", "pytest", "-n0", "-p", "no:cacheprovider")
    run(f"{binaries}/ruff", "check", ".")
    run(f"{binaries}/ruff", "format", "--check", ".")
    run(*pytest_here, "--collect-only", "--assert=plain")
    files = [f"tests/kit/project/test_{name}.py" for name in ("docs", "mutants")]
    run(*pytest_here, *files, "-k", "link or mutants")
    run(*pytest_here, "--rules", "-k", "each_link or page_names")


def test_each_list_has_pages() -> None:
    for name, entry in described().items():
        if name.endswith(".list") or name in ("manifest", "log"):
            flags = set()
            for option in entry["options"]:
                flags.update(option["flags"])
            assert {"--limit", "--after"} <= flags, name


def test_each_command_that_runs_a_program_of_the_caller_says_so() -> None:
    runs_programs = {"audit", "build", "lab.try", "run-safely", "task.work", "test"}

    specs = declared_specs()
    declared = {name for name, spec in specs.items() if spec.runs_what_it_is_given}

    # The part of a command may have been removed.
    assert declared == runs_programs & specs.keys()
