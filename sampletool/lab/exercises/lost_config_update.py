"""Exercise: two processes save a setting each, and both settings must be kept.

Change worker() until `tool lab try` finds no broken schedule.
"""

from pathlib import Path

FILE = Path("tool.toml")


def prepare() -> None:
    """Create the file that both processes edit."""
    FILE.write_text("jobs = 4\n")


def worker(name: str) -> None:
    """Add a key. This runs twice at the same time, as worker("A") and as worker("B")."""
    text = FILE.read_text()
    FILE.write_text(f"{text}{name} = 1\n")


def invariant() -> None:
    """Check the file when both processes have finished."""
    lines = FILE.read_text().splitlines()
    assert "jobs = 4" in lines, "the key jobs is lost."
    assert "A = 1" in lines, "the key of A is lost."
    assert "B = 1" in lines, "the key of B is lost."
