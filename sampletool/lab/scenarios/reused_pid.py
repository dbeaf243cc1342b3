"""A file contains the pid of a server.

A script reads the pid and stops the server. But the server is already dead. The system has given
its pid to another process. On a busy machine this takes some time. In a container it takes seconds,
because pids start at 1 again. So the script stops an unrelated process. A check that the pid exists
succeeds, and the unrelated process may even have the same name. To keep the run short, the lab
writes the pid of B into the file.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep
from types import FrameType

from ...kit.safety.processes import is_running, start_of
from ..scenario import History, Mutation, Scenario, Step, Variant
from ._stops import stop_here

PID_FILE = Path("server.pid")
DEAD_PID = 2**22 + 1
"""A pid that no process can have, because it is above the maximum of Linux."""


def naive(worker: str) -> None:
    """Stop the server, whose pid is in the file, as A. B takes over the pid of the dead server."""
    if worker == "B":
        take_over_pid()
        return
    pid, _start_time = PID_FILE.read_text().split()
    stop(int(pid))


def wrong_same_name(worker: str) -> None:
    """Compare the names of the programs, as A. Wrong: B may have the same name as the server."""
    if worker == "B":
        take_over_pid()
        return
    pid, _start_time = PID_FILE.read_text().split()
    if program_name(int(pid)) == program_name(os.getpid()):
        stop(int(pid))


def fixed(worker: str) -> None:
    """Compare the start times, as A. B started later than the server whose pid it has."""
    if worker == "B":
        take_over_pid()
        return
    pid, start_time = PID_FILE.read_text().split()
    with suppress(ProcessLookupError):
        # The pidfd stays with this process. The pid may be reused after the comparison.
        pidfd = os.pidfd_open(int(pid))
        if start_of(int(pid)) == start_time:
            stop(int(pid), pidfd)


def stop(pid: int, pidfd: int | None = None) -> None:
    """Send TERM, through the pidfd if there is one, because the pid may have been reused."""
    sys.audit("stepping.verb", "stop")
    with suppress(ProcessLookupError):
        if pidfd is None:
            os.kill(pid, signal.SIGTERM)
        else:
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        wait_until_stopped(pid)


def wait_until_stopped(pid: int) -> None:
    """Wait until the process has exited, or B has logged that the signal has stopped it."""
    while is_running(pid) and "stopped" not in Path("log").read_text():
        sleep(0.001)


def program_name(pid: int) -> str:
    """Return the name of the program that runs in a process, or "" without such a process."""
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except FileNotFoundError:
        return ""


def take_over_pid() -> None:
    """Become the process that has the pid of the dead server. Log if this process is stopped."""
    log = os.open("log", os.O_APPEND | os.O_WRONLY)

    def log_signal(_number: int, _frame: FrameType | None) -> None:
        os.write(log, b"stopped")

    signal.signal(signal.SIGTERM, log_signal)
    # The file is not emptied before, so a reader finds the old number or the new one.
    os.write(os.open(PID_FILE, os.O_WRONLY), pid_file_content(os.getpid()).encode())
    # This stands for the work of B, during which A may stop this process.
    stop_here()


def pid_file_content(pid: int) -> str:
    """Return the content of the pid file: a pid, and the start time of the dead server."""
    boot_id, _, _ticks = str(start_of(os.getpid())).partition(":")
    start_time_of_server = f"{boot_id}:1"
    # Each content has the same length, so one write replaces the one before.
    return f"{pid} {start_time_of_server}".ljust(80)


def prepare(directory: Path) -> None:
    """Create an empty log, and a pid file with the pid of a dead server."""
    (directory / "log").touch()
    (directory / PID_FILE).write_text(pid_file_content(DEAD_PID))


def read_state(directory: Path) -> str:
    """Return whether B is still at work or was stopped, as text."""
    log = (directory / "log").read_text()
    if log == "":
        # B writes to the log only when it is stopped.
        return "at work"
    return log


def invariant(history: History) -> Iterator[str]:
    """B is never stopped: the process that wrote the pid file is another one, and it is dead."""
    state_of_b = history.state
    if state_of_b != "at work":
        yield "B was stopped, but B is not the server."


scenario = Scenario(
    title="PID reuse: the wrong process is killed",
    subtitle="The pid in a pid file belongs to another process now.",
    rule="Identify a process by its pid and its start time, and send signals through a pidfd.",
    happened=(
        "After an unclean stop, the start script of Wazuh killed the pid that it found in a "
        "stale file. The pid belonged to one of its own new processes. The container then ran "
        "without any service.",
        "https://github.com/wazuh/wazuh/issues/38695",
    ),
    question=(
        "The server is dead, and B has its pid now. A reads the pid file and stops that process. "
        "Which process is stopped?"
    ),
    shared="B",
    variants={
        "naive": Variant(
            summary="reads the pid and sends a signal to it",
            schedule="B1 A1 A2",
            explanation="The pid was the server's when it was written, and is B's now.",
        ),
        "wrong-same-name": Variant(
            summary="sends the signal only if the process has the same name",
            schedule="B1 A1 A2",
            explanation="Both processes are called python.",
        ),
        "fixed": Variant(
            summary=(
                "sends the signal only if the start time is the same, and sends it through a pidfd"
            ),
            schedule="B1 A1",
            explanation="B has the pid of the server, but another start time.",
        ),
    },
    steps=(
        Step(
            name="read the pid",
            event="open",
            file="server.pid",
            kind="read",
            after_steps=("start",),
        ),
        Step(name="stop it", event="stepping.verb"),
        Step(name="(B gets the pid)", event="open", file="server.pid", kind="write"),
        Step(name="work", event="os.listdir", file="here"),
    ),
    mechanisms=(
        Mutation(
            function="kit/safety/processes.py:start_of",
            summary="use the boot id alone as the start time",
            original_code='f"{boot_id[:_BOOT_ID_CHARACTERS]}:{ticks}"',
            replacement_code='f"{boot_id[:_BOOT_ID_CHARACTERS]}:1"',
            expected_problem="B was stopped",
        ),
    ),
    production_code="sampletool.kit.safety.processes:start_of",
    no_verb=(
        "No command of this tool stops a process by its pid file. The fix on this page is an "
        "example "
        "that uses `start_of`, which the tool uses for its lock records."
    ),
)
