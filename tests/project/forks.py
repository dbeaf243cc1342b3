"""`make forks`: without each part, and without all of them, what is left passes `make check test`.

`python -m tests.project.forks NAME…` tries the tree without these parts.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from sampletool.kit.parts import part_names
from sampletool.kit.program import PACKAGE
from tests.kit.trees import ROOT, commit, copy_tree, make_environment, mark_as_made


def without(parts: list[str], tree: Path) -> Path:
    """A copy of the tree as it is now, from which the parts are removed; its interpreter."""
    copy_tree(ROOT, tree)
    commit(tree)
    python = make_environment(tree)
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if parts:
        removing = [str(python), "-m", f"{PACKAGE}.kit.parts", "remove", *parts]
        subprocess.run(removing, cwd=tree, env=environ, check=True, stdout=subprocess.DEVNULL)
    mark_as_made(tree)
    return python


def main() -> int:
    chosen = [sys.argv[1:]] if sys.argv[1:] else [*([name] for name in part_names()), part_names()]
    failed = 0
    for parts in chosen:
        with tempfile.TemporaryDirectory(prefix="fork-") as scratch:
            tree = Path(scratch, "tree")
            without(parts, tree)
            sys.stdout.write(f"Without {', '.join(parts)}:\n")
            sys.stdout.flush()
            failed |= subprocess.run(["make", "check", "test"], cwd=tree, check=False).returncode
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main())
