"""Many processes write to one log file.

Each process writes its line in two pieces, as formatted output often does. Two lines get mixed, and
neither can be read afterwards. A lock for threads, such as the one in the logging module, does not
help, because each process has a lock of its own. A single write does not help in a pipe if the line
is long: a pipe keeps a write together only up to PIPE_BUF bytes, 4,096 on Linux.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from ...kit.call_log import append
from ..production_lock import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Removal, Scenario, Step, Variant
from ._mechanisms import without_lock

LOG = "calls.jsonl"
RECORDS = {"A": b"A" * 5999 + b"\n", "B": b"B" * 99 + b"\n"}
"""The line that each worker writes to the pipe. The line of A does not fit into the pipe."""
ONE_PAGE = 4096
"""The number of bytes that fit into the pipe."""


def naive(worker: str) -> None:
    log = os.open(LOG, os.O_APPEND | os.O_WRONLY)
    os.write(log, b'{"command":')
    os.write(log, b'"%s"}\n' % worker.encode())


def wrong_thread_lock(worker: str) -> None:
    with threading.Lock():
        naive(worker)


def wrong_large_pipe_write(worker: str) -> None:
    write_to_pipe(RECORDS[worker])


def fixed(worker: str) -> None:
    append(Path.cwd(), {"command": worker})


def fixed_pipe(worker: str) -> None:
    with lock_named("pipe.lock").exclusively(PATIENT_WAIT_SECONDS):
        write_to_pipe(RECORDS[worker])


def write_to_pipe(content: bytes) -> None:
    """Do what the kernel does for one write: fill the pipe, wait for the reader, write the rest."""
    pipe = os.open("pipe", os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, ONE_PAGE)
    while content:
        with suppress(BlockingIOError):
            written = os.write(pipe, content)
            content = content[written:]
        let_reader_read(pipe)


def let_reader_read(pipe: int) -> None:
    received = os.open("received", os.O_APPEND | os.O_WRONLY)
    with suppress(BlockingIOError):
        os.write(received, os.read(pipe, ONE_PAGE))


def prepare(directory: Path) -> None:
    """Create an empty log."""
    (directory / LOG).touch()


def prepare_a_pipe(directory: Path) -> None:
    """Create a pipe, and an empty file for what its reader receives."""
    os.mkfifo(directory / "pipe")
    (directory / "received").touch()


def look(directory: Path) -> str:
    """Return the lines of the log, or those that the reader of the pipe has received."""
    log = directory / "received"
    if not log.exists():
        # This variant writes to a file and not to a pipe.
        log = directory / LOG
    lines = [_short_name(line) for line in log.read_text().splitlines()]
    if not lines:
        return "(empty)"
    return " / ".join(lines)


def _short_name(line: str) -> str:
    """Return a short name for a line of the log, or the line itself if it has none."""
    for letter, record in RECORDS.items():
        if line.encode() == record.rstrip():
            return f"line of {letter}"
    if line.strip("AB") == "":
        # Many equal letters are counted: 4,096 of them become "4096 A".
        return " ".join(f"{len(list(same))} {letter}" for letter, same in groupby(line))
    try:
        return f"line of {json.loads(line)['command']}"
    except (ValueError, KeyError):
        return line


def invariant(history: History) -> Iterator[str]:
    """Every line of the log was written by one worker, and no line is missing."""
    if not history.is_over:
        return
    lines = history.now.split(" / ")
    correct_lines = [f"line of {letter}" for letter in history.letters]
    for line in lines:
        if line not in correct_lines:
            yield f"no worker wrote this line of the log: {line}."
    for letter in history.succeeded:
        if f"line of {letter}" not in lines:
            yield f"the line of {letter} is not in the log."


PIPE_STEPS = (
    Step("lock", "fcntl.flock", "pipe.lock", kind="lock", holds=True),
    Step("write", "os.write", "pipe"),
    Step("reader reads", "os.write", "received"),
)

scenario = Scenario(
    title="Interleaved log lines: two processes write to one log",
    subtitle="Two lines get mixed, and neither can be read.",
    rule="Write each record with one write, to a file that is open for appending.",
    happened=(
        "The buffered writer of beads split a line when its buffer was full. Records of "
        "concurrent processes got "
        "mixed, and the file could no longer be read.",
        "https://github.com/gastownhall/beads/pull/3301",
    ),
    question="A and B each write their line in two pieces. Which lines can be in the log?",
    shared="log",
    variants={
        "naive": Variant(
            summary="writes a line in two pieces",
            explanation="B wrote between the two writes of A.",
        ),
        "wrong-thread-lock": Variant(
            summary="does the same under a lock for threads, as the logging module does",
            explanation="Each process has a lock of its own, so the locks exclude nobody.",
        ),
        "wrong-large-pipe-write": Variant(
            summary="writes 6,000 bytes to a pipe with one write",
            steps=PIPE_STEPS,
            prepare=prepare_a_pipe,
            schedule="A1 A2 B1 B2",
            explanation=(
                "The line of A did not fit into the pipe. When the reader had made room, B wrote "
                "first."
            ),
        ),
        "fixed": Variant(
            summary="appends the whole line to the tool's own log with one write",
            schedule="A1 B1",
            explanation="There is only one write for each line, so B cannot write in the middle.",
        ),
        "fixed-pipe": Variant(
            summary="writes to a pipe under a lock, until the whole line is in the pipe",
            steps=PIPE_STEPS,
            prepare=prepare_a_pipe,
            schedule="A1 B1 A2",
            explanation="B waited until the rest of A's line was in the pipe.",
        ),
    },
    steps=(Step("write", "os.write", LOG),),
    mechanisms=(
        Removal(
            "kit/call_log.py:_append_once",
            summary="write the line in two pieces",
            pattern="os.write(descriptor, line)",
            instead="os.write(descriptor, line[:7])\nos.write(descriptor, line[7:])",
            breaks="no worker wrote this line of the log",
        ),
        Removal(
            "kit/call_log.py:_append_once",
            summary="seek to the end of the file instead of appending",
            pattern=(
                "with opened_log(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:\n    "
                "..."
            ),
            instead="""\
with opened_log(path, os.O_RDWR | os.O_CREAT) as descriptor:
    os.lseek(descriptor, 0, os.SEEK_END)
    ...
""",
            breaks="is not in the log",
        ),
        without_lock("no worker wrote this line of the log"),
    ),
    symbol="sampletool.kit.call_log:_append_once",
)
