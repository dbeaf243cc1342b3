"""Exercise: two workers want the same job, and only one of them may do it.

Change worker() until `tool lab try` finds no broken schedule. This exercise uses a file instead of
a store, because the lab steps files.
"""

from pathlib import Path

JOB = Path("job")


def prepare() -> None:
    """Create one free job."""
    JOB.write_text("free")


def worker(name: str) -> None:
    """Claim the job if it is free, and do it."""
    if JOB.read_text() == "free":
        JOB.write_text(name)
        Path(f"done-by-{name}").touch()


def invariant() -> None:
    """Check that one worker has done the job."""
    done = sorted(path.name for path in Path().glob("done-by-*"))
    assert len(done) == 1, f"these workers did the job: {done}."
