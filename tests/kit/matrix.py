"""Run the kit's tests with the lowest and the newest dependencies, on every Python: `make matrix`.

With `--commands`, run only the tests of the kit's commands. They depend most on Typer.

A Python that is not installed is skipped. The environments are in .venv/matrix. Each is created
again when the list of its packages changes.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_ENVIRONMENTS = _ROOT / ".venv" / "matrix"
_VERSIONS = ("3.11", "3.12", "3.13", "3.14")
_TEST_TOOLS = ("pytest", "pytest-xdist", "pytest-timeout", "hypothesis", "jsonschema")
_COMMAND_TESTS = [
    "tests/kit/commands",
    "tests/kit/test_app.py",
    "tests/kit/test_command_folder.py",
]
_ALL_TESTS = ["tests/kit"]

_PRINT_VERSION = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
"""A program that fails if the interpreter cannot create environments."""


@dataclass(frozen=True)
class Python:
    """An installed interpreter."""

    version: str
    """For example `3.12`."""
    path: str


def pythons() -> Iterator[Python]:
    """Yield an interpreter for each version that is on the PATH or was installed by pyenv."""
    for version in _VERSIONS:
        candidates = []
        on_path = shutil.which(f"python{version}")
        if on_path is not None:
            candidates.append(on_path)
        for by_pyenv in sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python")):
            candidates.append(str(by_pyenv))

        for path in candidates:
            # A file on the PATH may be a launcher of pyenv that runs another version, or none.
            completed = subprocess.run(
                [path, "-c", _PRINT_VERSION],
                capture_output=True,
                text=True,
                check=False,
            )
            if completed.stdout.strip() == version:
                yield Python(version=version, path=path)
                break


def requirements(project: str, *, lowest: bool) -> list[str]:
    """Return the dependencies in a pyproject.toml, as they are or with the lowest versions."""
    dependencies: list[str] = tomllib.loads(project)["project"]["dependencies"]
    if not lowest:
        return dependencies
    return [re.sub(r">=([^,]+).*", r"==\1", dependency) for dependency in dependencies]


def pinned_test_tools(constraints: str) -> list[str]:
    """Return the packages that run the tests, with their versions in a constraints.txt."""
    versions = {}
    for line in constraints.splitlines():
        name, separator, rest = line.partition("==")
        if separator:
            version, _, _marker = rest.partition(" ")
            versions[name] = version
    return [f"{tool}=={versions[tool]}" for tool in _TEST_TOOLS]


def environment(python: Python, name: str, packages: list[str]) -> Path:
    """Create an environment with these packages, and return the path of its interpreter.

    If it exists and has these packages, return it as it is.
    """
    directory = _ENVIRONMENTS / name
    interpreter = directory / "bin" / "python"
    contents = "\n".join([python.path, *packages])
    digest = hashlib.sha256(contents.encode()).hexdigest()
    ready = directory / ".ready"
    if ready.exists() and ready.read_text() == digest:
        return interpreter

    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([python.path, "-m", "venv", str(directory)], check=True)
    pip = [str(interpreter), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *packages], check=True)
    ready.write_text(digest)
    return interpreter


def main(args: list[str]) -> int:
    """Run the tests in each environment, and return the number of failed runs."""
    project = (_ROOT / "pyproject.toml").read_text()
    tools = pinned_test_tools((_ROOT / "constraints.txt").read_text())
    tests = _ALL_TESTS
    if "--commands" in args:
        tests = _COMMAND_TESTS

    failed_runs = 0
    for python in pythons():
        for kind in ("lowest", "newest"):
            name = f"{python.version}-{kind}"
            packages = [*requirements(project, lowest=kind == "lowest"), *tools]
            interpreter = environment(python, name, packages)
            is_passed = _run_tests(interpreter, tests)
            verdict = "ok" if is_passed else "FAILED"
            sys.stdout.write(f"{name}: {verdict}\n")
            sys.stdout.flush()
            if not is_passed:
                failed_runs += 1
    return failed_runs


def _run_tests(interpreter: Path, tests: list[str]) -> bool:
    """Return whether the tests pass."""
    completed = subprocess.run(
        [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=_ROOT,
        # The environments have different Pythons, and bytecode of each would pile up in the tree.
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    return completed.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
