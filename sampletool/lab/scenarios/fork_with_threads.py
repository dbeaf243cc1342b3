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
from ..scenario import History, Mutation, Scenario, Step, Variant
from ._log_lines import LogLines

PATIENCE_SECONDS = 0.2
"""The time after which SharedMemory.log() gives up, and exits to show that the program hangs.

The child has no other thread, so a lock that is not free at once never becomes free.
"""
LINE_OF_A = "A began and ended"
LINE_OF_B = "B was here"
PROGRAM = f"import os; os.write(os.open('log', os.O_APPEND | os.O_WRONLY), b'{LINE_OF_B}\\n')"
"""A program that writes the line of B to the log. It shares no memory with this one."""


class SharedMemory:
    """A log with a buffer and a lock. Worker A uses it in a thread, and a fork copies it."""

    def __init__(self) -> None:
        self.thread_of_a = ThreadPoolExecutor(1)
        self.lock = threading.Lock()
        self.buffer: list[str] = []

    def begin_line(self) -> None:
        """Take the lock, and buffer the first half of the line of A."""
        self.lock.acquire()
        self.buffer.append("A began")

    def end_line(self) -> None:
        """Write the line of A to the log, and release the lock."""
        self.buffer.append(" and ended\n")
        self.write_buffer()
        self.lock.release()

    def write_buffer(self) -> None:
        """Append the buffered text to the file, and empty the buffer."""
        log = os.open("log", os.O_APPEND | os.O_WRONLY)
        os.write(log, "".join(self.buffer).encode())
        self.buffer.clear()

    def log(self, line: str) -> None:
        """Write a whole line to the log. Exit the process if the lock is not free."""
        if not self.lock.acquire(timeout=PATIENCE_SECONDS):
            os._exit(1)
        self.buffer.append(line)
        self.write_buffer()
        self.lock.release()


async def naive(worker: str, memory: SharedMemory) -> None:
    """Log in a thread as A. Fork as B, and log in the child."""
    if worker == "A":
        await log_in_thread(memory)
    else:
        run_in_fork(lambda: memory.log(f"{LINE_OF_B}\n"))


async def wrong_new_lock(worker: str, memory: SharedMemory) -> None:
    """Create a new lock in the child. Wrong: the child's buffer still has half a line of A."""

    def log_with_new_lock() -> None:
        memory.lock = threading.Lock()
        memory.log(f"{LINE_OF_B}\n")

    if worker == "A":
        await log_in_thread(memory)
    else:
        run_in_fork(log_with_new_lock)


async def fixed(worker: str, memory: SharedMemory) -> None:
    """Log in a thread as A. As B, start a program that logs: a fork, and exec at once."""
    if worker == "A":
        await log_in_thread(memory)
        return
    program_of_b = [sys.executable, "-S", "-c", PROGRAM]
    with Children(Signals()) as children:
        children.start("child", program_of_b, cwd=Path.cwd(), env=os.environ)
        while children.next_exit(within_seconds=1.0) is None:
            pass


async def log_in_thread(memory: SharedMemory) -> None:
    """Write the line of A in another thread. Between its two halves, the other worker may run."""
    memory.thread_of_a.submit(memory.begin_line).result()
    await sleep(0)
    memory.thread_of_a.submit(memory.end_line).result()


def run_in_fork(function: Callable[[], None]) -> None:
    """Run a function in a child process that has a copy of this memory, and wait for it.

    Raise TimeoutError if the child fails.
    """
    pid = os.fork()
    is_child = pid == 0
    if is_child:
        function()
        # The child must not return: it would continue as a second process of the workers.
        os._exit(0)
    _, wait_status = os.waitpid(pid, 0)
    if wait_status != 0:
        raise TimeoutError("the child waits permanently")


def prepare(directory: Path) -> None:
    """Create an empty log."""
    (directory / "log").touch()


def read_state(directory: Path) -> LogLines:
    """Return the lines of the log."""
    return LogLines((directory / "log").read_text().splitlines())


def invariant(history: History) -> Iterator[str]:
    """No child waits permanently, and each line of the log was written by one worker."""
    lines = history.state.lines
    # B only starts the child. It fails if the child gave up its wait for the lock.
    child_is_stuck = "B" in history.failed_workers
    if child_is_stuck:
        yield "the child of B waits permanently for a lock that none of its threads can release."
    for line in lines:
        if line not in (LINE_OF_A, LINE_OF_B):
            yield f'no worker wrote this line of the log: "{line}".'
    if history.is_finished and not child_is_stuck and LINE_OF_B not in lines:
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
    create_shared_memory=SharedMemory,
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
        Step(name="lock the log", event="", file="A"),
        Step(name="unlock it", event="", file="A"),
        Step(name="a child logs", event="", file="B"),
    ),
    mechanisms=(
        Mutation(
            function="lab/scenarios/fork_with_threads.py:fixed",
            summary="fork before starting the program",
            original_code="with Children(Signals()) as children:\n    ...",
            replacement_code="""\
run_in_fork(lambda: memory.log(""))
with Children(Signals()) as children:
    ...
""",
            expected_problem="waits permanently for a lock",
        ),
    ),
    production_code="sampletool.kit.safety.children:Children.start",
)
