"""The solution of the exercise shared-output."""

from pathlib import Path


def worker(name: str) -> None:
    """Write a result to a temporary file of this run, then publish it."""
    temporary = Path(f"{name}.tmp")
    temporary.write_text(f"result of {name}\n")
    temporary.rename(f"{name}.txt")


def invariant() -> None:
    """Check that each run has its own result."""
    for name in ("A", "B"):
        path = Path(f"{name}.txt")
        assert path.exists(), f"{path} is missing."
        found = path.read_text()
        assert found == f"result of {name}\n", f"{path} contains the {found.strip()}."
