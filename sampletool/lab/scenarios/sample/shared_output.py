"""Two runs at once write their result to the same name, as two agents do that were given the same command line.

Each opens it, which empties it, writes line by line, and reads its result back. What it reads is a mixture, or all of
it is the other one's. A temporary name and a rename do not help if the temporary name is the same for both.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sampletool.lab.scenario import History, Removal, Scenario, Step, Way


def naive(worker: str) -> None:
    write_lines("result.json", worker)
    Path(f"{worker}.read").write_bytes(Path("result.json").read_bytes())


def one_temporary_name(worker: str) -> None:
    write_lines("result.tmp", worker)
    os.replace("result.tmp", f"{worker}.json")
    Path(f"{worker}.read").write_bytes(Path(f"{worker}.json").read_bytes())


def write_lines(name: str, worker: str) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for line in (f"{worker} begins\n", f"{worker} ends\n"):
        os.write(descriptor, line.encode())


def prepare(directory: Path) -> None:
    for letter in "ABC":
        (directory / f"{letter}.csv").write_text(f"who\n{letter}\n")


class Seen(NamedTuple):
    shared: str
    read: dict[str, str]
    """What each worker reads as its result: whose it is."""

    def __str__(self) -> str:
        return self.shared


def look(directory: Path) -> Seen:
    files = [directory / name for name in ("result.tmp", "result.json") if (directory / name).exists()]
    shared = files[0].read_text().replace("\n", " / ").replace("\0", "·").strip() or "(empty)" if files else "-"
    read = {file.stem: whose(file.read_text()) for file in directory.glob("?.read")}
    for file in directory.parent.rglob("session-?/result.json"):
        read[file.parent.name[-1]] = whose_result(file, directory)
    return Seen(shared, read)


def whose(text: str) -> str:
    return next((letter for letter in "ABC" if text == f"{letter} begins\n{letter} ends\n"), "")


def whose_result(file: Path, directory: Path) -> str:
    """The worker from whose input the result was made."""
    made_of = json.loads(file.read_text())["about"]["identity"]["inputs"]
    inputs = {hashlib.sha256((directory / f"{each}.csv").read_bytes()).hexdigest(): each for each in "ABC"}
    return inputs.get(made_of[0], "")


def invariant(history: History) -> Iterator[str]:
    """Each worker that is answered that all is well reads its own result."""
    for letter in history.served:
        if history.now.read.get(letter) != letter:
            yield f"{letter} was answered that all is well, and reads a result that is not its own."
    for letter in history.statuses:
        if letter not in history.served:
            yield f"{letter} failed, because of the other one."


scenario = Scenario(
    title="Two runs, one name for their result",
    rule="Never share a name for what you have not yet published: a session of its own, or a unique name and a link.",
    happened=(
        "clusterio had a helper for writing files safely, with a temporary name and a rename; the temporary name was "
        "always the same, so two writers at once broke each other's files.",
        "https://github.com/clusterio/clusterio/pull/1026",
    ),
    question="A and B write two lines each to the same name and read them back. What can each of them read?",
    shared="the shared name",
    prepare=prepare,
    look=look,
    invariant=invariant,
    ways={
        "naive": Way(
            says="both write result.json, line by line",
            program=naive,
            steps=(
                Step("empty", "open", "result.json", kind="write"),
                Step("write a line", "os.write", "result.json"),
                Step("read", "open", "result.json", kind="read"),
            ),
            shows="A1 A2 B1 B2 A3 A4",
            because="B emptied the file while A wrote; what A reads has lines of both.",
        ),
        "wrong-fixed-temporary": Way(
            says="write result.tmp, then rename it to a name of one's own",
            program=one_temporary_name,
            steps=(
                Step("empty", "open", "result.tmp", kind="write"),
                Step("write a line", "os.write", "result.tmp"),
                Step("rename", "os.rename", "*.json"),
            ),
            shows="A1 A2 B1 A3 A4",
            because="A renamed the file that B was writing to.",
        ),
        "fixed": Way(
            says="tool process --session-id: a directory for each session, a unique name, published by a link",
            program=("process", "--input", "{worker}.csv", "--session-id", "session-{worker}"),
            steps=(
                Step("create", "open", ".result.json.*.tmp", kind="create"),
                Step("write", "os.write", ".result.json.*.tmp"),
                Step("publish", "os.link", "result.json"),
            ),
            shows="A1 B1 A2 B2 A3 B3",
            because="they share no name at any moment, so they do not even have to wait for each other.",
        ),
    },
    mechanisms=(
        Removal(
            "kit/safety/session.py",
            says="one directory for all sessions",
            line="    directory = private_directory(root) / session_id\n",
            instead='    directory = private_directory(root) / "session"\n',
            breaks="reads a result that is not its own",
        ),
    ),
    symbol="sampletool.sample.output:publish",
    still_broken_by="one session id that is given to two runs on purpose: then the second is told LOCK_HELD or "
    "OUTPUT_EXISTS.",
)
