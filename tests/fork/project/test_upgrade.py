"""A fork takes a newer kit under its own names, keeps its own work, and is green; archives carry all of the kit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit import upgrade
from sampletool.kit.checksums import folders as folders_of_kit
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.project import ROOT
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import commit, copy_mypy_cache, copy_tree, make_environment, tracked_files

_FRESH = f'''"""New in this kit."""

from {PACKAGE}.kit.testing.tool import Tool


def test_fresh_advice_names_the_program(tool: Tool) -> None:
    assert "`{PROGRAM} config list`" in tool("config", "get", "nothing").error["suggestion"]
'''


def run(tree: Path, *command: str, **environ: str) -> str:
    ran = subprocess.run(command, cwd=tree, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    return ran.stdout


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A checkout of a newer version of this project."""
    tree = copy_tree(ROOT, tmp_path / "newer")
    changelog = tree / PACKAGE / "kit" / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## ", "## 99.1.0\n\n* Faster than before.\n\n## ", 1))
    (tree / "tests" / "kit" / "project" / "test_fresh.py").write_text(_FRESH)
    (tree / "docs" / "kit" / "fresh.md").write_text(f"# Fresh\n\n```console\n$ {PROGRAM} --version\n...\n```\n")
    commit(tree)
    return tree


def test_a_fork_with_work_of_its_own_is_green_with_a_newer_kit(
    tool: Tool, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool("fork", "acme-stock", "--command", "stock")
    fork = tool.cwd / "acme-stock"
    monkeypatch.delenv("PYTHONPATH")
    python = str(make_environment(fork))
    copy_mypy_cache(fork)
    (fork / "acme_stock" / "inventory" / "errors.py").write_text(
        (fork / "acme_stock" / "inventory" / "errors.py").read_text().replace("There are {there}", "Only {there}")
    )
    (fork / "README.md").write_text((fork / "README.md").read_text().replace("There are 10", "Only 10"))
    (fork / "acme_stock" / "own.py").write_text('"""Work of its own."""\n')
    run(fork, "git", "add", "-A")
    run(fork, "git", "-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-qm", "Work of its own")

    some = "fresh or test_names or test_files or inventory or test_needs"
    said = run(
        fork,
        python,
        "-m",
        "acme_stock.kit.upgrade",
        str(newer),
        PYTEST_ADDOPTS=f"-n0 -p no:anyio -p no:valkey -k '{some}'",
    )

    assert "* Faster than before." in said
    assert "The new kit is in place" in said
    assert "`stock config list`" in (fork / "tests" / "kit" / "project" / "test_fresh.py").read_text()
    assert "from acme_stock.kit" in (fork / "tests" / "kit" / "project" / "test_fresh.py").read_text()
    assert "$ stock --version" in (fork / "docs" / "kit" / "fresh.md").read_text()
    changed = {line[3:].split("/")[0] for line in run(fork, "git", "status", "--porcelain").splitlines()}
    assert changed == {"acme_stock", "docs", "tests"}
    assert (fork / "acme_stock" / "own.py").exists()


@pytest.mark.parametrize("form", ["wheel", "sdist"])
def test_both_archives_carry_the_kit_with_its_tests_pages_and_pins(archives: dict[str, Path], form: str) -> None:
    def kit_of(source: Path) -> dict[str, bytes]:
        package, files = upgrade.laid_out(upgrade.read(source))
        assert package == PACKAGE
        return {path: files[path] for path in files if path.startswith((*folders_of_kit(PACKAGE), "constraints.txt"))}

    carried = kit_of(archives[form])

    assert carried == kit_of(ROOT)
    assert carried.keys() >= {f"{PACKAGE}/kit/README.md", "tests/kit/busy.py", "docs/kit/tests.md"}


def test_the_archives_of_a_fork_carry_its_list_of_checksums(tool: Tool) -> None:
    builder = Path(sys.prefix, "bin", "hatchling")
    if not builder.exists():
        pytest.skip("hatchling is not installed: make .venv/.testable")
    tool("fork", "acme")
    fork = tool.cwd / "acme"

    run(fork, str(builder), "build", "-d", str(tool.cwd / "dist"))

    wheel, sdist = ({*upgrade.read(next((tool.cwd / "dist").glob(form)))} for form in ("*.whl", "*.tar.gz"))
    assert "acme/kit/CHECKSUMS" in wheel
    assert "acme-0.1.0/acme/kit/CHECKSUMS" in sdist
    assert {path.removeprefix("acme-0.1.0/") for path in sdist} - {"PKG-INFO"} == {*tracked_files(fork)}
