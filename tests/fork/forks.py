"""`make forks`: create projects, run their checks and tests, and upgrade their kit.

Without arguments, it tries this project without its other parts, then a project without parts, one
with each part, one with all parts, and one that depends on the kit. Then it builds a whole tool,
the ledger (see ledger/script.py).

`make forks PARTS="state lab"` tries one project with these parts, and `PARTS=none` one without.
With `dependency` among the names, the project depends on the kit. `PARTS=ledger` tries only the
ledger.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sampletool.fork.project import offered_parts
from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.trees import commit, copy_tree, make_environment, mark_as_ready
from tests.fork.ledger.script import try_ledger
from tests.fork.projects import (
    build_wheel,
    environment,
    install,
    newer_version,
    prepare_environment,
    run,
)

_NONE = "none"
_DEPENDENCY = "dependency"
_LEDGER = "ledger"


@dataclass(frozen=True)
class Kind:
    """What a project is created with."""

    parts: list[str]
    depends_on_kit: bool = False

    def __str__(self) -> str:
        """Return the name that the results show."""
        parts = ", ".join(self.parts) or "no part"
        kit = ", depending on the kit" if self.depends_on_kit else ""
        return f"a project with {parts}{kit}"


def main(names: list[str]) -> int:
    """Try the projects that the arguments name, and print the results. Return the exit code."""
    failures: list[str] = []
    if not names:
        failures += try_alone()
    for kind in kinds(names):
        failures += try_project(kind)
    if not names or _LEDGER in names:
        failures += try_ledger()
    print(f"Failed: {'; '.join(failures) or 'nothing'}")
    return 1 if failures else 0


def kinds(names: list[str]) -> Iterator[Kind]:
    """Yield the projects to try, without the ledger."""
    if names == [_LEDGER]:
        return
    if names:
        parts = [name for name in names if name not in (_NONE, _DEPENDENCY, _LEDGER)]
        yield Kind(parts, depends_on_kit=_DEPENDENCY in names)
        return
    yield Kind([])
    for part in offered_parts():
        yield Kind([part])
    yield Kind(offered_parts())
    yield Kind(["sample"] if "sample" in offered_parts() else [], depends_on_kit=True)


def try_alone() -> list[str]:
    """Try this project without its other parts. Return what failed."""
    with tempfile.TemporaryDirectory(prefix="alone-") as directory:
        tree = copy_tree(ROOT, Path(directory) / "alone")
        commit(tree)
        python = str(make_environment(tree))
        remove = [python, "-m", f"{PACKAGE}.kit.parts", "remove", *offered_parts()]
        subprocess.run(remove, env=environment(), cwd=tree, check=True, stdout=subprocess.DEVNULL)
        commit(tree)
        mark_as_ready(tree)
        goals = ["pages", "check", "test"]
        return run("this project without other parts: checks and tests", goals, tree)


def try_project(kind: Kind) -> list[str]:
    """Create a project, try it, upgrade its kit, and try it again. Return what failed."""
    with tempfile.TemporaryDirectory(prefix="fork-") as directory:
        scratch = Path(directory)
        newer = newer_version(scratch)
        if kind.depends_on_kit:
            project = create(kind, scratch, build_wheel(ROOT, scratch / "older"))
            failures = run(f"{kind}: checks and tests", ["check", "test"], project)
            install(build_wheel(newer, scratch / "newest"), project)
            upgraded = run(f"{kind}: with the newer kit", ["check", "test"], project)
        else:
            project = create(kind, scratch)
            failures = run(f"{kind}: checks and tests", ["check", "test"], project)
            upgraded = run(f"{kind}: upgrade", ["upgrade", f"FROM={newer}"], project)
            upgraded += run(f"{kind}: tests with the newer kit", ["test"], project)
        return failures + upgraded


def create(kind: Kind, scratch: Path, wheel: Path | None = None) -> Path:
    """Create a project with an environment that has the packages of this one."""
    project = scratch / "acme"
    command = [sys.executable, "-m", PACKAGE, "fork", "acme", "--to", str(project), "--json"]
    command += ["--with", ",".join(kind.parts)]
    if wheel is not None:
        command += ["--kit", "dependency", "--kit-from", str(wheel)]
    created = subprocess.run(
        command,
        env=environment(),
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    )
    assert json.loads(created.stdout)["data"]["is_committed"]
    prepare_environment(project, "acme")
    if wheel is not None:
        install(wheel, project)
    return project


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
