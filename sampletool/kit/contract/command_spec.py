"""What one command promises before it runs. The manifest, the docs and the tests read it."""

from typing import Literal, NamedTuple

from ..program import PROGRAM
from ..safety.errors import (
    DeadlineExceeded,
    Deadlock,
    Interrupted,
    InvalidToml,
    LocksUnsupported,
    LockTimeout,
    NotFlushed,
    UnsafeDirectory,
    UnsafePath,
)
from .errors import INTERRUPTED, ErrorKind, ExitStatus, InternalError, InvalidValues, UsageMistakes
from .file_errors import FileNotFound, IoFailure, NoSpace, PermissionDenied, ReadOnly
from .library_errors import kind_of

Changes = Literal["nothing", "settings", "files", "outputs", "sessions", "locks", "store", "scratch"]
Reads = Literal["settings", "workspace", "files", "stdin", "sessions", "locks", "store", "machine"]

ErrorTypes = tuple[type[Exception], ...]
"""Subclasses of ToolError, and exceptions of the library that `library_errors.TABLE` maps."""

ERRORS_OF_EVERY_COMMAND: ErrorTypes = (
    UsageMistakes,
    InvalidValues,
    InvalidToml,
    FileNotFound,
    PermissionDenied,
    UnsafePath,
    UnsafeDirectory,
    ReadOnly,
    NoSpace,
    NotFlushed,
    IoFailure,
    DeadlineExceeded,
    Interrupted,
    InternalError,
)
"""A mistake of the caller, a failure of a file or a disk, --timeout, a signal, a bug in the tool."""

ERRORS_OF_LOCKS: ErrorTypes = (LockTimeout, Deadlock, LocksUnsupported)


class CommandSpec(NamedTuple):
    effect: Changes
    """What a call changes."""
    errors: ErrorTypes = ()
    """The errors this command adds to those that any call can end with, and to those of its locks."""
    locks: tuple[str, ...] = ()
    """The locks a call may wait for, in the order in which it takes them."""
    at_once: tuple[str, ...] = ()
    """Those of them that are not waited for, unless --lock-timeout says so: a holder may run for minutes."""
    reads: tuple[Reads, ...] = ()
    """What else the answer depends on."""
    destroys: str = ""
    """What a call may end or replace that cannot be got back; a sentence."""
    idempotent: bool = True
    """Whether the same call again changes nothing more."""
    takes_stdout: bool = False
    """Whether what is written to stdout is not its answer, which goes to stderr then."""
    prints_value: bool = False
    """Whether a command that changes something also prints a value that its caller asked for.

    Then --quiet does not hide the result.
    """
    before: tuple[str, ...] = ()
    """Calls that make what the examples need, in an empty directory."""
    examples: tuple[str, ...] = ()
    """Without the name of the program, to be called in this order; `echo text | state set key -` has an input."""
    deprecated: str = ""
    """A sentence that says what to use instead, or "" if the command is not deprecated."""
    former_names: tuple[str, ...] = ()
    """Names that the command had before. They still work, with a warning.

    Each is the last word of the command: `("put",)` if `config set` was `config put`.
    """

    def own_errors(self) -> list[ErrorKind]:
        """Return the errors that this command adds to those of every command."""
        types = self.errors + ERRORS_OF_LOCKS if self.locks else self.errors
        return [kind_of(error_type) for error_type in types]

    def all_errors(self) -> list[ErrorKind]:
        """Return every error that the command can end with."""
        common = [kind_of(error_type) for error_type in ERRORS_OF_EVERY_COMMAND]
        return common + self.own_errors()

    def exit_statuses(self) -> list[int]:
        """Return every exit code that the command can end with, in ascending order."""
        codes = {ExitStatus.OK, *INTERRUPTED}
        for kind in self.all_errors():
            codes.add(kind.exit_status)
        return sorted(codes)


def written_out(example: str) -> str:
    """As it is typed into a shell."""
    source, bar, call = example.rpartition(" | ")
    return f"{source}{bar}{PROGRAM} {call}"
