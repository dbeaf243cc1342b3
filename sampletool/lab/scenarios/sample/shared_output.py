"""Two runs write their results to the same file name at the same time.

Two agents do this if both run the same command. Each run empties the file, writes it line by line,
and reads its result back. It reads a mixture, or the result of the other run. A temporary file and
a rename do not help if both runs use the same temporary name.
"""

import hashlib
import os
import runpy
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...scenario import History, Mutation, Scenario, Step, Variant

MAX_SHOWN_CHARACTERS = 60


def naive(worker: str) -> None:
    write_lines("result.json", worker)
    # Keep what this worker reads as its own result, for the invariant.
    Path(f"{worker}.read").write_bytes(Path("result.json").read_bytes())


def wrong_fixed_temporary(worker: str) -> None:
    """Write to a temporary file first. Wrong: both workers use the same temporary file."""
    write_lines("result.tmp", worker)
    os.replace("result.tmp", f"{worker}.json")
    Path(f"{worker}.read").write_bytes(Path(f"{worker}.json").read_bytes())


def write_lines(name: str, worker: str) -> None:
    """Empty the file, and write the two lines of this worker, one after the other."""
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for line in (f"{worker} begins\n", f"{worker} ends\n"):
        os.write(descriptor, line.encode())


def fixed(worker: str) -> None:
    """Run `tool process` with a home directory of its own, as in a container.

    So A and B share the output path, but no lock.
    """
    home = Path(os.environ["HOME"], worker)
    home.mkdir(mode=0o700)
    os.environ["HOME"] = str(home)
    sys.argv[1:] = ["process", "--input", f"{worker}.csv", "--output", "result.json"]
    runpy.run_module("sampletool", run_name="__main__", alter_sys=True)


def prepare(directory: Path) -> None:
    """Create an input for each worker."""
    for worker in "ABC":
        (directory / f"{worker}.csv").write_text(f"who\n{worker}\n")


@dataclass(frozen=True)
class Results:
    """The results of the runs."""

    shared_file: str
    """The content of the shared file, as a short text."""
    owner_of_result: Mapping[str, str]
    """For each worker, the worker whose result it reads as its own."""

    def __str__(self) -> str:
        return self.shared_file


def read_state(directory: Path) -> Results:
    """Return the content of the shared file, and which result each worker reads."""
    own_results = find_own_results(directory)
    copied_results = find_copied_results(directory)
    return Results(
        shared_file=describe_shared_file(directory),
        # A worker that has copied a result has read this one, even if its own is in another file.
        owner_of_result={**own_results, **copied_results},
    )


def find_own_results(directory: Path) -> dict[str, str]:
    """Return the workers whose whole result is in a file. They are both the keys and the values."""
    files = [
        *directory.glob("result.*"),
        # The tool keeps a result in the session of the worker if the shared path is taken.
        *directory.parent.rglob("session*/result.json"),
    ]
    own_results = {}
    for file in files:
        owner = find_owner(file, directory)
        if owner:
            own_results[owner] = owner
    return own_results


def find_copied_results(directory: Path) -> dict[str, str]:
    """Return for each worker the owner of the result that it has read, or "" for a mixture.

    In the wrong variants, A copies what it reads to the file `A.read`.
    """
    copied_results = {}
    for copy in directory.glob("?.read"):
        reader = copy.stem
        copied_results[reader] = find_owner(copy, directory)
    return copied_results


def describe_shared_file(directory: Path) -> str:
    """Return the content of the file that all workers write, as a short text. `-` means no file."""
    description = "-"
    # It is called result.json, or result.tmp before its rename.
    for file in directory.glob("result.*"):
        description = describe_content(file.read_text(), find_owner(file, directory))
    return description


def describe_content(text: str, owner: str) -> str:
    """Return a short text for the content of a file.

    `owner` is the worker whose result it is, or "" if it is not the result of one worker.
    """
    if owner:
        return f"result of {owner}"
    one_line = text.replace("\n", " / ").replace("\0", "·").strip()
    if not one_line:
        return "(empty)"
    return one_line[:MAX_SHOWN_CHARACTERS]


def find_owner(file: Path, directory: Path) -> str:
    """Return the worker whose whole result is in this file, or "" if there is none."""
    text = file.read_text()
    for worker in "ABC":
        # These are the lines that write_lines() writes in the wrong variants.
        if text == f"{worker} begins\n{worker} ends\n":
            return worker
        # The right variants run the tool. It stores the digest of the input in its result, and
        # each worker has an input of its own.
        digest = hashlib.sha256((directory / f"{worker}.csv").read_bytes()).hexdigest()
        if f'"input":"{digest}"' in text:
            return worker
    return ""


