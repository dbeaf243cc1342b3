"""LOCK_HELD: what the tool reports about the holders of a lock, and when a retry is worthwhile."""

import random

from ..program import PROGRAM
from ..safety.errors import LockTimeout
from ..safety.holder import Holder
from .duration import say_duration

_MIN_RETRY_MS = 250
_MIN_RETRY_MS_IF_USUAL_IS_UNKNOWN = 4_000
_MAX_RETRY_MS = 30_000

_MAX_JITTER = 1.25
"""The largest factor by which a wait is prolonged, so that waiting callers do not all return at once."""

_MIN_PROPOSED_TIMEOUT_SECONDS = 30


def message_for(error: LockTimeout) -> str:
    """Return one sentence that names the lock and its holders."""
    holders = error.owners.holders
    lock = f'The lock "{error.name}"'
    if not holders:
        return f"{lock} is being taken by another process at this moment."
    if error.owners.shared:
        return f"{lock} is shared by {_processes([holder.pid for holder in holders])}."
    holder = holders[0]
    if holder.state == "orphaned":
        children = _processes(list(holder.children or ()))
        inherited = f"inherited the lock from process {holder.pid}, which has exited"
        return f"{lock} is still held by {children}, which {inherited}."
    return f"{lock} is held by {describe(holder)}."


def hint_for(error: LockTimeout) -> str:
    """Return what the caller can do: wait longer, or end the processes that a dead holder left."""
    holders = error.owners.holders
    if holders and holders[0].state == "orphaned":
        children = _processes(list(holders[0].children or ()))
        release = f"{PROGRAM} lock release {error.name}"
        return f"Wait for {children} to exit, or terminate the holder's children: `{release}`."
    # A caller that has already waited needs more time than it had.
    proposed_seconds = max(_MIN_PROPOSED_TIMEOUT_SECONDS, 2 * error.timeout_seconds)
    timeout = say_duration(proposed_seconds)
    return f"Try again later. To wait for the lock, pass --lock-timeout {timeout}."


def describe(holder: Holder) -> str:
    """Return a phrase that names a holder: its command, its pid, its age, and whether it is certain."""
    if holder.command:
        command = holder.command.replace(".", " ")
        phrase = f"`{PROGRAM} {command}` (process {holder.pid})"
    else:
        phrase = f"process {holder.pid}"
    if holder.age_ms is not None:
        phrase += f", which started {say_duration(holder.age_ms / 1000)} ago"
    if not holder.verified:
        phrase += " (not verified)"
    return phrase


def estimate_retry_ms(age_ms: int | None, usual_ms: int | None) -> int:
    """Return after how many milliseconds a retry is likely to succeed.

    `age_ms` is how long the lock has been held, `usual_ms` how long the last hold took.

    Callers often try three times and then give up. The estimate is long enough for them: with a
    usual duration, it is what remains of it and a fifth more. Once that is over, it is half the
    holder's age. Without a usual duration, it is twice the age.
    """
    age = age_ms or 0
    if usual_ms is None:
        estimate = max(_MIN_RETRY_MS_IF_USUAL_IS_UNKNOWN, 2.0 * age)
    elif age < usual_ms:
        estimate = 1.2 * (usual_ms - age)
    else:
        estimate = age / 2
    bounded = min(max(estimate, _MIN_RETRY_MS), _MAX_RETRY_MS / _MAX_JITTER)
    return round(bounded * random.uniform(1, _MAX_JITTER))


def _processes(pids: list[int]) -> str:
    """Return `process 1`, or `processes 1, 2 and 3`."""
    if len(pids) == 1:
        return f"process {pids[0]}"
    first = ", ".join(str(pid) for pid in pids[:-1])
    return f"processes {first} and {pids[-1]}"
