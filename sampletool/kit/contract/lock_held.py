"""The texts of LOCK_HELD, and the time after which a retry is likely to succeed.

A *holder* is a process that holds the lock. If a holder exits while a child that inherited the lock
still runs, the lock stays held: the holder is *orphaned*, and its children are known.
"""

import math
import random
from collections.abc import Sequence

from ..program import PROGRAM
from ..safety.errors import LockTimeout
from ..safety.holder import Holder
from .duration import say_duration

_MIN_RETRY_MS = 250
_MAX_RETRY_MS = 30_000

# Between three tries, there are two waits. With these three figures, they outlast a hold of 60 s
# that is found at any age: the first wait ends at an age of at least 12 s, so the second one is
# at least 60 s long. A wait of four times the age, and of at least 5 s, was too short if the hold
# was found within its first 2.4 s.
_MIN_RETRY_MS_IF_USUAL_IS_UNKNOWN = 12_000
_MAX_RETRY_MS_IF_USUAL_IS_UNKNOWN = 60_000
_RETRY_FACTOR_IF_USUAL_IS_UNKNOWN = 5

_MAX_JITTER = 1.25
"""The largest factor by which a wait is extended, so that the callers do not retry together."""

_MIN_PROPOSED_TIMEOUT_SECONDS = 30
_MIN_PROPOSED_TIMEOUT_SECONDS_IF_USUAL_IS_UNKNOWN = 120

_MAX_NAMED_PROCESSES = 10


def message_for(error: LockTimeout) -> str:
    """Return the message, which names the lock and its holders as far as they are known."""
    lock = f'The lock "{error.name}"'
    holders = error.owners.holders
    if not holders:
        # A process that has just taken the lock has not written its pid into the lock file yet.
        return f"{lock} has just been taken by another process."
    if error.owners.shared:
        pids = [holder.pid for holder in holders]
        return f"{lock} is shared by {_name_processes(pids)}."

    holder = holders[0]
    if holder.children:
        children = _name_processes(holder.children)
        # For example: The lock "build" is still held by processes 6 and 7. They inherited the lock
        # from process 5, which has exited.
        pronoun = "It" if len(holder.children) == 1 else "They"
        inherited = f"inherited the lock from process {holder.pid}, which has exited"
        return f"{lock} is still held by {children}. {pronoun} {inherited}."
    return f"{lock} is held by {_describe_holder(holder)}."


def hint_for(error: LockTimeout) -> str:
    """Return the hint: wait for the lock, or terminate the children of an orphaned holder."""
    # A holder has children only if it is orphaned: it has exited, and they still hold its lock. The
    # first holder is the one that has held the lock for the longest time.
    holders = error.owners.holders
    if holders and holders[0].children:
        return _release_hint(error.name, holders[0].children)

    age_ms = holders[0].age_ms if holders else None
    proposed_seconds = propose_timeout_seconds(age_ms, error.owners.usual_ms)
    # A caller that has already waited needs more time than it had.
    proposed_seconds = max(proposed_seconds, math.ceil(2 * error.timeout_seconds))
    timeout = say_duration(proposed_seconds)
    return f"To wait for the lock, pass --lock-timeout {timeout}. Or try again later."


def describe_process(holder: Holder) -> str:
    """Return the pid of a holder and when it started, such as `process 7, since 2026-01-01T…`.

    Unlike an age, this is the same each time, so that a caller can compare two responses.
    """
    description = f"process {holder.pid}"
    if holder.started_at is not None:
        description += f", since {holder.started_at}"
    if not holder.verified:
        description += " (not verified)"
    return description


def propose_timeout_seconds(age_ms: int | None, usual_ms: int | None) -> int:
    """Return for how many seconds a caller should wait for the lock.

    If the usual duration of a hold is known, this is twice that time. Otherwise, and if a hold
    already takes longer than usual, it is four times the age of the hold.
    """
    if age_ms is None:
        age_ms = 0
    if usual_ms is not None and age_ms <= usual_ms:
        return max(_MIN_PROPOSED_TIMEOUT_SECONDS, math.ceil(2 * usual_ms / 1000))
    return max(_MIN_PROPOSED_TIMEOUT_SECONDS_IF_USUAL_IS_UNKNOWN, math.ceil(4 * age_ms / 1000))


def estimate_retry_ms(age_ms: int | None, usual_ms: int | None) -> int:
    """Return after how many milliseconds a retry is likely to succeed.

    `age_ms` is how long the lock has been held, `usual_ms` how long the last hold took.

    Callers often try three times and then give up, so the estimate must not be too short. If the
    usual duration is known, the estimate is the rest of it plus a fifth. A hold that already takes
    longer than usual is estimated at half its age, and a hold of unknown duration at five times its
    age.
    """
    if age_ms is None:
        age_ms = 0
    jitter = random.uniform(1, _MAX_JITTER)
    if usual_ms is None:
        estimate = max(
            _MIN_RETRY_MS_IF_USUAL_IS_UNKNOWN,
            _RETRY_FACTOR_IF_USUAL_IS_UNKNOWN * age_ms,
        )
        # The limit comes after the jitter: even the longest wait has to end a minute after the
        # lock is released.
        return round(min(estimate * jitter, _MAX_RETRY_MS_IF_USUAL_IS_UNKNOWN))

    if age_ms < usual_ms:
        remaining_ms = 1.2 * (usual_ms - age_ms)
    else:
        remaining_ms = age_ms / 2
    # The jitter comes last, and must not exceed the limit.
    bounded = min(max(remaining_ms, _MIN_RETRY_MS), _MAX_RETRY_MS / _MAX_JITTER)
    return round(bounded * jitter)


def _describe_holder(holder: Holder) -> str:
    """Return the command, the pid and the age of a holder, for the middle of a sentence.

    For example: `tool build` (process 7), which started 2s ago
    """
    name = f"process {holder.pid}"
    # A program that uses the library alone records an empty command.
    if holder.command:
        # The command of `tool config set` is recorded as `config.set`.
        words = holder.command.replace(".", " ")
        name = f"`{PROGRAM} {words}` (process {holder.pid})"
    if holder.age_ms is not None:
        name += f", which started {_age(holder.age_ms)} ago"
    if not holder.verified:
        name += " (not verified)"
    return name


def _release_hint(lock_name: str, children: Sequence[int]) -> str:
    """Return the hint for a lock that only the children of an exited holder still hold."""
    processes = _name_processes(children)
    command = f"`{PROGRAM} lock release {lock_name}`"
    if len(children) == 1:
        return f"Wait until {processes} exits, or terminate it: {command}."
    return f"Wait until {processes} exit, or terminate them: {command}."


def _name_processes(pids: Sequence[int]) -> str:
    """Return `process 1`, or `processes 1, 2 and 3`. Name at most ten processes."""
    if len(pids) == 1:
        return f"process {pids[0]}"
    names = [str(pid) for pid in pids]
    if len(pids) > _MAX_NAMED_PROCESSES:
        unnamed_count = len(pids) - _MAX_NAMED_PROCESSES
        names = [*names[:_MAX_NAMED_PROCESSES], f"{unnamed_count} more"]
    all_but_last = ", ".join(names[:-1])
    return f"processes {all_but_last} and {names[-1]}"


def _age(milliseconds: int) -> str:
    return say_duration(milliseconds / 1000)
