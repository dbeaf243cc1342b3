"""Name the steps of a run in which every call that uses files is a step.

A call belongs to the step before it only if no other worker could change its result in between, or
if the merged step has the same possible results. An example is the first read of an opened file.
"""

import fcntl
import os
from collections.abc import Sequence

from ..kit.stepping.effects import WRITE, Effects
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


def name_of_step(event: Event) -> str:
    """Return a name for the step that this event begins.

    Return "" if the event cannot affect another worker, and so begins no step.
    """
    if event.name == "stepping.verb":
        return str(event.facts["statement"])
    if event.name == "fcntl.flock":
        return f"{_locking_verb(event.facts['operation'])} {_file_of(event)}"
    if event.name == "open":
        return _name_of_opening(event)
    if event.name == "os.kill":
        return "look for a process"
    verb = _VERBS.get(event.name)
    if verb is None:
        return ""
    return f"{verb} {_file_of(event)}"


def _locking_verb(operation: int) -> str:
    """Return a verb for an operation of flock().

    A lock file is often called `lock`, so "file" keeps the verb and the name apart.
    """
    if operation & fcntl.LOCK_UN:
        return "unlock file"
    if operation & fcntl.LOCK_NB:
        return "try to lock file"
    return "lock file"


def _name_of_opening(event: Event) -> str:
    """Return a name for the opening of a file or directory."""
    flags = event.facts["flags"]
    if os.path.isdir(event.path):
        # The entries of the directory are not read. Programs open a directory to flush it.
        verb = "open directory"
    elif flags & os.O_EXCL:
        verb = "create"
    elif flags & os.O_TRUNC:
        verb = "empty"
    elif flags & (os.O_WRONLY | os.O_RDWR):
        verb = "open"
    else:
        verb = "read"
    return f"{verb} {_file_of(event)}"


def has_failed_to_create(event: Event, effects: Effects) -> bool:
    """Return whether a step, which began with this event, created nothing because a file exists.

    `effects` are the effects of the step. A creation that succeeds changes a name.
    """
    is_creation = event.name in ("os.link", "os.mkdir", "os.symlink")
    if event.name == "open":
        is_creation = bool(event.facts["flags"] & os.O_EXCL)
    if not is_creation:
        return False
    return not any(
        resource.startswith("name ") and kind == WRITE for resource, kind in effects.items()
    )


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


def belongs_to_step(event: Event, step_events: Sequence[Event]) -> bool:
    """Return whether this event belongs to the current step, which has these events so far.

    The opening of a file is one step with the calls of fstat() and lseek() that Python's open()
    makes, and with the first read. A step that reads also includes the last read, which finds the
    end of the file. Any other read is another step, because another worker may write in between.
    """
    if not step_events:
        return False
    first = step_events[0]
    if first.name not in ("open", "os.read") or _file_of(first) != _file_of(event):
        return False
    if event.name in ("os.fstat", "os.lseek"):
        return True
    if event.name != "os.read":
        return False
    has_read = any(earlier.name == "os.read" for earlier in step_events)
    is_first_read = not has_read
    return is_first_read or bool(event.facts["is_at_end"])
