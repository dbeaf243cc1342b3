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
from ..scenario import History, Mutation, Scenario, Step, Variant
from ._log_lines import LogLines
from ._mechanisms import without_lock

LOG = "calls.jsonl"
PIPE_LINES = {"A": b"A" * 5999 + b"\n", "B": b"B" * 99 + b"\n"}
"""The line that each worker writes to the pipe. The line of A does not fit into the pipe."""
PIPE_BYTES = 4096
"""The number of bytes that fit into the pipe."""


def naive(worker: str) -> None:
    log = os.open(LOG, os.O_APPEND | os.O_WRONLY)
    os.write(log, b'{"command":')
    os.write(log, b'"%s"}\n' % worker.encode())


def wrong_thread_lock(worker: str) -> None:
    """Lock a lock for threads. Wrong: each process has a lock of its own."""
    with threading.Lock():
        naive(worker)


def wrong_large_pipe_write(worker: str) -> None:
    """Write once. Wrong: a line that does not fit into the pipe is written in several parts."""
    write_to_pipe(PIPE_LINES[worker])


def fixed(worker: str) -> None:
    append(Path.cwd(), {"command": worker})


def fixed_pipe(worker: str) -> None:
    with lock_named("pipe.lock").exclusively(PATIENT_WAIT_SECONDS):
        write_to_pipe(PIPE_LINES[worker])


def write_to_pipe(content: bytes) -> None:
    """Do what the kernel does for one write: fill the pipe, wait for the reader, write the rest."""
    pipe = os.open("pipe", os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    while content:
        # The pipe may be full.
        with suppress(BlockingIOError):
            written = os.write(pipe, content)
            content = content[written:]
        read_from_pipe(pipe)


def read_from_pipe(pipe: int) -> None:
    """Append what is in the pipe to the file `received`, as the reader of the pipe does."""
    received = os.open("received", os.O_APPEND | os.O_WRONLY)
    # The pipe may be empty.
    with suppress(BlockingIOError):
        os.write(received, os.read(pipe, PIPE_BYTES))


def prepare(directory: Path) -> None:
    """Create an empty log."""
    (directory / LOG).touch()


def prepare_a_pipe(directory: Path) -> None:
    """Create a pipe, and an empty file for what its reader receives."""
    os.mkfifo(directory / "pipe")
    (directory / "received").touch()


def read_state(directory: Path) -> LogLines:
    """Return the lines of the log, or those that the reader of the pipe has received."""
    received = directory / "received"
    if received.exists():
        # This variant writes to a pipe.
        lines = received.read_text().splitlines()
        return LogLines([describe_pipe_line(line) for line in lines])
    lines = (directory / LOG).read_text().splitlines()
    return LogLines([describe_log_line(line) for line in lines])


def describe_pipe_line(line: str) -> str:
    """Return `line of A` for the whole line of A. For a mixed line, count the letters."""
    for worker, whole_line in PIPE_LINES.items():
        if f"{line}\n".encode() == whole_line:
            return f"line of {worker}"
    return count_letters(line)


def describe_log_line(line: str) -> str:
    """Return `line of A` for the whole line of A, which is JSON. Return any other line itself."""
    try:
        return f"line of {json.loads(line)['command']}"
    except (ValueError, KeyError):
        return line


def count_letters(text: str) -> str:
    """Return how often each letter is repeated: 4,096 times an A and one B become `4096 A 1 B`."""
    counts = []
    for letter, repetitions in groupby(text):
        counts.append(f"{len(list(repetitions))} {letter}")
    return " ".join(counts)


def invariant(history: History) -> Iterator[str]:
    """Every line of the log was written by one worker, and no line is missing."""
    if not history.is_finished:
        return
    lines = history.state.lines
    correct_lines = [f"line of {worker}" for worker in history.workers]
    for line in lines:
        if line not in correct_lines:
            yield f"no worker wrote this line of the log: {line}."
    for worker in history.successful_workers:
        if f"line of {worker}" not in lines:
            yield f"the line of {worker} is not in the log."


PIPE_STEPS = (
    Step(name="lock", event="fcntl.flock", file="pipe.lock", kind="lock", takes_lock=True),
    Step(name="write", event="os.write", file="pipe"),
    Step(name="reader reads", event="os.write", file="received"),
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
    steps=(Step(name="write", event="os.write", file=LOG),),
    mechanisms=(
        Mutation(
            function="kit/call_log.py:_append_once",
            summary="write the line in two pieces",
            original_code="os.write(descriptor, line)",
            replacement_code="os.write(descriptor, line[:7])\nos.write(descriptor, line[7:])",
            expected_problem="no worker wrote this line of the log",
        ),
        Mutation(
            function="kit/call_log.py:_append_once",
            summary="seek to the end of the file instead of appending",
            original_code=(
                "with opened_log(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:\n    "
                "..."
            ),
            replacement_code="""\
with opened_log(path, os.O_RDWR | os.O_CREAT) as descriptor:
    os.lseek(descriptor, 0, os.SEEK_END)
    ...
""",
            expected_problem="is not in the log",
        ),
        without_lock("no worker wrote this line of the log"),
    ),
    production_code="sampletool.kit.call_log:_append_once",
)
