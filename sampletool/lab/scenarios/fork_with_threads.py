"""A program with threads calls fork.

The child is a copy of the memory, with only one thread: the one that called fork. At that moment,
another thread held the lock of the log. In the copy, the lock is held as well, but the thread that
would release it does not exist. The child waits permanently when it writes its first line to the
log. A new lock in the child ends the wait, but the data that the lock protects was copied in the
middle of a change.
"""

import os
import sys
import threading
from asyncio import sleep
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ...kit.safety.children import Children
from ...kit.safety.signals import Signals
from ..scenario import History, Removal, Scenario, Step, Variant

PATIENCE_SECONDS = 0.2
"""The time after which World.log() gives up, and exits to show that the program hangs.

The child has no other thread, so a lock that is not free at once never becomes free.
"""
PROGRAM = "import os; os.write(os.open('log', os.O_APPEND | os.O_WRONLY), b'B was here\\n')"


class World:
    def __init__(self) -> None:
        self.thread = ThreadPoolExecutor(1)
        self.lock = threading.Lock()
        self.pieces: list[str] = []

    def begin(self) -> None:
        self.lock.acquire()
        self.pieces.append("A began")

    def end(self) -> None:
        self.pieces.append(" and ended\n")
        self.flush()
        self.lock.release()

    def flush(self) -> None:
        os.write(os.open("log", os.O_APPEND | os.O_WRONLY), "".join(self.pieces).encode())
        self.pieces.clear()

    def log(self, line: str) -> None:
        if not self.lock.acquire(timeout=PATIENCE_SECONDS):
            os._exit(1)
        self.pieces.append(line)
        self.flush()
        self.lock.release()


async def naive(worker: str, world: World) -> None:
    if not await is_a_thread(worker, world):
        run_in_fork(lambda: world.log("B was here\n"))


async def wrong_new_lock(worker: str, world: World) -> None:
    def child() -> None:
        world.lock = threading.Lock()
        world.log("B was here\n")

    if not await is_a_thread(worker, world):
        run_in_fork(child)


async def fixed(worker: str, world: World) -> None:
    if not await is_a_thread(worker, world):
        with Children(Signals()) as children:
            children.start(
                "child", [sys.executable, "-S", "-c", PROGRAM], cwd=Path.cwd(), env=os.environ
            )
            while children.next_exit(within_seconds=1.0) is None:
                pass


async def is_a_thread(worker: str, world: World) -> bool:
    """Return whether this is A: another thread of this program, which writes a line to the log."""
    if worker != "A":
        return False
    world.thread.submit(world.begin).result()
    await sleep(0)
    world.thread.submit(world.end).result()
    return True


def run_in_fork(child: Callable[[], None]) -> None:
    """Run a function in a child process that shares the memory of this one, and wait for it."""
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        raise TimeoutError("the child waits permanently")


def prepare(directory: Path) -> None:
    """Create an empty log."""
    (directory / "log").touch()


def look(directory: Path) -> str:
    """Return the lines of the log as text."""
    return (directory / "log").read_text().strip().replace("\n", " / ") or "(empty)"


def invariant(history: History) -> Iterator[str]:
    """No child waits permanently, and each line of the log was written by one worker."""
    if history.exit_codes.get("B"):
        yield "the child of B waits permanently for a lock that none of its threads can release."
    for line in history.now.split(" / "):
        if line not in ("(empty)", "A began and ended", "B was here"):
            yield f'no worker wrote this line of the log: "{line}".'
    has_finished = history.is_over and not history.exit_codes.get("B")
    if has_finished and "B was here" not in history.now:
        yield "B's line is not in the log."


scenario = Scenario(
    title="Deadlock after fork in a program with threads",
    subtitle="The child copies a locked lock, but not the thread that would unlock it.",
    rule=(
        "In a program with threads, start child processes with fork and exec at once, and never "
        "with fork alone."
    ),
    happened=(
        "In Kubeless, one thread logged the requests of a function under a lock while another "
        "thread forked. The child found the lock held by nobody, and hung.",
        "https://github.com/vmware-archive/runtimes/issues/94",
    ),
    question=(
        "A thread holds the lock of the log. The program forks, and the child writes a line to "
        "the log. Who unlocks?"
    ),
    shared="log",
    world=World,
    variants={
        "naive": Variant(
            summary="forks, and logs in the child",
            schedule="A1 B1 A2",
            explanation=(
                "The child has a copy of the locked lock, but not the thread that holds it."
            ),
        ),
        "wrong-new-lock": Variant(
            summary="does the same, but creates a new lock in the child (os.register_at_fork)",
            schedule="A1 B1 A2",
            explanation=(
                "The half-written line of A was copied too, and the child wrote it out with its "
                "own line."
            ),
        ),
        "fixed": Variant(
            summary="starts a new program, which shares no memory with its parent",
            schedule="A1 B1 A2",
            explanation=(
                "exec replaced the copied memory, including the lock and the half-written line."
            ),
        ),
    },
    steps=(
        Step("lock the log", "", "A"),
        Step("unlock it", "", "A"),
        Step("a child logs", "", "B"),
    ),
    mechanisms=(
        Removal(
            "lab/scenarios/fork_with_threads.py:fixed",
            summary="fork before starting the program",
            pattern="with Children(Signals()) as children:\n    ...",
            instead="""\
run_in_fork(lambda: world.log(""))
with Children(Signals()) as children:
    ...
""",
            breaks="waits permanently for a lock",
        ),
    ),
    symbol="sampletool.kit.safety.children:Children.start",
)
