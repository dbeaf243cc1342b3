"""Exercise: one process saves a file while another one reads it.

Change save() until `tool lab try` finds no broken schedule. The reader must see the old text or the
new text, and nothing in between. The same is true of the disk if the power fails.
"""

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
    """Replace the content of the file."""
    FILE.write_text(text)


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
