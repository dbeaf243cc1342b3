"""The file that the examples of `lab try` use. No schedule breaks it.

Each worker counts in a file of its own.
"""

from pathlib import Path


def worker(name: str) -> None:
    Path(name).write_text("1")


def invariant() -> None:
    for file in Path().iterdir():
        assert file.read_text() == "1"
