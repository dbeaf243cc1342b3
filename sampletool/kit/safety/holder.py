"""The processes that hold a lock, as far as they are known. See lock_owners.py."""

from typing import Literal, NamedTuple

State = Literal["running", "orphaned", "unknown"]
"""A holder is orphaned if it has exited and a process that inherited its lock still runs."""


class Holder(NamedTuple):
    """One process that holds a lock."""

    pid: int
    state: State
    verified: bool
    """Whether the kernel confirmed it. Otherwise only the record in the lock file names it."""
    host: str | None = None
    command: str | None = None
    session_id: str | None = None
    started_at: str | None = None
    age_ms: int | None = None
    children: tuple[int, ...] | None = None
    """The running processes that inherited the lock of a holder that has exited."""

    def __str__(self) -> str:
        """Return a phrase such as `build (process 12, started 3.5 s ago, not verified)`."""
        facts = [f"process {self.pid}"]
        if self.age_ms is not None:
            facts.append(f"started {self.age_ms / 1000:g} s ago")
        if not self.verified:
            facts.append("not verified")
        program = self.command if self.command else "a program"
        return f"{program} ({', '.join(facts)})"


class Owners(NamedTuple):
    """All holders of a lock. There are none while the lock changes hands."""

    holders: list[Holder]
    shared: bool = False
    """Whether the holders are readers, which share the lock."""
    usual_ms: int | None = None
    """The duration of the last hold in which work was done. None if that is not known."""
