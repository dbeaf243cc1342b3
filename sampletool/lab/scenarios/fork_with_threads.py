"""A program with threads forks. The child is a copy of its memory, and of one thread: the one that called fork.

Another thread held the lock of the log in that moment. In the copy the lock is held as well, and the thread that would
give it back is not there. The child waits for ever, at its first line of log. A new lock for the child ends the wait
and not the damage: what the lock protected was copied half-way through its change.
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
from ..scenario import History, Removal, Scenario, Step, Way

PATIENCE_SECONDS = 0.2
"""In the child there is no other thread: a lock that is not free at once never is."""
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
        forked(lambda: world.log("B was here\n"))


async def wrong_new_lock(worker: str, world: World) -> None:
    def child() -> None:
        world.lock = threading.Lock()
        world.log("B was here\n")

    if not await is_a_thread(worker, world):
        forked(child)


async def fixed(worker: str, world: World) -> None:
    if not await is_a_thread(worker, world):
        with Children(Signals()) as children:
            children.start("child", [sys.executable, "-S", "-c", PROGRAM], cwd=Path.cwd(), env=os.environ)
            while children.next_exit(within_seconds=1.0) is None:
                pass


async def is_a_thread(worker: str, world: World) -> bool:
    """A stands for another thread of this program, which writes a line into the log."""
    if worker == "A":
        world.thread.submit(world.begin).result()
        await sleep(0)
        world.thread.submit(world.end).result()
    return worker == "A"


def forked(child: Callable[[], None]) -> None:
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        raise TimeoutError("the child waits for ever")


def prepare(directory: Path) -> None:
    (directory / "log").touch()


def look(directory: Path) -> str:
    return (directory / "log").read_text().strip().replace("\n", " / ") or "(empty)"


def invariant(history: History) -> Iterator[str]:
    """The child ends, and every line of the log is one that a worker wrote."""
    if history.statuses.get("B"):
        yield "B's child waits for ever for a lock that no thread of its own can give back."
    for line in history.now.split(" / "):
        if line not in ("(empty)", "A began and ended", "B was here"):
            yield f'the log has a line that nobody wrote: "{line}".'
    if history.is_over and not history.statuses.get("B") and "B was here" not in history.now:
        yield "B's line is not in the log."


scenario = Scenario(
    title="A fork copies the locks, and not the threads that hold them",
    rule="A program with threads starts children by a new program (fork and exec at once), never by fork alone.",
    happened=(
        "Kubeless: a function's requests were logged by one thread under a lock while another one forked a process; "
        "the child found the lock held, with nobody to release it, and hung.",
        "https://github.com/vmware-archive/runtimes/issues/94",
    ),
    question="A thread holds the lock of the log. The program forks, and the child logs a line. Who unlocks?",
    shared="log",
    world=World,
    ways={
        "naive": Way(
            says="fork, and log in the child",
            shows="A1 B1 A2",
            because="the child has the lock as it was, held, and not the thread that held it.",
        ),
        "wrong-new-lock": Way(
            says="the same, with a new lock in the child (os.register_at_fork)",
            shows="A1 B1 A2",
            because="the line that A had begun was copied too, and the child wrote it out with its own.",
        ),
        "fixed": Way(
            says="our children: a program of its own, which has no memory of this one",
            shows="A1 B1 A2",
            because="exec threw the copy away, with its locks and its half line.",
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
            says="forking instead of starting a program",
            pattern="with Children(Signals()) as children:\n    ...",
            instead="""\
forked(lambda: world.log(""))
with Children(Signals()) as children:
    ...
""",
            breaks="waits for ever for a lock",
        ),
    ),
    symbol="sampletool.kit.safety.children:Children.start",
    still_broken_by="a `preexec_fn`, which runs between fork and exec; and libraries that fork by themselves, such as "
    "`multiprocessing` before Python 3.14, whose way of starting on Linux was fork.",
)
