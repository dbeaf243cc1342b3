"""A program writes its report into a directory that others may write to as well. First it looks whether that is safe.

Between the look and the write another user puts a link in the report's place. The program follows it, and writes over a
file that it may write and the other one may not. What was checked is not what is used: time of check, time of use
(TOCTOU). Looking once more, or looking later, only moves the gap.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ...kit.safety.atomic_file import _temporary_path, replace
from ..scenario import History, Removal, Scenario, Step, Way

REPORT, MINE = Path("report"), Path("mine")


def naive(worker: str) -> None:
    if not has_planted(worker) and not is_link(REPORT):
        REPORT.write_text("A's report")


def wrong_look_when_open(worker: str) -> None:
    if not has_planted(worker):
        report = os.open(REPORT, os.O_WRONLY | os.O_CREAT)
        if not is_link(REPORT):
            os.write(report, b"A's report")


def fixed(worker: str) -> None:
    if worker == "B":
        # A name that an attacker can work out is the same in every process.
        os.symlink(MINE, _temporary_path(REPORT))
    if not has_planted(worker):
        replace(REPORT, b"A's report")


def is_link(path: Path) -> bool:
    sys.audit("stepping.verb", "look")
    return path.is_symlink()


def has_planted(worker: str) -> bool:
    """B plants a link, and takes it away again."""
    if worker == "B":
        with suppress(FileExistsError):
            REPORT.symlink_to(MINE)
        if REPORT.is_symlink():
            REPORT.unlink()
    return worker == "B"


def prepare(directory: Path) -> None:
    (directory / MINE).write_text("precious")


def look(directory: Path) -> str:
    return (directory / MINE).read_text() or "(empty)"


def invariant(history: History) -> Iterator[str]:
    """A writes its report and nothing else: the file that B has no right to change stays as it is."""
    if history.now != "precious":
        yield f"A wrote over the file {MINE}, which B has no right to change."


PLANT = (Step("plant a link", "os.symlink", "report"), Step("take it away", "os.remove", "report"))

scenario = Scenario(
    title="What was checked is not what is used",
    rule="Do not check a path and then use it: open what nobody else can name, and publish it by a rename.",
    happened=(
        "filelock, which virtualenv and many others use: between its look and its `open`, which emptied the file, a "
        "link could be planted, and the file that it led to was emptied (CVE-2025-68146).",
        "https://github.com/tox-dev/filelock/pull/461",
    ),
    question="A looks: no link. Then it writes. Which file does it write to?",
    shared="mine",
    ways={
        "naive": Way(
            says="if it is no link, open it and write",
            shows="A1 B1 A2",
            because="B planted the link when A had looked.",
        ),
        "wrong-look-when-open": Way(
            says="open it, look whether it is a link, then write",
            steps=(
                Step("open", "open", "report", kind="write"),
                Step("look: no link", "stepping.verb"),
                Step("write", "os.write"),
                *PLANT,
            ),
            shows="B1 A1 B2 A2 A3",
            because="A had opened the link's file already, and B took the link away before A looked.",
        ),
        "fixed": Way(
            says="write beside, under a name that nobody can guess and that must not be there; rename",
            shows="A1 B1 A2",
            because="the rename took the link's place and never followed it.",
        ),
    },
    steps=(
        Step("look: no link", "stepping.verb"),
        Step("write", "open", "report", kind="write"),
        Step("create", "open", ".report.*.tmp", kind="create"),
        Step("rename", "os.rename", "report"),
        *PLANT,
    ),
    mechanisms=(
        Removal(
            "kit/safety/atomic_file.py:replace",
            says="writing through the name instead of renaming",
            pattern="_write_and_publish(path, content, new_mode, _publish_by_rename)",
            instead="""\
_write_and_publish(path, content, new_mode, lambda new, old: [old.write_bytes(content), new.unlink()])
""",
            breaks="A wrote over the file mine",
        ),
    ),
    symbol="sampletool.kit.safety.atomic_file:_write_and_publish",
    still_broken_by="a directory above it that another user can replace; `O_NOFOLLOW` looks at the last name only.",
)
