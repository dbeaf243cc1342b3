"""A program writes a report into a directory that other users may write to as well.

First it checks that this is safe. Between the check and the write, another user puts a symbolic
link in the place of the report. The program follows the link and overwrites a file that the other
user may not write. This is a TOCTOU race: the time of the check is not the time of the use. A
second check, or a later one, only moves the gap.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ...kit.safety.atomic_file import _temporary_path, replace
from ..scenario import History, Mutation, Scenario, Step, Variant

REPORT = Path("report")
MINE = Path("mine")


def naive(worker: str) -> None:
    """Check the path and write the report as A. Plant a link as B, the attacker."""
    if worker == "B":
        plant_link()
    elif not is_link(REPORT):
        REPORT.write_text("A's report")


def wrong_look_when_open(worker: str) -> None:
    """Open the report as A, then check the path. Wrong: B may have removed its link by then."""
    if worker == "B":
        plant_link()
        return
    report = os.open(REPORT, os.O_WRONLY | os.O_CREAT)
    if not is_link(REPORT):
        os.write(report, b"A's report")


def fixed(worker: str) -> None:
    """Replace the report as A. As B, plant links at its path and at the name of a new file."""
    if worker == "B":
        # A name that an attacker can work out is the same in every process.
        os.symlink(MINE, _temporary_path(REPORT))
        plant_link()
    else:
        replace(REPORT, b"A's report")


def is_link(path: Path) -> bool:
    """Return whether the path is a symbolic link. This is a step of the schedule."""
    sys.audit("stepping.verb", "look")
    return path.is_symlink()


def plant_link() -> None:
    """Put a link in the place of the report, as the attacker does, and remove it again."""
    with suppress(FileExistsError):
        REPORT.symlink_to(MINE)
    if REPORT.is_symlink():
        REPORT.unlink()


def prepare(directory: Path) -> None:
    """Create the file that B may not change."""
    (directory / MINE).write_text("precious")


def read_state(directory: Path) -> str:
    """Return the content of the file to which a planted link leads."""
    text = (directory / MINE).read_text()
    if text == "":
        return "(empty)"
    return text


def invariant(history: History) -> Iterator[str]:
    """No step changes the file `mine`, which B may not change."""
    content = history.state
    if content != "precious":
        yield f"A overwrote the file {MINE}, which B may not change."


PLANT = (
    Step(name="plant a link", event="os.symlink", file="report"),
    Step(name="take it away", event="os.remove", file="report"),
)


scenario = Scenario(
    title="TOCTOU: a symbolic link planted after the check",
    subtitle="A program checks a path, and somebody changes the path before the program uses it.",
    rule=(
        "Do not check a path and then use it. Write a new file under a name that nobody can "
        "guess, then rename it."
    ),
    happened=(
        "filelock, which virtualenv and many other tools use, checked a path and then opened it, "
        "which emptied the file. In between, a link could be planted, so that the target of the "
        "link was emptied (CVE-2025-68146).",
        "https://github.com/tox-dev/filelock/pull/461",
    ),
    question="A checks the path and finds no link. Then A writes. Which file does A write to?",
    shared="mine",
    variants={
        "naive": Variant(
            summary="checks that the path is not a link, then opens it and writes",
            schedule="A1 B1 A2",
            explanation="B planted the link after A's check.",
        ),
        "wrong-look-when-open": Variant(
            summary="opens the path, checks that it is not a link, then writes",
            steps=(
                Step(name="open", event="open", file="report", kind="write"),
                Step(name="look: no link", event="stepping.verb"),
                Step(name="write", event="os.write"),
                *PLANT,
            ),
            schedule="B1 A1 B2 A2 A3",
            explanation=(
                "A had already opened the target of the link when B removed the link, so A's "
                "check found none."
            ),
        ),
        "fixed": Variant(
            summary="writes a new file under a random name, then renames it",
            schedule="A1 B1 A2",
            explanation="The rename replaced the link. It never followed it.",
        ),
    },
    steps=(
        Step(name="look: no link", event="stepping.verb"),
        Step(name="write", event="open", file="report", kind="write"),
        Step(name="create", event="open", file=".report.*.tmp", kind="create"),
        Step(name="rename", event="os.rename", file="report"),
        *PLANT,
    ),
    mechanisms=(
        Mutation(
            function="kit/safety/atomic_file.py:replace",
            summary="write through the path instead of renaming",
            original_code="_write_and_publish(path, content, new_mode, _publish_by_rename)",
            replacement_code=(
                "_write_and_publish(path, content, new_mode, "
                "lambda new, old: [old.write_bytes(content), new.unlink()])"
            ),
            expected_problem="A overwrote the file mine",
        ),
    ),
    production_code="sampletool.kit.safety.atomic_file:_write_and_publish",
)
