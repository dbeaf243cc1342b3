"""A build runs a compiler and is killed. The compiler is not: it goes on writing, and nobody waits for it any more.

The lock was the build's, so it is free, and the next build begins. It is done and says so; then the compiler of the
dead one writes its old output over the new. C stands for that compiler: its step is what A's child does.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ...kit.safety.atomic_file import replace
from ...kit.safety.children import Children
from ...kit.safety.signals import Signals
from ..ours import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Removal, Scenario, Step, Way

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
"""Waits until C lets it go on; what it writes is the first thing it does then, and the last."""


def naive(worker: str) -> None:
    if worker == "C":
        return let_the_compiler_go_on()
    with lock_named("lock").exclusively(PATIENT_WAIT_SECONDS):
        if worker == "A":
            compiler = subprocess.Popen([sys.executable, "-S", "-c", COMPILER, "output"], stdin=subprocess.DEVNULL)
            while compiler.poll() is None:
                look_around()
        else:
            publish(worker)
    return None


def fixed(worker: str) -> None:
    if worker == "C":
        return let_the_compiler_go_on()
    with lock_named("lock").exclusively(PATIENT_WAIT_SECONDS) as hold:
        if worker == "A":
            with Children(Signals(), hold.descriptors) as children:
                argv = [sys.executable, "-S", "-c", COMPILER, "A.scratch"]
                children.start("compiler", argv, cwd=Path.cwd(), env=os.environ)
                while children.next_exit(within_seconds=0.001) is None:
                    look_around()
            replace(Path("output"), Path("A.scratch").read_bytes())
        else:
            publish(worker)
    return None


def publish(worker: str) -> None:
    if os.path.exists("ready") and is_alive(Path("ready").read_text()):
        Path("beside").touch()
    replace(Path("output"), worker.encode())


def look_around() -> None:
    """A step, once the compiler waits for C; without C it is soon done."""
    if os.path.exists("ready"):
        os.listdir(".")
    time.sleep(0.001)


def let_the_compiler_go_on() -> None:
    """If it has not begun, it will not have to wait; else wait until it is dead."""
    if "ready" not in os.listdir("."):
        Path("go").touch()
        return
    os.write(os.open("gate", os.O_RDWR), b".")
    while is_alive(Path("ready").read_text()):
        time.sleep(0.001)


def is_alive(pid: str) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def prepare(directory: Path) -> None:
    os.mkfifo(directory / "gate")
    (directory / "output").write_text("-")


class Seen(NamedTuple):
    output: str
    is_beside: bool
    """B has built while A's compiler lived."""

    def __str__(self) -> str:
        return f"output of {self.output or '(nobody)'}"


def look(directory: Path) -> Seen:
    return Seen((directory / "output").read_text(), (directory / "beside").exists())


def invariant(history: History) -> Iterator[str]:
    """Once a build is answered that it is done, the output is its own; and none begins beside a living compiler."""
    yield from history.crowds
    for number, moment in enumerate(history.moments):
        is_orphan = moment.worker == "C" and any(each.is_struck for each in history.moments[:number])
        if is_orphan and moment.before.output == "B" != moment.after.output:
            yield "B was answered that its build is done; then the compiler of A, which is dead, wrote over its output."
    if history.now.is_beside:
        yield "B built while A's compiler was still at work."


LOCK = Step("lock", "fcntl.flock", "lock", kind="lock", holds=True)
COMPILE = Step("(A's child) compile", "os.listdir", "here", after=("start",))
WAIT = Step("wait for it", "os.listdir", "here", waits=True, holds=True, after=("lock", "wait for it"))

scenario = Scenario(
    # Its workers start children, which are not stepped.
    steps_every_call=False,
    title="The parent is dead, the child still writes",
    rule="A child inherits the lock, and only the parent publishes.",
    happened=(
        "In a review of an installer with a lock: killed while npm runs, its lock counts as stale at once, although "
        "npm goes on changing the directory; the next run then works beside it.",
        "https://github.com/AltimateAI/altimate-code/pull/1201",
    ),
    question="A is killed while its compiler runs; B builds and is done; the compiler finishes. Whose output is it?",
    shared="output",
    workers=3,
    strikes="!",
    ways={
        "naive": Way(
            says="lock, run the compiler, which writes the output",
            shows="A1 A! B1 C1",
            breaks="wrote over its output",
            because="with A its lock was gone, but not its compiler.",
        ),
        "fixed": Way(
            says="our children: they keep the lock, write into a scratch place, and only the parent publishes",
            shows="A1 A! B1 C1",
            because="the compiler kept the lock until it was gone, and what it wrote was never published.",
        ),
    },
    steps=(LOCK, WAIT, COMPILE),
    mechanisms=(
        Removal(
            "kit/safety/children.py:Children.start",
            says="not handing the lock on to the children",
            pattern="self._lock_descriptors",
            instead="()",
            breaks="B built while A's compiler was still at work",
        ),
    ),
    symbol="sampletool.kit.safety.children:Children.start",
    still_broken_by="a child that closes all its descriptors and writes to the output itself, by a path of its own.",
)
