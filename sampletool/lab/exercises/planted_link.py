"""Exercise: a program writes a report while an attacker plants a symbolic link in its place.

Change write_report() until `tool lab try` finds no broken schedule. The attacker is B. Leave
plant_link() as it is.
"""

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
    """Write the report, but not through a link."""
    if not REPORT.is_symlink():
        REPORT.write_text(text)


def plant_link() -> None:
    """Put a link in the place of the report."""
    with suppress(FileExistsError):
        REPORT.symlink_to("mine")


def invariant() -> None:
    """Check that the report was not written to the wrong file."""
    assert Path("mine").read_text() == "precious", "A has overwritten the file mine."
