"""Name the steps of a run in which every call that uses files is a step.

A call belongs to the step before it only if no other worker could change its result in between, or
if the merged step has the same possible results. An example is the first read of an opened file.
"""

import fcntl
import os
from collections.abc import Sequence

from ..kit.stepping.tracer import Event

SCRATCH_PREFIX = "tool-lab-"
"""The beginning of the name of a run's private directory. The workers run in a subdirectory."""

_VERBS = {
    "os.access": "look at",
    "os.chmod": "chmod",
    "os.chown": "chown",
    "os.copy_file_range": "copy into",
    "os.fstat": "look at",
    "os.getxattr": "look at",
    "os.link": "link",
    "os.listdir": "list",
    "os.listxattr": "look at",
    "os.lseek": "look at",
    "os.lstat": "look at",
    "os.mkdir": "make",
    "os.posix_fallocate": "write",
    "os.pread": "read",
    "os.preadv": "read",
    "os.pwrite": "write",
    "os.pwritev": "write",
    "os.read": "read",
    "os.readlink": "look at",
    "os.readv": "read",
    "os.remove": "remove",
    "os.removexattr": "set attributes of",
    "os.rename": "rename to",
    "os.rmdir": "remove",
    "os.scandir": "list",
    "os.sendfile": "copy into",
    "os.setxattr": "set attributes of",
    "os.splice": "copy into",
    "os.stat": "look at",
    "os.symlink": "link",
    "os.truncate": "truncate",
    "os.utime": "set times of",
    "os.write": "write",
    "os.writev": "write",
    "sql": "SQL",
    "sqlite3.connect": "connect to",
}
"""The events that are steps, each with a usual verb. Other events affect no other worker."""


def name_of(event: Event) -> str:
    """Return a name for this event, or "" if it cannot affect another worker."""
    if event.name == "stepping.verb":
        return str(event.facts["statement"])
    if event.name == "fcntl.flock":
        return f"{_locking_verb(event.facts['operation'])} {_file_of(event)}"
    if event.name == "open":
        return f"{_opening_verb(event.facts['flags'])} {_file_of(event)}"
    if event.name == "os.kill":
        return "look for a process"
    verb = _VERBS.get(event.name)
    if verb is None:
        return ""
    return f"{verb} {_file_of(event)}"


def _locking_verb(operation: int) -> str:
    """Return a verb for an operation of flock()."""
    if operation & fcntl.LOCK_UN:
        return "unlock"
    if operation & fcntl.LOCK_NB:
        return "try to lock"
    return "lock"


def _opening_verb(flags: int) -> str:
    """Return a verb for the flags of open()."""
    if flags & os.O_EXCL:
        return "create"
    if flags & os.O_TRUNC:
        return "empty"
    if flags & (os.O_WRONLY | os.O_RDWR):
        return "open"
    return "read"


def _file_of(event: Event) -> str:
    """Return the name of the file that the event changes or reads."""
    path = event.path
    if event.name == "os.sendfile":
        # The file that is written comes first.
        path = event.paths[0]
    name = os.path.basename(path)
    if name.startswith(SCRATCH_PREFIX):
        # The directory has another name in every run.
        return ".."
    return name


def belongs_to_step(event: Event, done: Sequence[Event]) -> bool:
    """Return whether this event belongs to the current step, which consists of the events `done`.

    The opening of a file is one step with the calls of fstat() and lseek() that Python's open()
    makes, and with the first read. A step that reads also includes the last read, which finds the
    end of the file. Any other read is another step, because another worker may write in between.
    """
    if not done:
        return False
    first = done[0]
    if first.name not in ("open", "os.read") or _file_of(first) != _file_of(event):
        return False
    if event.name in ("os.fstat", "os.lseek"):
        return True
    if event.name != "os.read":
        return False
    has_read = any(earlier.name == "os.read" for earlier in done)
    is_first_read = not has_read
    return is_first_read or bool(event.facts["is_at_end"])
