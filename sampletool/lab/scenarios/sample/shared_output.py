"""Two runs at once write their result to the same name, as two agents do that were given the same command line.

Each opens it, which empties it, writes line by line, and reads its result back. What it reads is a mixture, or all of
it is the other one's. A temporary name and a rename do not help if the temporary name is the same for both.
"""

import hashlib
import json
import os
from pathlib import Path

from sampletool.lab.scenario import Outcome, Removal, Scenario, Step, Way


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


def look(directory: Path) -> str:
    for name in ("result.tmp", "result.json"):
        if (directory / name).exists():
            return (directory / name).read_text().replace("\n", " / ").replace("\0", "·").strip() or "(empty)"
    return "-"


def check(outcome: Outcome) -> str | None:
    for letter in outcome.letters:
        if letter not in outcome.served:
            return f"{letter} failed, because of the other one."
        if not is_own(outcome, letter):
            return f"{letter} was told that all is well, and reads a result that is not its own."
    return None


def is_own(outcome: Outcome, letter: str) -> bool:
    """The result that this worker reads was made from its own input."""
    if letter not in outcome.answers:
        return (outcome.directory / f"{letter}.read").read_text() == f"{letter} begins\n{letter} ends\n"
    result = json.loads(Path(outcome.answers[letter]["data"]["output"]).read_text())
    own = hashlib.sha256((outcome.directory / f"{letter}.csv").read_bytes()).hexdigest()
    return bool(result["about"]["identity"]["inputs"] == [own])


scenario = Scenario(
    title="Two runs, one name for their result",
    rule="Never share a name for what you have not yet published: a session of its own, or a unique name and a link.",
    happened=(
        "clusterio had a helper for writing files safely, with a temporary name and a rename; the temporary name was "
        "always the same, so two writers at once broke each other's files.",
        "https://github.com/clusterio/clusterio/pull/1026",
    ),
    good="Each reads its own result.",
    question="A and B write two lines each to the same name and read them back. What can each of them read?",
    shared="the shared name",
    prepare=prepare,
    look=look,
    check=check,
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
    removal=Removal(
        "kit/safety/session.py",
        says="one directory for all sessions",
        line="    directory = private_directory(root) / session_id\n",
        instead='    directory = private_directory(root) / "session"\n',
    ),
    symbol="sampletool.sample.output:publish",
    still_broken_by="one session id that is given to two runs on purpose: then the second is told LOCK_HELD or "
    "OUTPUT_EXISTS.",
)
