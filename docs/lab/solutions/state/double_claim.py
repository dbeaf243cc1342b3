"""The solution of the exercise double-claim."""

from pathlib import Path

JOB = Path("job")


def prepare() -> None:
    """Create one free job."""
    JOB.write_text("free")


def worker(name: str) -> None:
    """Claim the job by renaming it, which only one worker can do."""
    try:
        JOB.rename(f"job-of-{name}")
    except FileNotFoundError:
        return
    Path(f"done-by-{name}").touch()


def invariant() -> None:
    """Check that one worker has done the job."""
    done = sorted(path.name for path in Path().glob("done-by-*"))
    assert len(done) == 1, f"these workers did the job: {done}."
