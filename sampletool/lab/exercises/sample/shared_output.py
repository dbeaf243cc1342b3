"""Exercise: two runs write their results at the same time, and each must keep its own.

Change worker() until `tool lab try` finds no broken schedule.
"""

from pathlib import Path


def worker(name: str) -> None:
    """Write a result to a temporary file, then publish it under the name of this run."""
    temporary = Path("result.tmp")
    temporary.write_text(f"result of {name}\n")
    temporary.rename(f"{name}.txt")


def invariant() -> None:
    """Check that each run has its own result."""
    for name in ("A", "B"):
        path = Path(f"{name}.txt")
        assert path.exists(), f"{path} is missing."
        found = path.read_text()
        assert found == f"result of {name}\n", f"{path} contains the {found.strip()}."
