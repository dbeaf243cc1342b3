"""A build is running. A person or an agent starts another one.

The second build must not run at the same time, so it fails with a traceback that names a file. Is
the lock stale? Should the user delete it? Is it worth trying again, and when? Or the second build
waits without a message, and looks as if it hangs. A conflict is normal, so the error should name
the process that holds the lock and say when to try again.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...scenario import History, Mutation, Scenario, Step, Variant
from .._mechanisms import with_shared_lock

WORKSPACE = """
[target.report]
run = ["cp", "source.txt", "report.txt"]
inputs = ["source.txt"]
outputs = ["report.txt"]
"""


def naive(worker: str) -> None:
    os.mkdir("lock")
    build_report()
    os.rmdir("lock")


def wrong_wait_silently(worker: str) -> None:
    """Wait for the lock. Wrong: nothing says who holds it, and the wait has no limit."""
    with open("build.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        build_report()


def build_report() -> None:
    """Create the report from its source."""
    Path("report.txt").write_text(Path("source.txt").read_text())


def prepare(directory: Path) -> None:
    """Create a workspace with one target, and the source of this target."""
    (directory / "tool.toml").write_text(WORKSPACE)
    (directory / "source.txt").write_text("a report\n")


def read_state(directory: Path) -> str:
    """Return whether the report has been built, as text."""
    # Some variants build the first file, and the others build the second one.
    for name in ("report.txt", "out/report"):
        if (directory / name).exists():
            return "built"
    return "not built"


def invariant(history: History) -> Iterator[str]:
    """At most one worker builds.

    A worker that cannot build learns at once who builds, and when to try again.
    """
    yield from history.lock_problems
    for step in history.taken_steps:
        if step.is_blocked:
            yield (
                f"{step.worker} had to wait, and did not learn for which process or for how long."
            )
    for worker in history.failed_workers:
        response = history.responses.get(worker)
        if not says_what_to_do(response):
            yield f"{worker} failed with an error that does not say what to do."
    if history.is_finished and not history.successful_workers:
        yield "no worker could build."


def says_what_to_do(response: Any) -> bool:
    """Return whether an error names the holder of the lock, and says when to try again.

    `response` is the JSON output of a command, or None if it has printed none.
    """
    if response is None or "error" not in response:
        return False
    error = response["error"]
    is_conflict = error["code"] == "LOCK_HELD"
    says_when = bool(error.get("retry_after_ms"))
    return is_conflict and says_when and bool(error["context"].get("holder"))


scenario = Scenario(
    # Its workers wait for a lock until a time limit, so their steps depend on the clock.
    checks_every_call=False,
    title="Lock conflict: two builds at once",
    subtitle="The second build fails with an error that does not say what to do.",
    rule=(
        "Report a conflict as a normal result: name the process that holds the lock, and say when "
        "to try again."
    ),
    happened=(
        "tgcli rejected every command while another command ran. The error said only that "
        "another process held the store: not which process, how long it had run, or whether it "
        "was still alive.",
        "https://github.com/kfastov/tgcli/issues/21",
    ),
    question="B starts while A builds. What does B know when it exits?",
    shared="report",
    variants={
        "naive": Variant(
            summary="creates a directory as a lock, and fails if it exists",
            schedule="A1 B1 A2",
            explanation=(
                "`File exists` does not say who holds the lock, for how long, or until when."
            ),
        ),
        "wrong-wait-silently": Variant(
            summary="waits silently until the other build is done",
            schedule="A1 B1 A2",
            explanation="A command that waits without a message looks like a command that hangs.",
        ),
        "fixed": Variant(
            summary="runs `tool build`, which fails with LOCK_HELD, the holder and retry_after_ms",
            program=("build",),
            schedule="A1 B1 A2",
            explanation=(
                "The error of B names the process of A and says when to try again. The exit code "
                "is 75."
            ),
        ),
    },
    steps=(
        Step(name="lock", event="os.mkdir", file="lock"),
        Step(name="lock", event="fcntl.flock", file="build.lock", kind="lock", takes_lock=True),
        Step(name="build", event="open", file="report.txt", kind="write"),
        Step(name="publish", event="os.rename", file="report"),
    ),
    mechanisms=(
        Mutation(
            function="kit/contract/library_errors.py:LibraryFailure.__init__",
            summary="do not say when to try again",
            original_code="self.retry_after_ms = row.retry_after_ms(error)",
            replacement_code="pass",
            expected_problem="failed with an error that does not say what to do",
        ),
        Mutation(
            function="kit/contract/library_errors.py:_lock_held_context",
            summary="do not name the holder",
            original_code='facts["holder"] = holders[0]',
            replacement_code="pass",
            expected_problem="failed with an error that does not say what to do",
        ),
        Mutation(
            function="kit/safety/lock.py:Lock._acquire",
            summary="wait until the other build is done",
            original_code="deadline = asked_at + seconds_to_wait",
            replacement_code="deadline = asked_at + 60",
            expected_problem="had to wait",
        ),
        with_shared_lock("held the lock at the same moment"),
    ),
    production_code="sampletool.kit.contract.lock_held:estimate_retry_ms",
)
