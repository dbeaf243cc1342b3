"""Why an operation of this library failed: one class for each reason, with the facts as attributes.

`str(error)` says what failed and why, in one sentence. It gives no advice and names no option,
because the library does not know the program that uses it. The program decides what each failure
means to its users.

A failure of the operating system is not wrapped: FileNotFoundError, PermissionError and every other
OSError reach the caller as Python raised them.
"""

import signal

from .holder import Owners


class SafetyError(Exception):
    """Base class of everything that this library raises, except for OSError."""


class LockTimeout(SafetyError):
    """Another process kept the lock for longer than the caller was willing to wait."""

    def __init__(
        self,
        name: str,
        owners: Owners,
        waited_seconds: float = 0.0,
        timeout_seconds: float = 0.0,
    ) -> None:
        holders = "; ".join(str(holder) for holder in owners.holders)
        super().__init__(f'the lock "{name}" is held by {holders or "another process"}')
        self.name = name
        self.owners = owners
        self.waited_seconds = waited_seconds
        self.timeout_seconds = timeout_seconds


class Deadlock(SafetyError):
    """A process that started this one holds the lock, and waits for this process to exit."""

    def __init__(self, name: str) -> None:
        super().__init__(f"an ancestor of this process holds the lock {name!r}")
        self.name = name


class Interrupted(SafetyError):
    """A signal asked this process to stop."""

    def __init__(self, signal_number: int, uncertain_change: str | None = None) -> None:
        super().__init__(f"stopped by {signal.Signals(signal_number).name}")
        self.signal_number = signal_number
        self.uncertain_change = uncertain_change
        """A change elsewhere that may or may not have been made, such as "the order at https://…".

        None if no such change was under way when the signal arrived.
        """


class DeadlineExceeded(SafetyError):
    """The time that was set with `Signals.limit` is over."""

    def __init__(
        self,
        seconds: float,
        waiting_for: LockTimeout | None = None,
        uncertain_change: str | None = None,
    ) -> None:
        super().__init__(f"not finished within {seconds:g} s")
        self.seconds = seconds
        self.waiting_for = waiting_for
        """The lock that the process was waiting for when the time was over, and its holders."""
        self.uncertain_change = uncertain_change
        """A change that may or may not have been made. See `Interrupted`."""


class PathFailure(SafetyError):
    """Base class of failures that concern one path."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class UnsafePath(PathFailure):
    """A path that leads to a link, a device, or something else that must not be used as a file."""


class UnsafeDirectory(PathFailure):
    """A directory that must be private, but that other users own or can write to."""


class InvalidToml(PathFailure):
    """A file that must be TOML, but cannot be read as TOML."""


class NotFlushed(PathFailure):
    """A file that was replaced, although its directory could not be flushed to the disk.

    The file has its new content. A power failure could bring back the old one.
    """


class LocksUnsupported(PathFailure):
    """A lock file on a file system that has no locks."""
