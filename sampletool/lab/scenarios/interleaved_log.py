"""Many processes write to one log file. Each line is written in two pieces, as formatted output often is.

Two lines run into each other, and the one record that is needed later cannot be read. The logging module does not help:
it keeps threads apart, not processes. That a write below PIPE_BUF is never split is true of pipes, not of files, and
says nothing about two writes.
"""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from ...kit.call_log import append
from ..scenario import History, Removal, Scenario, Step, Way

LOG = "calls.jsonl"


def naive(worker: str) -> None:
    log = os.open(LOG, os.O_APPEND | os.O_WRONLY)
    os.write(log, b'{"command":')
    os.write(log, b'"%s"}\n' % worker.encode())


def wrong_thread_lock(worker: str) -> None:
    with threading.Lock():
        naive(worker)


def fixed(worker: str) -> None:
    append(Path.cwd(), {"command": worker})


def prepare(directory: Path) -> None:
    (directory / LOG).touch()


def look(directory: Path) -> str:
    return " / ".join(map(_shown, (directory / LOG).read_text().splitlines())) or "(empty)"


def _shown(line: str) -> str:
    try:
        return f"call of {json.loads(line)['command']}"
    except (ValueError, KeyError):
        return line


def invariant(history: History) -> Iterator[str]:
    """Every line of the log is one that a worker wrote, and the line of every caller is there."""
    lines = history.now.split(" / ") if history.is_over else []
    for line in lines:
        if line not in [f"call of {letter}" for letter in history.letters]:
            yield f"the log has a line that nobody wrote: {line}."
    for letter in history.served:
        if f"call of {letter}" not in lines and history.is_over:
            yield f"the line of {letter} is not in the log."


scenario = Scenario(
    title="Two lines in one log run into each other",
    rule="One record, one write, to a file that was opened for appending.",
    happened=(
        "beads: a buffered writer split lines when its buffer was full, so that records of parallel processes mixed "
        "and the file could not be read any more.",
        "https://github.com/gastownhall/beads/pull/3301",
    ),
    question="A and B each write their line in two pieces. Which lines can be in the log?",
    shared="log",
    ways={
        "naive": Way(
            says="a line in two writes",
            because="between A's two writes there was room for B.",
        ),
        "wrong-thread-lock": Way(
            says="the same, under a lock for threads, as the logging module has one",
            because="each process has a lock of its own, and nobody shares it.",
        ),
        "fixed": Way(
            says="the log of calls (tool log): the whole line in one write",
            shows="A1 B1",
            because="there is no moment between the pieces, because there are no pieces.",
        ),
    },
    steps=(Step("write", "os.write", LOG),),
    mechanisms=(
        Removal(
            "kit/call_log.py:_append_once",
            says="writing it in two pieces",
            pattern="os.write(descriptor, line)",
            instead="os.write(descriptor, line[:7])\nos.write(descriptor, line[7:])",
            breaks="the log has a line that nobody wrote",
        ),
        Removal(
            "kit/call_log.py:_append_once",
            says="looking for the end of the file, instead of letting the kernel append",
            pattern="with opened_log(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:\n    ...",
            instead="""\
with opened_log(path, os.O_RDWR | os.O_CREAT) as descriptor:
    os.lseek(descriptor, 0, os.SEEK_END)
    ...
""",
            breaks="is not in the log",
        ),
    ),
    symbol="sampletool.kit.call_log:_append_once",
    still_broken_by="a full disk, which takes half a line (the log of calls begins the next one anew); network file "
    "systems without append; and a clean-up that removes the file under the writers: the log of calls looks for that "
    "after each write, and writes again.",
)
