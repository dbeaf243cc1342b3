"""Many processes write to one log file. Each line is written in two pieces, as formatted output often is.

Two lines run into each other, and the one record that is needed later cannot be read. The logging module does not help:
it keeps threads apart, not processes. That a write below PIPE_BUF is never split is true of pipes, not of files, and
says nothing about two writes.
"""

import os
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from sampletool.lab.scenario import History, Removal, Scenario, Step, Way


def naive(worker: str) -> None:
    log = open_log()
    os.write(log, f"{worker} began".encode())
    os.write(log, f" and {worker} ended\n".encode())


def thread_lock(worker: str) -> None:
    with threading.Lock():
        naive(worker)


def fixed(worker: str) -> None:
    os.dup2(open_log(), 2)
    import_module("sampletool.kit.context").write_stderr(f"{worker} began and {worker} ended\n")


def open_log() -> int:
    return os.open("log", os.O_APPEND | os.O_WRONLY)


def prepare(directory: Path) -> None:
    (directory / "log").touch()


def look(directory: Path) -> str:
    return " / ".join((directory / "log").read_text().splitlines()) or "(empty)"


def invariant(history: History) -> Iterator[str]:
    """The log consists of whole lines, each as one worker wrote it, and of one from each worker that is done."""
    lines = history.now.split(" / ") if history.is_over else []
    for line in lines:
        if line not in [f"{letter} began and {letter} ended" for letter in history.letters]:
            yield f'the log has a line that nobody wrote: "{line}".'
    for letter in history.served:
        if f"{letter} began" not in history.now:
            yield f"the line of {letter} is not in the log."


TWICE = (Step("write", "os.write", "log"),)

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
    prepare=prepare,
    look=look,
    invariant=invariant,
    ways={
        "naive": Way(
            says="a line in two writes",
            program=naive,
            steps=TWICE,
            shows="A1 B1 A2 B2",
            because="between A's two writes there was room for B.",
        ),
        "wrong-thread-lock": Way(
            says="the same, under a lock for threads, as the logging module has one",
            program=thread_lock,
            steps=TWICE,
            shows="A1 B1 A2 B2",
            because="each process has a lock of its own, and nobody shares it.",
        ),
        "fixed": Way(
            says="how the tool writes its notices: the whole line in one write",
            program=fixed,
            steps=TWICE,
            shows="A1 B1",
            because="there is no moment between the pieces, because there are no pieces.",
        ),
    },
    mechanisms=(
        Removal(
            "kit/context.py",
            says="writing it in two pieces",
            line='        os.write(2, text.encode("utf-8", "backslashreplace"))\n',
            instead="        os.write(2, text[:7].encode())\n        os.write(2, text[7:].encode())\n",
            breaks="the log has a line that nobody wrote",
        ),
    ),
    symbol="sampletool.kit.context:write_stderr",
    still_broken_by="lines so long that the system writes them in parts, network file systems without append, and a "
    "rotation that renames the file under the writers.",
)
