"""Where a worker starts commands, and how a later worker ends what was left running there.

A worker that is killed with SIGKILL leaves its commands running. They have inherited the *lock of
the workers*: a lock file in the state directory of the user, which all workers share. So the next
worker can ask the kernel which processes have this lock although their worker has exited (see
kit/safety/orphans.py).

A user can have several state directories, because HOME and TOOL_STATE_DIR can differ. So each claim
tells the store its *place*: the machine and the lock. The worker that claims the task next gets
this place from the store.

The store may be shared with other users, so a place is not trusted. It can only name a lock file of
workers that belongs to this user. Orphans of such a lock are always ended.
"""

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from ..kit.safety.orphans import end_orphans
from ..kit.safety.processes import pid_namespace
from ..kit.safety.signals import Signals

LOCK_NAME = "workers.lock"


@dataclass(frozen=True)
class WorkerPlace:
    """The machine and the lock file of a worker."""

    host: str
    pid_namespace: str | None
    """The name of the pid namespace. None if the system has no such namespaces.

    A container has a namespace of its own, in which the pids of another container mean nothing.
    """

    lock_path: str

    @classmethod
    def of_this_machine(cls, lock_path: Path) -> "WorkerPlace":
        """Return the place of a worker on this machine with this lock."""
        return cls(
            host=os.uname().nodename,
            pid_namespace=pid_namespace(),
            lock_path=str(lock_path),
        )

    @classmethod
    def from_text(cls, text: str) -> "WorkerPlace | None":
        """Return the place that `to_text` has encoded. Return None if the text is something else.

        The text comes from the store, to which other users may write.
        """
        try:
            host, namespace, lock_path = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            return None
        if not isinstance(lock_path, str) or not os.path.isabs(lock_path):
            return None
        return cls(host=host, pid_namespace=namespace, lock_path=lock_path)

    def to_text(self) -> str:
        """Return the place as a text that the store can keep."""
        return json.dumps([self.host, self.pid_namespace, self.lock_path])

    def is_local(self) -> bool:
        """Return whether processes of this place can be seen from here."""
        return self.host == os.uname().nodename and self.pid_namespace == pid_namespace()

    def end_orphans(self, signals: Signals) -> list[int]:
        """End the commands of killed workers of this place, and return the pids that were ended."""
        if not self.is_local() or not _is_own_lock_of_workers(Path(self.lock_path)):
            return []
        return end_orphans(Path(self.lock_path), signals)


def _is_own_lock_of_workers(path: Path) -> bool:
    """Return whether this is a lock file of workers, and belongs to this user."""
    if path.name != LOCK_NAME:
        return False
    try:
        status = path.lstat()
    except (OSError, ValueError):
        # ValueError: the path contains NUL.
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
