"""Mutations of the production lock, which is a mechanism of several scenarios."""

from ..scenario import Mutation


def without_lock(expected_problem: str) -> Mutation:
    """Return the mutation that lets a process continue without the lock."""
    return Mutation(
        function="kit/safety/lock.py:Lock._lock_file",
        summary="continue without the lock",
        original_code="self._signals.received is None and try_lock(descriptor, operation)",
        replacement_code="try_lock(descriptor, operation) or True",
        expected_problem=expected_problem,
    )


def with_shared_lock(expected_problem: str) -> Mutation:
    """Return the mutation that lets several processes hold the lock."""
    return Mutation(
        function="kit/safety/lock.py:Lock.exclusively",
        summary="take a lock that several processes may hold",
        original_code="self._acquire(EXCLUSIVE, timeout_seconds)",
        replacement_code="self._acquire(SHARED, timeout_seconds)",
        expected_problem=expected_problem,
    )
