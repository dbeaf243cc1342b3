"""What one command promises before it runs. The manifest, the docs and the tests read it."""

from typing import Literal, NamedTuple

from ..program import PROGRAM
from .errors import INTERRUPTED, ExitStatus, NestedCall, ToolError
from .file_errors import ANY_CALL, LocksUnsupported

Changes = Literal["nothing", "settings", "files", "outputs", "sessions", "locks", "store", "scratch"]
Reads = Literal["settings", "workspace", "files", "stdin", "sessions", "locks", "store", "machine"]


class CommandSpec(NamedTuple):
    effect: Changes
    """What a call changes."""
    errors: tuple[type[ToolError], ...] = ()
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
    before: tuple[str, ...] = ()
    """Calls that make what the examples need, in an empty directory."""
    examples: tuple[str, ...] = ()
    """Without the name of the program, to be called in this order; `echo text | state set key -` has an input."""

    def own_errors(self) -> tuple[type[ToolError], ...]:
        if not self.locks:
            return self.errors
        from .lock_held import LockHeld  # not at the top: a call whose lock is free does not need it

        return (*self.errors, LockHeld, NestedCall, LocksUnsupported)

    def all_errors(self) -> tuple[type[ToolError], ...]:
        return (*ANY_CALL, *self.own_errors())

    def exit_statuses(self) -> list[int]:
        return sorted({ExitStatus.OK, *INTERRUPTED, *(error.exit_status for error in self.all_errors())})


def written_out(example: str) -> str:
    """As it is typed into a shell."""
    source, bar, call = example.rpartition(" | ")
    return f"{source}{bar}{PROGRAM} {call}"
