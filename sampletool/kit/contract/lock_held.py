"""LOCK_HELD: which process holds the lock, how sure that is, and when to try again."""

from random import uniform
from typing import Any, Literal, NamedTuple

from ..program import PROGRAM
from .duration import say_duration
from .errors import ExitStatus, ToolError

_LEAST_MS, _LEAST_UNKNOWN_MS, _MOST_MS = 250, 4_000, 30_000
_JITTER = 1.25

State = Literal["running", "orphaned", "unknown"]


class Holder(NamedTuple):
    """One process that keeps a lock. `verified`: the kernel confirmed it, it is not just what a record says."""

    pid: int
    state: State
    verified: bool
    host: str | None = None
    command: str | None = None
    session_id: str | None = None
    started_at: str | None = None
    age_ms: int | None = None
    children: tuple[int, ...] | None = None
    """The living processes that inherited the lock of a holder that is gone."""

    def say(self) -> str:
        facts = [f"pid {self.pid}"]
        if self.age_ms is not None:
            facts.append(f"started {say_duration(self.age_ms / 1000)} ago")
        if self.state == "orphaned":
            facts[0] += ", which has ended"
            facts.append(f"its children {', '.join(map(str, self.children or ()))} still work")
        elif not self.verified:
            facts.append("not verified")
        return ", ".join(facts)


class Owners(NamedTuple):
    """All holders of a lock; none, if it is just changing hands."""

    holders: list[Holder]
    shared: bool = False
    usual_ms: int | None = None
    """How long the last hold took that did work."""


class LockHeld(ToolError):
    """Another process kept the lock for longer than we were willing to wait."""

    code, exit_status, retryable = "LOCK_HELD", ExitStatus.LOCK_HELD, True

    def __init__(self, lock: str, owners: Owners, waited_ms: int = 0, timeout_ms: int = 0) -> None:
        holders = owners.holders
        holder = holders[0] if holders else None
        facts: dict[str, Any] = {"lock": lock, "waited_ms": waited_ms, "timeout_ms": timeout_ms, "holder": holder}
        facts["holders"] = holders if len(holders) > 1 else None
        super().__init__(_sentence(lock, holders, owners.shared), _advice(lock, holder, timeout_ms), **facts)
        self.retry_after_ms = estimate_retry_ms(holder.age_ms if holder else None, owners.usual_ms)


def _sentence(lock: str, holders: list[Holder], shared: bool) -> str:
    if not holders:
        return f"Another call is just taking the lock {lock!r}."
    if shared:
        pids = ", ".join(str(holder.pid) for holder in holders)
        return f"{len(holders)} {'call is' if len(holders) == 1 else 'calls are'} using {lock!r} (pids {pids})."
    command = (holders[0].command or "call").replace(".", " ")
    if holders[0].state == "orphaned":
        return f"A crashed {command} still holds {lock!r} ({holders[0].say()})."
    return f"Another {command} is running ({holders[0].say()})."


def _advice(lock: str, holder: Holder | None, timeout_ms: int) -> str:
    if holder is not None and holder.state == "orphaned":
        return f"Wait for its children to end, or end them with `{PROGRAM} lock release {lock}`."
    return f"Wait for it and retry, or pass --lock-timeout {say_duration(max(30, timeout_ms / 500))}."


def estimate_retry_ms(age_ms: int | None, usual_ms: int | None) -> int:
    """When a retry is likely to succeed, jittered upwards so that a crowd spreads out.

    Long enough for a caller that tries three times and then gives up: with a usual duration what is left of it and a
    fifth more, once that is over half the holder's age, and with none at least twice the age.
    """
    age = age_ms or 0
    if usual_ms is None:
        wanted = max(_LEAST_UNKNOWN_MS, 2.0 * age)
    else:
        wanted = 1.2 * (usual_ms - age) if age < usual_ms else age / 2
    return round(min(max(wanted, _LEAST_MS), _MOST_MS / _JITTER) * uniform(1, _JITTER))
