"""A program saves its settings, and is killed, or the power fails, while it does so.

What it finds when it starts again is neither the old file nor the new one: it is empty, or ends in the middle. Writing
beside and renaming is what everybody then does, and it helps against the kill. It does not help against the power cut:
the new name may reach the disk before the new content does, and what is found then is a file of no bytes at all.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from ..scenario import History, Removal, Scenario, Step, Way

FILE = "tool.toml"
OLD = '[settings]\nname = "old"\nlevel = 1\n'
NEW = '[settings]\nname = "new"\nlevel = 2\n'


def naive(worker: str) -> None:
    descriptor = os.open(FILE, os.O_WRONLY | os.O_TRUNC)
    for line in NEW.splitlines(keepends=True):
        os.write(descriptor, line.encode())
    os.close(descriptor)


def wrong_rename(worker: str) -> None:
    descriptor = os.open("tool.toml.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(descriptor, NEW.encode())
    os.close(descriptor)
    os.replace("tool.toml.tmp", FILE)


def prepare(directory: Path) -> None:
    (directory / FILE).write_text(OLD)


def look(directory: Path) -> str:
    return seen((directory / FILE).read_text())


def seen(text: str) -> str:
    return " ".join(text.replace(" ", "").split()[1:]) or "(empty)"


def invariant(history: History) -> Iterator[str]:
    """Whenever it ends: tool.toml is the whole old file or the whole new one, and the new one once A was answered."""
    if history.is_over and history.now not in (seen(OLD), seen(NEW)):
        yield f"{FILE} is {'half a file' if '=' in history.now else 'empty'}: neither the old one nor the new one."
    if history.is_over and history.served and history.now == seen(OLD):
        yield f"A was answered that it is saved, and {FILE} is the old one."


scenario = Scenario(
    title="Killed half-way through a write",
    rule="Write beside, flush, rename, flush the directory: a reader then sees the old file or the new one.",
    happened=(
        "Zed, a data lake: the power failed right after its first file was written; the file then had no bytes, and the"
        " server would not start on that lake again. About every second try.",
        "https://github.com/brimdata/super/issues/4080",
    ),
    question="A is killed, or the power fails, between two of its steps. What can be in the file?",
    shared="tool.toml",
    workers=1,
    strikes="!*",
    ways={
        "naive": Way(
            says="open the file, which empties it, and write it line by line",
            shows="A1 A2 A3 A!",
            because="the old content is gone from the first step on, and the new one is there only after the last.",
        ),
        "wrong-rename": Way(
            says="write beside and rename, without flushing",
            shows="A1 A2 A3 A*",
            breaks="tool.toml is empty",
            because="a name and what it names reach the disk each in its own time; only fsync puts them in order.",
        ),
        "fixed": Way(
            says="tool config set: write beside, flush, rename, flush the directory",
            program=("config", "set", "name=new", "level=2"),
            shows="A1 A2 A3 A4 A5 A*",
            because="the content was on the disk before the name was, and the name before it said so.",
        ),
    },
    steps=(
        Step("empty", "open", FILE, kind="write"),
        Step("write a line", "os.write", FILE),
        Step("create", "open", "*.tmp", kind="write"),
        Step("write", "os.write", "*.tmp"),
        Step("flush", "os.fsync", "*.tmp"),
        Step("rename", "os.rename", FILE),
        Step("flush the directory", "os.fsync", "here"),
    ),
    mechanisms=(
        Removal(
            "kit/safety/atomic_file.py:_write_and_publish",
            says="no flush before the rename",
            pattern="flush(descriptor)",
            instead="pass",
            breaks="tool.toml is empty",
        ),
        Removal(
            "kit/safety/atomic_file.py:_write_and_publish",
            says="the flush after the rename",
            pattern="""\
try:
    ...
    flush(descriptor)
finally:
    os.close(descriptor)
publish(temporary, target)
""",
            instead="""\
try:
    ...
    publish(temporary, target)
    flush(descriptor)
finally:
    os.close(descriptor)
""",
            breaks="tool.toml is empty",
        ),
        Removal(
            "kit/safety/atomic_file.py:_flush_parent",
            says="no flush of the directory",
            pattern="flush_directory(target.parent)",
            instead="pass",
            breaks="A was answered that it is saved, and tool.toml is the old one",
        ),
    ),
    symbol="sampletool.kit.safety.atomic_file:replace",
    still_broken_by="a disk that says it has flushed and has not; what is tried here is a model of the file system, "
    "which may lose or keep anything that was not flushed.",
)