def invariant(history: History) -> Iterator[str]:
    """Each worker that reports success reads its own result.

    A worker that fails reports that the path is taken.
    """
    for worker in history.successful_workers:
        if history.state.owner_of_result.get(worker) != worker:
            yield f"{worker} reported success, but reads a result that is not its own."
    for worker in history.failed_workers:
        if not reports_taken_path(history.responses.get(worker)):
            yield f"{worker} failed because of the other worker."


def reports_taken_path(response: Any) -> bool:
    """Return whether a worker that failed has reported that the shared path is taken.

    `response` is the JSON output of a command, or None if it has printed none.
    """
    if response is None or "error" not in response:
        return False
    error = response["error"]
    if error["code"] != "OUTPUT_EXISTS":
        return False
    return str(error["context"]["path"]).endswith("/here/result.json")


scenario = Scenario(
    title="Shared output file: two runs overwrite each other",
    subtitle="Two runs write to the same name, and one reads the result of the other.",
    rule=(
        "Never share a name for data that is not yet published. Use a session directory, or a "
        "unique name and a link."
    ),
    happened=(
        "clusterio had a helper that wrote files safely, with a temporary name and a rename. But "
        "the temporary name was always the same, so two concurrent writers damaged each other's "
        "files.",
        "https://github.com/clusterio/clusterio/pull/1026",
    ),
    question=(
        "A and B write two lines each to the same name, then read the file. What can each of them "
        "read?"
    ),
    shared="the shared name",
    variants={
        "naive": Variant(
            summary="writes result.json line by line",
            schedule="A1 A2 B1 B2 A3 A4",
            explanation="B emptied the file while A wrote, so A read lines of both.",
        ),
        "wrong-fixed-temporary": Variant(
            summary="writes result.tmp, then renames it to a name of its own",
            schedule="A1 A2 B1 A3 A4",
            explanation="A renamed the file that B was writing.",
        ),
        "fixed": Variant(
            summary=(
                "runs `tool process --output`, which uses a unique temporary name and publishes "
                "it with a link"
            ),
            schedule="A1 B1 A2 B2 A3 B3",
            explanation=(
                "A was first. The link of B was rejected because the name existed, so B reported "
                "OUTPUT_EXISTS."
            ),
        ),
        "fixed-session": Variant(
            summary="runs `tool process --session-id`, which uses one directory for each session",
            program=("process", "--input", "{worker}.csv", "--session-id", "session-{worker}"),
            schedule="A1 B1 A2 B2 A3 B3",
            explanation="A and B share no name, so neither has to wait.",
        ),
    },
    steps=(
        Step(name="empty", event="open", file="result.*", kind="write"),
        Step(name="write a line", event="os.write", file="result.*"),
        Step(name="rename", event="os.rename", file="*.json"),
        Step(
            name="read",
            event="open",
            file="result.json",
            kind="read",
            after_steps=("write a line",),
        ),
        Step(name="create", event="open", file=".result.json.*.tmp", kind="create"),
        Step(name="write", event="os.write", file=".result.json.*.tmp"),
        Step(name="publish", event="os.link", file="result.json"),
    ),
    mechanisms=(
        Mutation(
            function="kit/safety/atomic_file.py:create",
            summary="publish with a rename, which replaces an existing file",
            original_code="_write_and_publish(path, content, FOR_ALL, _publish_by_link)",
            replacement_code="_write_and_publish(path, content, FOR_ALL, _publish_by_rename)",
            expected_problem="reads a result that is not its own",
        ),
        Mutation(
            function="kit/safety/atomic_file.py:_temporary_path",
            summary="use the same temporary name for all",
            original_code='f".{_stem(target)}.{os.getpid()}-{random_part}.tmp"',
            replacement_code='f".{_stem(target)}.1-00000000.tmp"',
            expected_problem="reported success, but reads",
        ),
        Mutation(
            function="sample/output.py:publish",
            summary="do not check whose result was published first",
            original_code="effect, _columns = check_output(path, identity)",
            replacement_code='effect = "created"',
            expected_problem="reads a result that is not its own",
        ),
        Mutation(
            function="kit/safety/session.py:open_session",
            summary="use one directory for all sessions",
            original_code="private_directory(root) / session_id",
            replacement_code='private_directory(root) / "session"',
            expected_problem="failed because of the other worker",
        ),
    ),
    production_code="sampletool.sample.output:publish",
)
