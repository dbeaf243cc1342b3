"""The solution of the exercise planted-link."""

import os
from contextlib import suppress
from pathlib import Path

REPORT = Path("report")


def prepare() -> None:
    """Create the file that the attacker wants to be overwritten."""
    Path("mine").write_text("precious")


def worker(name: str) -> None:
    """Write the report as A, and attack as B."""
    if name == "A":
        write_report("report of A")
    else:
        plant_link()


def write_report(text: str) -> None:
    """Write a new file, which cannot be a link, then rename it."""
    temporary = os.open(".report.tmp", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(temporary, text.encode())
    os.close(temporary)
    os.replace(".report.tmp", REPORT)


def plant_link() -> None:
    """Put a link in the place of the report."""
    with suppress(FileExistsError):
        REPORT.symlink_to("mine")


def invariant() -> None:
    """Check that the report was not written to the wrong file."""
    assert Path("mine").read_text() == "precious", "A has overwritten the file mine."
