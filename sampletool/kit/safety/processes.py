"""What the kernel says of processes: the only file that reads /proc.

Where there is no /proc, or it belongs to another pid namespace, nothing is known: None, or an empty list. A pid that
was read there would be a different process here.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def can_see() -> bool:
    """Whether /proc is here and its pids are those that a signal from here would reach."""
    me = _stat("self")
    return me is not None and me[0] == os.getpid()


def started(pid: int) -> int | None:
    """When the process that has this pid was started, in clock ticks since boot. None if there is none."""
    stat = _stat("self")
    if stat is not None and stat[0] == os.getpid() != pid:
        stat = _stat(str(pid))
    return stat[2] if stat is not None and stat[0] == pid else None


def start_of(pid: int) -> str | None:
    """Boot id and start time: with the pid, the identity of a process. A reused pid has another one."""
    ticks = started(pid)
    with suppress(OSError):
        return None if ticks is None else f"{Path('/proc/sys/kernel/random/boot_id').read_text()[:8]}:{ticks}"
    return None


def members_of_group(group: int) -> tuple[int, ...]:
    """The living members of a process group."""
    return tuple(pid for pid in pids() if (stat := _stat(str(pid))) is not None and stat[1] == group)


def pids() -> list[int]:
    """Every process that can be seen from here."""
    return [int(name) for name in _names_in("/proc") if name.isdigit()] if can_see() else []


def pid_namespace() -> str | None:
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return None


def open_files(pid: int) -> Iterator[tuple[str, os.stat_result]]:
    """Number and file of each descriptor that the process has open."""
    for name in _names_in(f"/proc/{pid}/fd"):
        with suppress(OSError):
            yield name, os.stat(f"/proc/{pid}/fd/{name}")


def locker_of(pid: int, file: os.stat_result) -> int | None:
    """The pid that took the flock which this process's descriptors of the file carry.

    A child that inherited the descriptor shows its parent's pid, also after the parent's death; a process that
    merely opened the file shows nothing.
    """
    for descriptor, opened in open_files(pid):
        if (opened.st_dev, opened.st_ino) == (file.st_dev, file.st_ino):
            with suppress(OSError):
                for line in Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text().splitlines():
                    if line.startswith("lock:") and " FLOCK " in line:
                        return int(line.split()[5])
    return None


def _stat(name: str) -> tuple[int, int, int] | None:
    """Pid, process group and start of a process that is alive: a zombie is not, unless other threads of it run."""
    with suppress(OSError):
        pid, _, rest = Path(f"/proc/{name}/stat").read_text().partition(" ")
        fields = rest.rpartition(")")[2].split()
        return None if fields[0] in "ZX" and int(fields[17]) <= 1 else (int(pid), int(fields[2]), int(fields[19]))
    return None


def _names_in(directory: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(directory)
    return []
