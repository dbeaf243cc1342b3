"""Ask the kernel about processes. No other module of the library reads /proc.

A pid is only valid in one pid namespace: in another container, it belongs to a different process.
So where there is no /proc, or where it shows the processes of another pid namespace, this module
knows nothing: its functions return None or nothing.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_ID_CHARACTERS = 8
"""How much of the boot id is kept. This is enough to tell the boots of one machine apart."""

_DEAD_STATES = "ZX"
"""The states of a process that has exited: a zombie, and one that is just being removed."""


@dataclass(frozen=True)
class _Stat:
    """The fields of /proc/PID/stat that are used here."""

    pid: int
    parent: int
    group: int
    start_ticks: int


def can_see_processes() -> bool:
    """Return whether /proc exists, and shows the pids that are valid for this process.

    In a new pid namespace, such as a container, /proc may still belong to the parent namespace.
    Then its pids are valid only there: a signal from here would hit a different process.
    """
    me = _read_stat("self")
    return me is not None and me.pid == os.getpid()


def is_running(pid: int) -> bool:
    """Return whether the process is running. A zombie is not."""
    return start_ticks(pid) is not None


def start_ticks(pid: int) -> int | None:
    """Return when the process was started, in clock ticks since boot.

    Return None if it is not running, or if processes cannot be seen from here.
    """
    if not can_see_processes():
        return None
    stat = _read_stat(str(pid))
    if stat is None:
        return None
    return stat.start_ticks


def start_of(pid: int) -> str | None:
    """Return a text that identifies the start of the process: the boot, and the time since then.

    The pid and this text identify a process: if the pid is reused, the text differs. Return None if
    the process is not running, or if the system does not show this.
    """
    ticks = start_ticks(pid)
    if ticks is None:
        return None
    try:
        boot_id = _BOOT_ID.read_text()
    except OSError:
        return None
    return f"{boot_id[:_BOOT_ID_CHARACTERS]}:{ticks}"


def members_of_group(group: int) -> tuple[int, ...]:
    """Return the pids of the running members of a process group."""
    return members_of_groups((group,))


def members_of_groups(groups: Collection[int]) -> tuple[int, ...]:
    """Return the pids of the running members of these process groups."""
    if not groups:
        return ()
    members = []
    for pid in pids():
        stat = _read_stat(str(pid))
        if stat is not None and stat.group in groups:
            members.append(pid)
    return tuple(members)


def start_of_leader(pid: int) -> int | None:
    """Return when the process was started, as `start_ticks` does, if it leads a process group.

    A leader has created its group, which has the same number as the leader. Return None if the
    process leads none, is not running, or cannot be seen from here.
    """
    if not can_see_processes():
        return None
    stat = _read_stat(str(pid))
    if stat is None or stat.group != pid:
        return None
    return stat.start_ticks


def descendants_of(ancestor: int) -> list[int]:
    """Return the pids of the running children of a process, of their children, and so on.

    A process whose parent has exited is missing, because it has another parent now.
    """
    children: dict[int, list[int]] = {}
    for pid in pids():
        stat = _read_stat(str(pid))
        if stat is not None:
            children.setdefault(stat.parent, []).append(pid)
    descendants: list[int] = []
    generation = children.get(ancestor, [])
    while generation:
        descendants += generation
        next_generation = []
        for pid in generation:
            # pop(): pids that are reused during the search must not lead to a cycle.
            next_generation += children.pop(pid, [])
        generation = next_generation
    return descendants


def pids() -> list[int]:
    """Return the pids of all processes that can be seen from here, zombies included."""
    if not can_see_processes():
        return []
    return [int(name) for name in _names_in("/proc") if name.isdigit()]


def pid_namespace() -> str | None:
    """Return the name of the pid namespace of this process, for example "pid:[4026531836]"."""
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return None


def open_files(pid: int) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the number (as text) of each descriptor of the process, and the status of its file.

    Yield nothing if this process may not look at them, because the other process belongs to
    another user, or is outside of the user namespace of this process.
    """
    for descriptor in _names_in(f"/proc/{pid}/fd"):
        with suppress(OSError):
            yield descriptor, os.stat(f"/proc/{pid}/fd/{descriptor}")


def can_see_files(pid: int) -> bool:
    """Return whether any open file of the process can be seen from here."""
    first_file = next(open_files(pid), None)
    return first_file is not None


def locker_of(pid: int, file: os.stat_result) -> int | None:
    """Return the pid of the process that took the flock on this file which process `pid` has.

    For a child that inherited the lock from its parent, this is the pid of the parent, even if the
    parent has exited. Return None if no descriptor of process `pid` carries a lock on this file. It
    is not enough that the process has opened the file.
    """
    for descriptor, open_file in open_files(pid):
        if not os.path.samestat(open_file, file):
            continue
        try:
            fdinfo = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text()
        except OSError:
            # The descriptor has been closed meanwhile.
            continue
        locker_pid = _find_locker(fdinfo)
        if locker_pid is not None:
            return locker_pid
    return None


def _find_locker(fdinfo: str) -> int | None:
    """Return the pid in the line about a flock, or None if there is no such line.

    The line looks like this: `lock: 1: FLOCK ADVISORY WRITE 4121 00:2f:123 0 EOF`
    """
    for line in fdinfo.splitlines():
        if not line.startswith("lock:"):
            continue
        _label, _number, kind, _advisory, _mode, locker_pid, *_range = line.split()
        # Other kinds of locks have such a line as well, for example POSIX and LEASE.
        if kind == "FLOCK":
            return int(locker_pid)
    return None


def _read_stat(pid_or_self: str) -> _Stat | None:
    """Return facts about a process if it is running. "self" is this process.

    A process whose main thread has exited looks like a zombie, but runs as long as another
    thread of it does.
    """
    try:
        text = Path(f"/proc/{pid_or_self}/stat").read_text()
    except OSError:
        return None
    pid = int(text.partition(" ")[0])
    # The manual page proc_pid_stat(5) numbers the fields, starting at 1. Field 2 is the name of
    # the program in parentheses. The name may contain anything, also spaces and parentheses, so
    # look for the last parenthesis. It is followed by field 3.
    _pid_and_name, _parenthesis, other_fields = text.rpartition(")")
    fields = dict(enumerate(other_fields.split(), start=3))
    state = fields[3]
    parent = int(fields[4])
    group = int(fields[5])
    thread_count = int(fields[20])
    start = int(fields[22])
    if state in _DEAD_STATES and thread_count <= 1:
        return None
    return _Stat(pid=pid, parent=parent, group=group, start_ticks=start)


def _names_in(directory: str) -> list[str]:
    """Return the names in a directory. There are none if it cannot be read."""
    with suppress(OSError):
        return os.listdir(directory)
    return []
