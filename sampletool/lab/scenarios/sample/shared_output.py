"""Two runs write their results to the same file name at the same time. Two agents do this if both run the same command.

Each run empties the file, writes it line by line, and reads its result back. It reads a mixture, or the result of the
other run. A temporary file and a rename do not help if both runs use the same temporary name.
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
    """Run with a home directory of its own, as in two containers: A and B share the path, but no lock."""
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
    """A worker that reports success reads its own result. A worker that fails reports that the path is taken."""
    for letter in history.served:
        if history.now.read.get(letter) != letter:
            yield f"{letter} reported success, but reads a result that is not its own."
    for letter in history.statuses:
        error = (history.answers.get(letter) or {}).get("error", {"code": ""})
        is_taken = error["code"] == "OUTPUT_EXISTS" and error["context"]["path"].endswith("/here/result.json")
        if letter not in history.served and not is_taken:
            yield f"{letter} failed because of the other worker."


scenario = Scenario(
    title="Shared output file: two runs overwrite each other",
    subtitle="Two runs write to the same name, and one reads the result of the other.",
    rule=(
        "Never share a name for data that is not yet published. Use a session directory, or a unique name and a link."
    ),
    happened=(
        "clusterio had a helper that wrote files safely, with a temporary name and a rename. But "
        "the temporary name was always the same, so two concurrent writers damaged each other's "
        "files.",
        "https://github.com/clusterio/clusterio/pull/1026",
    ),
    question="A and B write two lines each to the same name, then read the file. What can each of them read?",
    shared="the shared name",
    ways={
        "naive": Way(
            says="writes result.json line by line",
            shows="A1 A2 B1 B2 A3 A4",
            because="B emptied the file while A wrote, so A read lines of both.",
        ),
        "wrong-fixed-temporary": Way(
            says="writes result.tmp, then renames it to a name of its own",
            shows="A1 A2 B1 A3 A4",
            because="A renamed the file that B was writing.",
        ),
        "fixed": Way(
            says=("runs `tool process --output`, which uses a unique temporary name and publishes it with a link"),
            shows="A1 B1 A2 B2 A3 B3",
            because=("A was first. The link of B was rejected because the name existed, so B reported OUTPUT_EXISTS."),
        ),
        "fixed-session": Way(
            says="runs `tool process --session-id`, which uses one directory for each session",
            program=("process", "--input", "{worker}.csv", "--session-id", "session-{worker}"),
            shows="A1 B1 A2 B2 A3 B3",
            because="A and B share no name, so neither has to wait.",
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
            says="publish with a rename, which replaces an existing file",
            pattern="_write_and_publish(path, content, FOR_ALL, _publish_by_link)",
            instead="_write_and_publish(path, content, FOR_ALL, _publish_by_rename)",
            breaks="reads a result that is not its own",
        ),
        Removal(
            "kit/safety/atomic_file.py:_temporary_path",
            says="use the same temporary name for all",
            pattern='f".{_stem(target)}.{os.getpid()}-{random_part}.tmp"',
            instead='f".{_stem(target)}.1-00000000.tmp"',
            breaks="reported success, but reads",
        ),
        Removal(
            "sample/output.py:publish",
            says="do not check whose result was published first",
            pattern="check_output(path, identity, overwrite=False)",
            instead='("created", None)',
            breaks="reads a result that is not its own",
        ),
        Removal(
            "kit/safety/session.py:open_session",
            says="use one directory for all sessions",
            pattern="private_directory(root) / session_id",
            instead='private_directory(root) / "session"',
            breaks="failed because of the other worker",
        ),
    ),
    symbol="sampletool.sample.output:publish",
)
