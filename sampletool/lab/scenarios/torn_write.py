"""A program saves its settings. While it writes, somebody kills it, or the power fails.

When the program starts again, its settings file is empty or ends in the middle. The usual answer is
to write a temporary file and rename it. That is enough after a kill. It is not enough after a power
cut, because the new name may reach the disk before the new content does. Then the file is empty.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from ..scenario import History, Mutation, Scenario, Step, Variant

FILE = "tool.toml"
OLD = '[settings]\nname = "old"\nlevel = 1\n'
NEW = '[settings]\nname = "new"\nlevel = 2\n'


def naive(worker: str) -> None:
    descriptor = os.open(FILE, os.O_WRONLY | os.O_TRUNC)
    for line in NEW.splitlines(keepends=True):
        os.write(descriptor, line.encode())
    os.close(descriptor)


def wrong_rename(worker: str) -> None:
    """Rename without a flush. Wrong: after a power cut, the new name may have no content."""
    descriptor = os.open("tool.toml.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(descriptor, NEW.encode())
    os.close(descriptor)
    os.replace("tool.toml.tmp", FILE)


def prepare(directory: Path) -> None:
    """Create the old file."""
    (directory / FILE).write_text(OLD)


def read_state(directory: Path) -> str:
    """Return the content of tool.toml in one line."""
    return in_one_line((directory / FILE).read_text())


def in_one_line(text: str) -> str:
    """Return the text in one line, without spaces around the equals signs."""
    if not text:
        return "(empty)"
    return " ".join(text.replace(" ", "").split())


def invariant(history: History) -> Iterator[str]:
    """At the end, tool.toml is the whole old file or the whole new file.

    If A reported success, it is the new file.
    """
    if not history.is_finished:
        return
    content = history.state
    is_old_file = content == in_one_line(OLD)
    is_new_file = content == in_one_line(NEW)
    if content == in_one_line(""):
        yield f"{FILE} is empty: it is neither the old file nor the new one."
    elif not is_old_file and not is_new_file:
        yield f"{FILE} is half written: it is neither the old file nor the new one."
    if is_old_file and history.successful_workers:
        yield f"A reported success, but {FILE} is the old file."


scenario = Scenario(
    title="Torn write: a file that is empty or half written",
    subtitle="A program is killed, or the power fails, while it saves a file.",
    rule=(
        "Write a temporary file, flush it, rename it, flush the directory. Readers then see the "
        "old "
        "file or the new one."
    ),
    happened=(
        "The power failed right after Zed, a data lake, had written its first file. The file was "
        "then empty, and the server could not open the lake any more. This happened about every "
        "second time.",
        "https://github.com/brimdata/super/issues/4080",
    ),
    question="A is killed, or the power fails, between two of its steps. What can be in the file?",
    shared="tool.toml",
    workers=1,
    faults="!*",
    variants={
        "naive": Variant(
            summary="empties the file, then writes it line by line",
            schedule="A1 A2 A3 A!",
            explanation=(
                "The first step deletes the old content, and the last step completes the new "
                "content."
            ),
        ),
        "wrong-rename": Variant(
            summary="writes a temporary file and renames it, without flushing",
            schedule="A1 A2 A3 A*",
            expected_problem="tool.toml is empty",
            explanation=(
                "The new name reached the disk before the new content. Only fsync guarantees the "
                "order."
            ),
        ),
        "fixed": Variant(
            summary=(
                "runs `tool config set`, which writes, flushes, renames, and flushes the directory"
            ),
            program=("config", "set", "name=new", "level=2"),
            schedule="A1 A2 A3 A4 A5 A*",
            explanation=(
                "The content was on the disk before the rename, and the rename was on the disk "
                "before A reported success."
            ),
        ),
    },
    steps=(
        Step(name="empty", event="open", file=FILE, kind="write"),
        Step(name="write a line", event="os.write", file=FILE),
        Step(name="create", event="open", file="*.tmp", kind="write"),
        Step(name="write", event="os.write", file="*.tmp"),
        Step(name="flush", event="os.fsync", file="*.tmp"),
        Step(name="rename", event="os.rename", file=FILE),
        Step(name="flush the directory", event="os.fsync", file="here"),
    ),
    mechanisms=(
        Mutation(
            function="kit/safety/atomic_file.py:_write_and_publish",
            summary="do not flush the file before the rename",
            original_code="flush(descriptor)",
            replacement_code="pass",
            expected_problem="tool.toml is empty",
        ),
        Mutation(
            function="kit/safety/atomic_file.py:_write_and_publish",
            summary="flush the file after the rename",
            original_code="""\
try:
    ...
    flush(descriptor)
finally:
    os.close(descriptor)
publish(temporary, target)
""",
            replacement_code="""\
try:
    ...
    publish(temporary, target)
    flush(descriptor)
finally:
    os.close(descriptor)
""",
            expected_problem="tool.toml is empty",
        ),
        Mutation(
            function="kit/safety/atomic_file.py:_flush_parent",
            summary="do not flush the directory",
            original_code="flush_directory(target.parent)",
            replacement_code="pass",
            expected_problem="A reported success, but tool.toml is the old file",
        ),
    ),
    production_code="sampletool.kit.safety.atomic_file:replace",
)
