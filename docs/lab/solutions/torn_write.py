"""The solution of the exercise torn-write."""

import os
from pathlib import Path

FILE = Path("tool.toml")
OLD = "name = old and longer\n"
NEW = "name = new\n"


def prepare() -> None:
    """Create the old file."""
    FILE.write_text(OLD)


def worker(name: str) -> None:
    """Save the file as A, and read it as B."""
    if name == "A":
        save(NEW)
    else:
        Path("seen").write_text(FILE.read_text())


def save(text: str) -> None:
    """Replace the content of the file: write, flush, rename, flush the directory."""
    temporary = Path("tool.toml.tmp")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, FILE)
    directory = os.open(".", os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def invariant() -> None:
    """Check what the reader saw, and what is in the file at the end."""
    assert Path("seen").read_text() in (OLD, NEW), "the reader saw a file that is not complete."
    assert FILE.read_text() == NEW, "the new text is not in the file."


def after_power_cut(finished: str | None) -> None:
    """Check the file if the power fails. `finished` is "A" if save() has returned before."""
    text = FILE.read_text() if FILE.exists() else "(no file)"
    if finished:
        assert text == NEW, f"save() has returned, but the file contains {text!r}."
    else:
        assert text in (OLD, NEW), f"the file contains {text!r}."
