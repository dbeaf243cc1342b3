"""A build starts a compiler. The build is killed, but the compiler is not, so it keeps writing.

The build held the lock, so the lock is now free, and the next build starts. It finishes and reports
success. Then the old compiler writes its output over the new one. In the pictures, C stands for
that compiler: each step of C is a step that the child of A takes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...kit.safety.atomic_file import replace
from ...kit.safety.children import Children
from ...kit.safety.signals import Signals
from ..production_lock import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Mutation, Scenario, Step, Variant
from ._stops import stop_here

COMPILER = """
import os, select, sys
if not os.path.exists("go"):
    with open("pid", "w") as pid:
        pid.write(str(os.getpid()))
    os.rename("pid", "ready")
    if not select.select([os.open("gate", os.O_RDWR)], [], [], 20)[0]:
        sys.exit("nobody let it go on")
with open(sys.argv[1], "w") as output:
    output.write("A")
"""
"""A program that waits until C lets it continue, then writes its output and exits.

Its pid is in the file `ready` while it waits. It does not wait if there is a file `go`.
"""


def naive(worker: str) -> None:
    """Build under a lock: A starts a compiler, B does not. C lets the compiler continue."""
    if worker == "C":
        let_compiler_continue()
        return
    has_compiler = worker == "A"
    with lock_named("lock").exclusively(PATIENT_WAIT_SECONDS):
        if has_compiler:
            argv = [sys.executable, "-S", "-c", COMPILER, "output"]
            compiler = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
            while compiler.poll() is None:
                wait_for_compiler()
        else:
            publish(worker)


def fixed(worker: str) -> None:
    """Build like `naive`, but let the compiler share the lock, and write to a file of its own."""
    if worker == "C":
        let_compiler_continue()
        return
    has_compiler = worker == "A"
    with lock_named("lock").exclusively(PATIENT_WAIT_SECONDS) as hold:
        if has_compiler:
            argv = [sys.executable, "-S", "-c", COMPILER, "A.scratch"]
            with Children(Signals(), hold.descriptors) as children:
                children.start("compiler", argv, cwd=Path.cwd(), env=os.environ)
                while children.next_exit(within_seconds=0.001) is None:
                    wait_for_compiler()
            replace(Path("output"), Path("A.scratch").read_bytes())
        else:
            publish(worker)


def publish(worker: str) -> None:
    """Write the output of this build. Note whether a compiler is still running."""
    if os.path.exists("ready") and is_alive(Path("ready").read_text()):
        Path("overlapped").touch()
    replace(Path("output"), worker.encode())


def wait_for_compiler() -> None:
    """Wait for a moment. The caller does this again until the compiler has exited."""
    compiler_has_started = os.path.exists("ready")
    if compiler_has_started:
        # Before, the start takes a different time in each run, and no schedule could repeat it.
        stop_here()
    time.sleep(0.001)


def let_compiler_continue() -> None:
    """Let the compiler continue, and wait until it has exited.

    If it has not started yet, let it run without waiting.
    """
    if "ready" not in os.listdir("."):
        Path("go").touch()
        return
    os.write(os.open("gate", os.O_RDWR), b".")
    while is_alive(Path("ready").read_text()):
        time.sleep(0.001)


def is_alive(pid: str) -> bool:
    """Return whether there is a process with this pid that has not exited."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    # The name of the program is in brackets, and may contain spaces. The state comes after it.
    _, _, fields = status.rpartition(")")
    state = fields.split()[0]
    # A process that has exited is a zombie (Z) until its parent waits for it, and then dead (X).
    return state not in ("Z", "X")


def prepare(directory: Path) -> None:
    """Create the pipe at which the compiler waits, and an output that is from no build."""
    os.mkfifo(directory / "gate")
    (directory / "output").write_text("-")


@dataclass(frozen=True)
class Build:
    """The results of the builds."""

    output: str
    """The name of the worker whose output it is."""
    has_overlapped: bool
    """Whether B has built while A's compiler was running."""

    def __str__(self) -> str:
        if self.output == "":
            return "output of (nobody)"
        return f"output of {self.output}"


def read_state(directory: Path) -> Build:
    """Return the output, and whether a build has overlapped with an old compiler."""
    return Build(
        output=(directory / "output").read_text(),
        has_overlapped=(directory / "overlapped").exists(),
    )


def invariant(history: History) -> Iterator[str]:
    """When a build has reported success, the output is its own.

    No build starts while an old compiler runs.
    """
    yield from history.lock_problems
    a_was_killed = False
    for step in history.taken_steps:
        if step.is_fault:
            a_was_killed = True
        # The steps of C are those of the compiler that A has started.
        is_orphan_step = step.worker == "C" and a_was_killed
        overwrites_b = step.state_before.output == "B" and step.state_after.output != "B"
        if is_orphan_step and overwrites_b:
            yield (
                "B reported success, but the compiler of A, which was killed, then overwrote its "
                "output."
            )
    if history.state.has_overlapped:
        yield "B built while A's compiler was still running."


LOCK = Step(name="lock", event="fcntl.flock", file="lock", kind="lock", takes_lock=True)
COMPILE = Step(name="(A's child) compile", event="os.listdir", file="here", after_steps=("start",))
WAIT = Step(
    name="wait for it",
    event="os.listdir",
    file="here",
    after_steps=("lock", "wait for it"),
    waits_in_loop=True,
    takes_lock=True,
)


scenario = Scenario(
    # Its workers start children, which are not stepped.
    checks_every_call=False,
    title="Orphan process: the child of a dead parent still writes",
    subtitle="The compiler of a killed build overwrites the output of the next build.",
    rule="Let child processes inherit the lock, and let only the parent publish the result.",
    happened=(
        "A review found this in an installer. If it was killed while npm ran, its lock counted "
        "as stale at once. But npm was still changing the directory, and the next run worked "
        "there at the same time.",
        "https://github.com/AltimateAI/altimate-code/pull/1201",
    ),
    question=(
        "A is killed while its compiler runs. B builds and finishes. Then the compiler finishes. "
        "Whose output remains?"
    ),
    shared="output",
    workers=3,
    faults="!",
    variants={
        "naive": Variant(
            summary="takes a lock and runs a compiler that writes the output",
            schedule="A1 A! B1 C1",
            expected_problem="then overwrote its output",
            explanation="A's lock was released when A died, but its compiler was still running.",
        ),
        "fixed": Variant(
            summary=(
                "lets the compiler inherit the lock and write to a scratch file, which only the "
                "parent publishes"
            ),
            schedule="A1 A! B1 C1",
            explanation=(
                "The compiler kept the lock until it exited, and its output was never published."
            ),
        ),
    },
    steps=(LOCK, WAIT, COMPILE),
    mechanisms=(
        Mutation(
            function="kit/safety/children.py:Children.start",
            summary="do not pass the lock on to child processes",
            original_code="self._lock_descriptors",
            replacement_code="()",
            expected_problem="B built while A's compiler was still running",
        ),
    ),
    production_code="sampletool.kit.safety.children:Children.start",
)
