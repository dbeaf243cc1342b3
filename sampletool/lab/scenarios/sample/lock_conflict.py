"""A build is running. A person or an agent starts another one.

It must not run beside the first, so it fails: with a traceback that names a file. Is the lock stale? Is it to be
deleted? Is it worth trying again, and when? Or it waits without a word, for as long as the other takes, and is taken
for hanging. A conflict is nothing unusual: it deserves an answer that says which process, since when, and when to try
again.
"""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ...scenario import History, Removal, Scenario, Step, Way
from .._mechanisms import with_shared_lock

WORKSPACE = """
[target.report]
run = ["cp", "source.txt", "report.txt"]
inputs = ["source.txt"]
outputs = ["report.txt"]
"""


def naive(worker: str) -> None:
    os.mkdir("lock")
    build(worker)
    os.rmdir("lock")


def wrong_wait_silently(worker: str) -> None:
    with open("build.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        build(worker)


def build(worker: str) -> None:
    Path("report.txt").write_text(Path("source.txt").read_text())


def prepare(directory: Path) -> None:
    (directory / "tool.toml").write_text(WORKSPACE)
    (directory / "source.txt").write_text("a report\n")


def look(directory: Path) -> str:
    found = any((directory / name).exists() for name in ("report.txt", "out/report"))
    return "built" if found else "not built"


def invariant(history: History) -> Iterator[str]:
    """Two never build at once; who is not served is answered at once who builds, and when to come back."""
    yield from history.crowds
    for moment in history.moments:
        if moment.is_blocked:
            yield f"{moment.worker} had to wait, and was answered neither for whom nor for how long."
    for letter, status in history.statuses.items():
        error = (history.answers.get(letter) or {}).get("error", {})
        facts = error.get("code") == "LOCK_HELD", error.get("retry_after_ms"), error.get("context", {}).get("holder")
        if status != 0 and not all(facts):
            yield f"{letter} failed with an error that nobody can act on."
    if history.is_over and not history.served:
        yield "nobody could build."


scenario = Scenario(
    # Its workers wait for a lock until a time limit, so their steps depend on the clock.
    steps_every_call=False,
    title="A build beside a build",
    rule="A conflict is an answer, not an accident: say who holds it, and when to try again.",
    happened=(
        "tgcli refused every command while another one ran, and said only that the store is locked by another process: "
        "not by which one, not since when, and not whether it still lived.",
        "https://github.com/kfastov/tgcli/issues/21",
    ),
    question="B starts while A builds. What does B know when it has ended?",
    shared="report",
    ways={
        "naive": Way(
            says="make a directory as a lock, and fail if it is there",
            shows="A1 B1 A2",
            because="`File exists` says nothing of who, since when, or until when.",
        ),
        "wrong-wait-silently": Way(
            says="wait until the other one is done, however long that takes",
            shows="A1 B1 A2",
            because="a caller that waits without a word looks like one that hangs.",
        ),
        "fixed": Way(
            says="tool build: LOCK_HELD, with the holder and retry_after_ms",
            program=("build",),
            shows="A1 B1 A2",
            because="B's answer names A's process and says when to try again; the exit status is 75.",
        ),
    },
    steps=(
        Step("lock", "os.mkdir", "lock"),
        Step("lock", "fcntl.flock", "build.lock", kind="lock", holds=True),
        Step("build", "open", "report.txt", kind="write"),
        Step("publish", "os.rename", "report"),
    ),
    mechanisms=(
        Removal(
            "kit/contract/library_errors.py:LibraryFailure.__init__",
            says="not saying when to try again",
            pattern="self.retry_after_ms = row.retry_after_ms(error)",
            instead="pass",
            breaks="failed with an error that nobody can act on",
        ),
        Removal(
            "kit/contract/library_errors.py:_lock_held_context",
            says="not naming the holder",
            pattern='facts["holder"] = holders[0]',
            instead="pass",
            breaks="failed with an error that nobody can act on",
        ),
        Removal(
            "kit/safety/lock.py:Lock._acquire",
            says="waiting until the other one is done",
            pattern="deadline = asked_at + seconds_to_wait",
            instead="deadline = asked_at + 60",
            breaks="had to wait",
        ),
        with_shared_lock("held the lock at the same moment"),
    ),
    symbol="sampletool.kit.contract.lock_held:estimate_retry_ms",
    still_broken_by="a caller that tries again at once, for ever: wait for retry_after_ms.",
)
