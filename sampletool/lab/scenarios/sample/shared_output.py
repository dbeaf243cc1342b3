"""Two runs at once write their result to the same name, as two agents do that were given the same command line.

Each opens it, which empties it, writes line by line, and reads its result back. What it reads is a mixture, or all of
it is the other one's. A temporary name and a rename do not help if the temporary name is the same for both.
"""

import hashlib
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...scenario import History, Removal, Scenario, Step, Way


def naive(worker: str) -> None:
    write_lines("result.json", worker)
    Path(f"{worker}.read").write_bytes(Path("result.json").read_bytes())


def wrong_fixed_temporary(worker: str) -> None:
    write_lines("result.tmp", worker)
    os.replace("result.tmp", f"{worker}.json")
    Path(f"{worker}.read").write_bytes(Path(f"{worker}.json").read_bytes())


def write_lines(name: str, worker: str) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for line in (f"{worker} begins\n", f"{worker} ends\n"):
        os.write(descriptor, line.encode())


def fixed(worker: str) -> None:
    """Each from a home of its own, as two users or two containers: they share the path, and no lock."""
    home = Path(os.environ["HOME"], worker)
    home.mkdir(mode=0o700)
    os.environ["HOME"] = str(home)
    sys.argv[1:] = ["process", "--input", f"{worker}.csv", "--output", "result.json"]
    runpy.run_module("sampletool", run_name="__main__", alter_sys=True)


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
    shared, read = "-", {file.stem: whose(file, directory) for file in directory.glob("?.read")}
    for file in (*directory.glob("result.*"), *directory.parent.rglob("session*/result.json")):
        text = file.read_text()
        if owner := whose(file, directory):
            read.setdefault(owner, owner)
        if file.parent == directory:
            shared = text.replace("\n", " / ").replace("\0", "·").strip()[:60] if not owner else f"result of {owner}"
    return Seen(shared or "(empty)", read)


def whose(file: Path, directory: Path) -> str:
    """The worker whose result this is; or, if the tool made it, from whose input."""
    text = file.read_text()
    for letter in "ABC":
        digest = hashlib.sha256((directory / f"{letter}.csv").read_bytes()).hexdigest()
        if text == f"{letter} begins\n{letter} ends\n" or f'"input":"{digest}"' in text:
            return letter
    return ""


def invariant(history: History) -> Iterator[str]:
    """A result is its worker's own from the moment when that is answered so; a path that is taken is answered too."""
    for letter in history.served:
        if history.now.read.get(letter) != letter:
            yield f"{letter} was answered that all is well, and reads a result that is not its own."
    for letter in history.statuses:
        error = (history.answers.get(letter) or {}).get("error", {"code": ""})
        is_taken = error["code"] == "OUTPUT_EXISTS" and error["context"]["path"].endswith("/here/result.json")
        if letter not in history.served and not is_taken:
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
    ways={
        "naive": Way(
            says="both write result.json, line by line",
            shows="A1 A2 B1 B2 A3 A4",
            because="B emptied the file while A wrote; what A reads has lines of both.",
        ),
        "wrong-fixed-temporary": Way(
            says="write result.tmp, then rename it to a name of one's own",
            shows="A1 A2 B1 A3 A4",
            because="A renamed the file that B was writing to.",
        ),
        "fixed": Way(
            says="tool process --output: a unique temporary name, published by a link, which never replaces",
            shows="A1 B1 A2 B2 A3 B3",
            because="A was first. B's link was refused, because the name was there, and B was answered OUTPUT_EXISTS.",
        ),
        "fixed-session": Way(
            says="tool process --session-id: a directory for each session",
            program=("process", "--input", "{worker}.csv", "--session-id", "session-{worker}"),
            shows="A1 B1 A2 B2 A3 B3",
            because="they share no name at any moment, so they do not even have to wait for each other.",
        ),
    },
    steps=(
        Step("empty", "open", "result.*", kind="write"),
        Step("write a line", "os.write", "result.*"),
        Step("rename", "os.rename", "*.json"),
        Step("read", "open", "result.json", kind="read", after=("write a line",)),
        Step("create", "open", ".result.json.*.tmp", kind="create"),
        Step("write", "os.write", ".result.json.*.tmp"),
        Step("publish", "os.link", "result.json"),
    ),
    mechanisms=(
        Removal(
            "kit/safety/atomic_file.py:create",
            says="publishing by a rename, which replaces what is there",
            pattern="_write_and_publish(path, content, FOR_ALL, _publish_by_link)",
            instead="_write_and_publish(path, content, FOR_ALL, _publish_by_rename)",
            breaks="reads a result that is not its own",
        ),
        Removal(
            "kit/safety/atomic_file.py:_temporary_path",
            says="one temporary name for all",
            pattern='f".{_stem(target)}.{os.getpid()}-{random_part}.tmp"',
            instead='f".{_stem(target)}.1-00000000.tmp"',
            breaks="was answered that all is well, and reads",
        ),
        Removal(
            "sample/output.py:publish",
            says="not looking whose result was faster",
            pattern="check_output(path, identity, overwrite=False)",
            instead='("created", None)',
            breaks="reads a result that is not its own",
        ),
        Removal(
            "kit/safety/session.py:open_session",
            says="one directory for all sessions",
            pattern="private_directory(root) / session_id",
            instead='private_directory(root) / "session"',
            breaks="failed, because of the other one",
        ),
    ),
    symbol="sampletool.sample.output:publish",
    still_broken_by="one session id that is given to two runs on purpose: then the second gets LOCK_HELD or "
    "OUTPUT_EXISTS.",
)
