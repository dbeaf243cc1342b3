"""Many processes write their records, a line of JSON each, into one pipe. Each record is one write.

That a write to a pipe is never mixed with another one is promised up to PIPE_BUF bytes, 4,096 on Linux. A longer one
goes in as far as there is room; when the reader has made room, the first that comes goes on. So a long line is cut
in two by a short one. Here the reader reads when a writer has to wait, as a step of that writer.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from ..ours import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Scenario, Step, Way
from ._mechanisms import without_lock

RECORDS = {"A": b"A" * 5999 + b"\n", "B": b"B" * 99 + b"\n"}
ONE_PAGE = 4096
"""How much goes into the pipe."""


def naive(worker: str) -> None:
    write(RECORDS[worker])


def wrong_in_pieces(worker: str) -> None:
    record, most = RECORDS[worker], os.pathconf("pipe", "PC_PIPE_BUF")
    for begin in range(0, len(record), most):
        write(record[begin : begin + most])


def fixed(worker: str) -> None:
    with lock_named("pipe.lock").exclusively(PATIENT_WAIT_SECONDS):
        write(RECORDS[worker])


def write(content: bytes) -> None:
    """What the kernel does in one write: as much as there is room for; when the reader has read, the rest."""
    pipe = os.open("pipe", os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, ONE_PAGE)
    while content:
        with suppress(BlockingIOError):
            content = content[os.write(pipe, content) :]
        the_reader_reads(pipe)


def the_reader_reads(pipe: int) -> None:
    log = os.open("log", os.O_APPEND | os.O_WRONLY)
    with suppress(BlockingIOError):
        os.write(log, os.read(pipe, ONE_PAGE))


def prepare(directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    (directory / "log").touch()


def look(directory: Path) -> str:
    """How many of which letter came, one after the other."""
    lines = (directory / "log").read_text().splitlines()
    return " / ".join(" ".join(f"{len([*same])} {letter}" for letter, same in groupby(line)) for line in lines) or "-"


def invariant(history: History) -> Iterator[str]:
    """Every line that the reader gets is one that a worker wrote."""
    for line in history.now.split(" / "):
        if len(line.split()) > 2:
            yield f"a line was cut in two by another one: {line}."


scenario = Scenario(
    title="A long line in a pipe, cut in two by a short one",
    rule="Up to PIPE_BUF bytes a write to a pipe is whole; for more, a lock around it, or a pipe for each writer.",
    happened=(
        "The Apache web server under load: records in its log were mixed, because a write to a pipe is whole up to "
        "PIPE_BUF only; proposed was to cut longer ones and to put them together again.",
        "https://github.com/apache/httpd/pull/49",
    ),
    question="A writes 6,000 bytes in one write, B writes 100. Both into one pipe. What can the reader get?",
    shared="what was read",
    ways={
        "naive": Way(
            says="one record, one write",
            shows="A1 A2 B1 B2",
            because="A's record did not fit, and B's fitted when the reader had made room.",
        ),
        "wrong-in-pieces": Way(
            says="in pieces of PIPE_BUF, each of which is whole",
            shows="A1 A2 B1 B2",
            because="each piece is whole, and the record is two of them.",
        ),
        "fixed": Way(
            says="under a lock, which is held until the whole record is in the pipe",
            shows="A1 B1 A2",
            because="B had to wait until the rest of A's record had gone in.",
        ),
    },
    steps=(
        Step("lock", "fcntl.flock", "pipe.lock", kind="lock", holds=True),
        Step("write", "os.write", "pipe"),
        Step("the reader reads", "os.write", "log"),
    ),
    mechanisms=(without_lock("a line was cut in two"),),
    symbol="sampletool.kit.safety.lock:Lock.exclusively",
    no_verb="No command of this tool shares a pipe among writers (each child has a log of its own): the right way is "
    "code of this page, over its lock.",
    still_broken_by="a writer that does not take the lock, and a reader that ends in the middle of a record.",
)
