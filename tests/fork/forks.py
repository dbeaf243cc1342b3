"""`make forks`: projects without parts, with each part, and with all are made, tested, and upgraded to a newer kit.

Before them this project itself is tested, with no other part than this one.

`python -m tests.fork.forks PART…` makes one with these parts, `python -m tests.fork.forks none` one without.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sampletool.fork.project import offered_parts
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.project import ROOT
from sampletool.kit.testing.trees import commit, copy_tree, make_environment, mark_as_ready

_ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def fork(parts: list[str], scratch: Path) -> Path:
    """Made by the command; its environment has the packages of this one."""
    tree = scratch / "acme"
    call = [sys.executable, "-m", PACKAGE, "fork", "acme", "--to", str(tree), "--with", ",".join(parts), "--json"]
    answer = json.loads(subprocess.run(call, env=_ENVIRON, cwd=ROOT, check=True, capture_output=True).stdout)
    assert answer["ok"]
    binaries = make_environment(tree).parent
    (binaries / PROGRAM).rename(binaries / "acme")
    (binaries / "acme").write_text((binaries / "acme").read_text().replace(PACKAGE, "acme"))
    return tree


def alone(scratch: Path) -> Path:
    """This project without the other parts."""
    tree = copy_tree(ROOT, scratch / "alone")
    commit(tree)
    removing = [str(make_environment(tree)), "-m", f"{PACKAGE}.kit.parts", "remove", *offered_parts()]
    subprocess.run(removing, env=_ENVIRON, cwd=tree, check=True, stdout=subprocess.DEVNULL)
    commit(tree)
    mark_as_ready(tree)
    return tree


def newer(scratch: Path) -> Path:
    """A checkout of a newer version of this project."""
    tree = copy_tree(ROOT, scratch / "newer")
    changelog = tree / PACKAGE / "kit" / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## ", "## 9.1.0\n\n* Newer.\n\n## ", 1))
    commit(tree)
    return tree


def run(said: str, command: list[str], tree: Path) -> list[str]:
    """What is said of it, if it fails."""
    began = time.monotonic()
    ran = subprocess.run(command, cwd=tree, env=_ENVIRON, check=False)
    sys.stdout.write(f"{said}, {time.monotonic() - began:.0f} s, status {ran.returncode}\n")
    sys.stdout.flush()
    return [said] if ran.returncode else []


def main(asked: list[str]) -> int:
    chosen = (
        [[part for part in asked if part != "none"]]
        if asked
        else [[], *([p] for p in offered_parts()), offered_parts()]
    )
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="alone-") as name:
        if not asked:
            failed += run("this project without other parts: tested", ["make", "check", "test"], alone(Path(name)))
    for parts in chosen:
        with tempfile.TemporaryDirectory(prefix="fork-") as name:
            scratch, said = Path(name), f"fork with {', '.join(parts) or 'no part'}"
            tree = fork(parts, scratch)
            failed += run(f"{said}: made and tested", ["make", "check", "test"], tree)
            upgrade = [".venv/bin/python", "-m", "acme.kit.upgrade", str(newer(scratch))]
            failed += run(f"{said}: upgraded", upgrade, tree)
    sys.stdout.write(f"failed: {'; '.join(failed) or 'none'}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
