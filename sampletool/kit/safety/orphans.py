"""End the processes that still hold a lock although the process that took it has exited.

A child may inherit the lock of the process that starts it, and keeps it after that process exits.

* An *orphan* is such a child of a process that has exited.
* A *stray* is a process that inherited the lock from this process, and has left the process group
  in which it was started, for example with setsid. So it keeps running when this process ends the
  groups of its children. As soon as this process exits, a stray is an orphan.

These processes are terminated (SIGTERM). Those that have not exited after a moment are killed.

If such a process leads a process group, all members of the group are ended with it. A command may
start programs without passing its descriptors on: Python's subprocess module closes them all. These
programs do not have the lock, but they are in the group of the command. If the command has exited
before the search, nothing leads to them any more, and they are not found.

No other process is harmed. The kernel must confirm that a descriptor of the process, or of the
leader of its group, carries this very lock, and who took the lock. A process that only has the lock
file open is left alone, and so is everything where the kernel cannot be asked (see lock_owners.py).
The group of a process that does not lead it is left alone, too: it may be that of a shell.

A pid may be reused at any moment. So each process is signalled through a pid descriptor: open the
descriptor, check again that its pid belongs to an orphan, then send the signal.
"""

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from select import POLLIN, poll

from . import processes
from .lock_owners import find_carriers, find_orphans
from .signals import Signals

FindPids = Callable[[], list[int]]

_GRACE_SECONDS = 2.0
"""How long a process may take to exit after a signal."""
_POLL_SECONDS = 0.02
"""How often to look whether a second signal has come."""


def end_orphans(lock_path: Path, signals: Signals) -> list[int]:
    """End the orphans of this lock and the groups that they lead, and return their pids.

    An orphan keeps a lock that it inherited, although the process that took the lock has exited.
    """

    def find() -> list[int]:
        return find_orphans(lock_path)

    return end_all(with_groups(find), signals)


def end_strays(lock_descriptor: int, signals: Signals) -> list[int]:
    """End the strays with this lock and the groups that they lead, and return their pids.

    Call this when the process groups of all children have been ended. What still runs then has left
    its group, for example with setsid: it is a stray.
    """
    lock_file = os.fstat(lock_descriptor)
    my_pid = os.getpid()

    def find_strays() -> list[int]:
        strays = []
        # A carrier has the lock. Its locker is the process that took the lock.
        for carrier in find_carriers(lock_file):
            if carrier.locker_pid == my_pid and carrier.pid != my_pid:
                strays.append(carrier.pid)
        return strays

    return end_all(with_groups(find_strays), signals)


def with_groups(find: FindPids) -> FindPids:
    """Return a function that finds what `find` finds, and the members of groups that these lead.

    It remembers the groups. When a leader has exited, `find` no longer returns it, but its members
    may still run.
    """
    start_of_leader: dict[int, int] = {}

    def find_with_groups() -> list[int]:
        found = set(find())
        start_of_new_leader = {}
        for pid in found - start_of_leader.keys():
            start = processes.start_of_leader(pid)
            if start is not None:
                start_of_new_leader[pid] = start
        if start_of_new_leader:
            # Find them again: a pid may have been reused before the start was read.
            for pid in start_of_new_leader.keys() & set(find()):
                start_of_leader[pid] = start_of_new_leader[pid]
        groups = set()
        for leader, start in start_of_leader.items():
            # A group keeps its number for as long as it has members, also if its leader has exited.
            # If another process has the number as its pid now, the group is gone.
            if processes.start_ticks(leader) in (start, None):
                groups.add(leader)
        found.update(processes.members_of_groups(groups))
        return sorted(found)

    return find_with_groups


def end_all(find: FindPids, signals: Signals) -> list[int]:
    """Terminate the processes that `find` returns, and kill those that do not exit in time.

    Return the pids of all processes that were sent a signal. If this process itself gets a second
    signal (see signals.py), the processes have less time to clean up.
    """
    # macOS has no pid descriptors. Without them, a signal could hit a process that reuses a pid.
    if not hasattr(signal, "pidfd_send_signal"):
        return []

    all_signalled: set[int] = set()
    # The second SIGKILL catches what the processes started before the first one hit them.
    for signal_number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        with _pid_descriptors(find()) as descriptors:
            if not descriptors:
                break
            # Ask again now that the descriptors are open. If a pid was reused before its
            # descriptor was opened, `find` does not return it a second time.
            confirmed = descriptors.keys() & set(find())
            signalled = _send_signal(signal_number, confirmed, descriptors)
            # Processes clean up after SIGTERM only. So a second signal shortens that wait only.
            is_grace_period = signal_number == signal.SIGTERM
            _await_exits(signalled.values(), signals, may_be_shortened=is_grace_period)
            all_signalled.update(signalled)
    return sorted(all_signalled)


@contextmanager
def _pid_descriptors(pids: list[int]) -> Iterator[dict[int, int]]:
    """Yield a descriptor for the pid of each process that is still there. Close them at the end."""
    descriptors = {}
    with ExitStack() as exit_stack:
        for pid in pids:
            with suppress(ProcessLookupError):
                descriptor = os.pidfd_open(pid)
                exit_stack.callback(os.close, descriptor)
                descriptors[pid] = descriptor
        yield descriptors


def _send_signal(
    signal_number: int,
    pids: Collection[int],
    descriptors: dict[int, int],
) -> dict[int, int]:
    """Send the signal to the processes with these pids, through the descriptors of the pids.

    Return the pids that the signal was sent to, with their descriptors. A process that has exited,
    or that belongs to another user, is left out.
    """
    signalled = {}
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(descriptors[pid], signal_number)
            signalled[pid] = descriptors[pid]
    return signalled


def _await_exits(descriptors: Collection[int], signals: Signals, *, may_be_shortened: bool) -> None:
    """Wait until the processes have exited, or for _GRACE_SECONDS.

    If the wait may be shortened, it ends when this process gets a second signal.
    """
    watched = poll()
    for descriptor in descriptors:
        # A pid descriptor becomes readable when its process exits.
        watched.register(descriptor, POLLIN)

    running = set(descriptors)
    deadline = time.monotonic() + _GRACE_SECONDS
    while running and time.monotonic() < deadline:
        if may_be_shortened and signals.is_repeated:
            return
        for descriptor, _event in watched.poll(1000 * _POLL_SECONDS):
            # It stays readable: without this, the next poll() would return at once.
            watched.unregister(descriptor)
            running.remove(descriptor)
