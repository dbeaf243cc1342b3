"""`server.pid` holds the number of a process. A script reads it and stops the server. But the server has died since.

The system has given its number to another process: in time on a busy machine, after seconds in a container, where
numbers begin at 1 again. The script stops a stranger. "Is there a process of that number?" is answered with yes, and
its name may be the same as well. Here the file is given the stranger's number, instead of waiting for its turn.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep

from ...kit.safety.processes import is_running, start_of
from ..scenario import History, Removal, Scenario, Step, Way

FILE = Path("server.pid")
NOBODY = 2**22 + 1
"""A pid that no process can have."""


def naive(worker: str) -> None:
    if not is_the_stranger(worker):
        pid, _start = FILE.read_text().split()
        stop(int(pid))


def wrong_same_name(worker: str) -> None:
    if not is_the_stranger(worker):
        pid, _start = FILE.read_text().split()
        if name_of(int(pid)) == name_of(os.getpid()):
            stop(int(pid))


def fixed(worker: str) -> None:
    if not is_the_stranger(worker):
        pid, start = FILE.read_text().split()
        with suppress(ProcessLookupError):
            process = os.pidfd_open(int(pid))
            if start_of(int(pid)) == start:
                stop(int(pid), process)


def stop(pid: int, process: int | None = None) -> None:
    """Through the descriptor of the process, where there is one: its number may be reused even now."""
    sys.audit("stepping.verb", "stop")
    with suppress(ProcessLookupError):
        if process is None:
            os.kill(pid, signal.SIGTERM)
        else:
            signal.pidfd_send_signal(process, signal.SIGTERM)
        while is_running(pid) and "stopped" not in Path("log").read_text():
            sleep(0.001)


def name_of(pid: int) -> str:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/comm").read_text()
    return ""


def is_the_stranger(worker: str) -> bool:
    """B gets the number, and works."""
    if worker == "B":
        log = os.open("log", os.O_APPEND | os.O_WRONLY)
        signal.signal(signal.SIGTERM, lambda *_: [os.write(log, b"stopped")])
        # Without emptying the file before: whoever reads it finds the old number or the new one.
        os.write(os.open(FILE, os.O_WRONLY), record_of(os.getpid()).encode())
        os.listdir(".")
    return worker == "B"


def record_of(pid: int) -> str:
    return f"{pid} {start_of_the_dead()}".ljust(80)


def start_of_the_dead() -> str:
    boot, _, _ticks = str(start_of(os.getpid())).partition(":")
    return f"{boot}:1"


def prepare(directory: Path) -> None:
    (directory / "log").touch()
    (directory / FILE).write_text(record_of(NOBODY))


def look(directory: Path) -> str:
    return (directory / "log").read_text() or "at work"


def invariant(history: History) -> Iterator[str]:
    """Nothing is stopped but the process that wrote its number into the file, and that one is dead."""
    if history.now != "at work":
        yield "B was stopped, which has nothing to do with the server."


scenario = Scenario(
    title="The number of a dead process is given to another one",
    rule="A pid is a number that is reused: a process is its pid and its start, and is signalled by a descriptor.",
    happened=(
        "Wazuh: after an unclean stop its start-up killed the number that a stale file named, which was one of its own "
        "new processes; the container came up with nothing running in it.",
        "https://github.com/wazuh/wazuh/issues/38695",
    ),
    question="The server is dead, and B has been given its number. A reads the number and stops it. Who dies?",
    shared="B",
    ways={
        "naive": Way(
            says="read the number, kill it",
            shows="B1 A1 A2",
            because="the number was the server's when it was written, and is B's now.",
        ),
        "wrong-same-name": Way(
            says="only if the process has the name that the server has",
            shows="B1 A1 A2",
            because="both are python, and every copy of the program has the name of the program.",
        ),
        "fixed": Way(
            says="only if it began when the server began, through a descriptor of that very process",
            shows="B1 A1",
            because="B has the server's number and not its start: boot and clock tick.",
        ),
    },
    steps=(
        Step("read the number", "open", "server.pid", kind="read", after=("start",)),
        Step("stop it", "stepping.verb"),
        Step("(B gets the number)", "open", "server.pid", kind="write"),
        Step("work", "os.listdir", "here"),
    ),
    mechanisms=(
        Removal(
            "kit/safety/processes.py:start_of",
            says="a start that is the boot alone",
            pattern='f"{boot_id[:_BOOT_ID_CHARACTERS]}:{ticks}"',
            instead='f"{boot_id[:_BOOT_ID_CHARACTERS]}:1"',
            breaks="B was stopped",
        ),
    ),
    symbol="sampletool.kit.safety.processes:start_of",
    no_verb="No command of this tool stops by a pid file (`tool lock release` asks the kernel who holds the lock): the "
    "right way is code of this page, over `start_of`, which its lock records use.",
    still_broken_by="a file from another container or machine, whose numbers mean other processes; no pid file is as "
    "good as a lock that ends with its process.",
)
