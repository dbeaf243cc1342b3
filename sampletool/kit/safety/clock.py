"""The two clocks of this library: one for people, one for durations."""

import time

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""CLOCK_BOOTTIME exists on Linux only."""


def utc(seconds_since_epoch: float | None = None) -> str:
    """Return a moment in UTC, such as `2026-01-31T09:30:00Z`. By default, it is the current one."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds_since_epoch))


def boot_seconds() -> float:
    """Return the seconds since the machine was started, including those it was suspended.

    All processes see the same value, and changing the time of day does not affect it. So it is
    used for the age of a lock.
    """
    return time.clock_gettime(_BOOT_CLOCK)
