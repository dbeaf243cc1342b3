"""What one command promises before it runs. The manifest, the docs and the tests read it."""

from dataclasses import dataclass
from typing import Literal

from .exit_status import ALWAYS_POSSIBLE, ExitStatus

Changes = Literal["nothing", "settings", "files", "outputs", "sessions", "locks", "store", "scratch"]


@dataclass(frozen=True)
class CommandSpec:
    effect: Changes
    """What a call changes."""
    ends_with: tuple[ExitStatus, ...] = ()
    """The exit statuses this command adds to those that any call can end with."""
    locks: tuple[str, ...] = ()
    """The locks a call may wait for, in the order in which it takes them."""
    examples: tuple[str, ...] = ()

    @property
    def exit_statuses(self) -> tuple[ExitStatus, ...]:
        return tuple(sorted({*ALWAYS_POSSIBLE, *self.ends_with}))
