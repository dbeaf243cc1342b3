"""What a command promises before it runs. The manifest, the help and the tests read it."""

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
"""Mistakes of the caller, failures of files and disks, --timeout, signals, bugs in the tool."""

ERRORS_OF_LOCKS: ErrorTypes = (LockTimeout, Deadlock, LocksUnsupported)


class CommandSpec(NamedTuple):
    """The promises of one command. A command file has one, named `spec`."""

    effect: str
    """What the command changes: a word of kit/effects.py, or of the `effects.py` of a part."""
    errors: ErrorTypes = ()
    """The errors of this command, in addition to those of every command and of its locks."""
    locks: tuple[str, ...] = ()
    """The locks that the command may wait for, in the order in which it takes them."""
    at_once: tuple[str, ...] = ()
    """The locks among them that the command does not wait for, unless --lock-timeout is given.

    The holder of such a lock may run for minutes.
    """
    reads: tuple[Reads, ...] = ()
    """What the result depends on, apart from the arguments."""
    destroys: str = ""
    """A sentence about what the command ends or replaces, and users cannot get back."""
    idempotent: bool = True
    """Whether running the command a second time changes nothing more."""
    runs_what_it_is_given: bool = False
    """Whether the command runs a program that its arguments or the workspace name.

    Such a program can do anything, whatever `effect` says about the command itself.
    """
    stdin_arguments: tuple[str, ...] = ()
    """The names of the parameters in which `-` means stdin, such as `value`."""
    takes_stdout: bool = False
    """Whether the command writes something else to stdout. Its response then goes to stderr."""
    prints_value: bool = False
    """Whether a command that changes something also prints a value that its caller requested.

    Then --quiet does not hide the result.
    """
    needs_terminal: bool = False
    """Whether the command refuses to run without a terminal."""
    before: tuple[str, ...] = ()
    """Commands that prepare an empty directory for the examples."""
    examples: tuple[str, ...] = ()
    """Command lines without the name of the program, to be run in this order.

    An example can have an input: `echo text | state set key -`.
    """
    deprecated: str = ""
    """A sentence that says what to use instead, or "" if the command is not deprecated."""
    former_names: tuple[str, ...] = ()
    """Names that the command had before. They still work, with a warning.

    Each is the last word of the command: `("put",)` if `config set` was `config put`.
    """

    def required_scopes(self) -> list[str]:
        """Return what an account on the server of the store must be allowed to do.

        The other things that a command uses need no account: they belong to the user who runs it.
        """
        scopes = []
        if "store" in self.reads:
            scopes.append("store:read")
        if self.effect == "store":
            scopes.append("store:write")
        return scopes

    def own_errors(self) -> list[ErrorKind]:
        """Return the errors that this command adds to those of every command."""
        return [kind_of(error_type) for error_type in self.own_error_types()]

    def own_error_types(self) -> ErrorTypes:
        """Return the classes of these errors."""
        if self.locks:
            return self.errors + ERRORS_OF_LOCKS
        return self.errors

    def all_errors(self) -> list[ErrorKind]:
        """Return every error that the command can end with."""
        return errors_of_every_command() + self.own_errors()

    def exit_statuses(self) -> list[int]:
        """Return every exit code that the command can end with, in ascending order."""
        codes = {ExitStatus.OK, *INTERRUPTED}
        for kind in self.all_errors():
            codes.add(kind.exit_status)
        return sorted(codes)


def errors_of_every_command() -> list[ErrorKind]:
    """Return the errors that every command can end with."""
    return [kind_of(error_type) for error_type in ERRORS_OF_EVERY_COMMAND]


def written_out(example: str) -> str:
    """Return an example as a user types it into a shell."""
    source, bar, command_line = example.rpartition(" | ")
    return f"{source}{bar}{PROGRAM} {command_line}"
