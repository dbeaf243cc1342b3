"""What the command line says about a run, apart from the arguments and options of its command.

The records in this module are named tuples, and so are the others that every command needs, for
example in contract/response.py. Python takes 0.4 ms longer to define a frozen dataclass. With
fifteen of them, `config get` took 12% longer.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from .contract.command_spec import CommandSpec
from .contract.response import Format

ColorName = Literal["auto", "always", "never"]


class GlobalOptions(NamedTuple):
    """The options that every command takes. An option that was not given is None, False or 0."""

    format: Format | None = None
    """The value of --format, or `json` for --json, or `raw` for --raw."""
    fields: str | None = None
    color: ColorName | None = None
    quiet: bool = False
    verbose: int = 0
    """How often --verbose was given: `-vv` is 2."""
    session_id: str | None = None
    cwd: str | None = None
    lock_timeout: str | None = None
    timeout: str | None = None

    def settings(self) -> dict[str, str]:
        """Return the settings that these options override, by name."""
        given: dict[str, str] = {}
        # There is an option --raw, but no setting "raw".
        if self.format is not None and self.format != "raw":
            given["format"] = self.format
        if self.lock_timeout is not None:
            given["lock_timeout"] = self.lock_timeout
        return given


class CommandLine(NamedTuple):
    """What has been understood of a command line. A wrong one may be understood in part."""

    command: str = ""
    """The name of the command with dots, such as `config.set`. It is empty for the whole tool."""
    spec: CommandSpec | None = None
    """What the command promises. It is None for the whole tool, and for a group of commands."""
    options: GlobalOptions = GlobalOptions()
    dry_run: bool = False
    """Whether --dry-run was given: the command changes nothing but reports what would change."""

    def with_options(self, given: Mapping[str, Any]) -> "CommandLine":
        """Return the same, with these options in place of those that were given before."""
        return self._replace(options=self.options._replace(**given))
