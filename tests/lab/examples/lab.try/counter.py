"""What the examples of `lab try` are run with: each worker counts in a file of its own, so every schedule is good."""

from pathlib import Path


def worker(name: str) -> None:
    Path(name).write_text("1")


def invariant() -> None:
    assert sorted(file.name for file in Path().iterdir()) == ["A", "B"]
