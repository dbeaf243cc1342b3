"""What a command can use: settings, the workspace, locks, a session, output for people.

A command gets its context from Typer, as `ctx.obj`. Nothing is opened before a command asks for it,
so that `config get` does not pay for locks and sessions. Whatever was opened is closed when the
command ends, in reverse order, however it ends.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, TypeVarTuple

from .command_line import CommandLine, GlobalOptions
from .contract.duration import parse_limit
from .contract.errors import InvalidValues, Mistake, NoWorkspace, ToolError
from .contract.expected import EXPECTED
from .contract.file_errors import FileNotFound
from .contract.text import printable, shorten_sentence
from .places import find_workspace, session_root
from .program import env_variable
from .safety.signals import Signals
from .settings.known import check
from .settings.precedence import Settings
from .stdout import STDERR, NoStdout, write_stderr

if TYPE_CHECKING:
    from .contract.fields import FieldTree
    from .contract.response import Format
    from .safety.lock import Hold, Lock
    from .safety.lock_record import Record
    from .safety.toml_file import TomlEdit
    from .stdout import Stdout
    from .work.retries import RetryPolicy

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_MAX_WARNING_BYTES = 8 * 1024
"""The size of all warnings of a response, as JSON."""

PATIENT_WAIT_SECONDS = 10.0
"""The wait for a lock whose holders take milliseconds, so that no change is refused."""
NO_WAIT_SECONDS = 0.0
"""The wait for a lock whose holders may run for minutes: the caller decides whether to wait."""


class Context:
    """The access of one command to the world outside of it."""

    def __init__(self, signals: Signals, stdout: "Stdout | NoStdout | None" = None) -> None:
        self.started_at = time.monotonic()
        self.signals = signals
        self.request_id = os.urandom(8).hex()
        self.command_line = CommandLine()
        self.warnings: list[dict[str, str]] = []
        self._warning_bytes = 0
        self.fields: FieldTree | None = None
        """The members of `data` that --fields selects. It is None for all of them."""
        self.exit_stack = ExitStack()
        """What is closed when the command ends, in reverse order. Parts add what they open."""
        self.uses_session = False
        """Whether the command has opened the directory of its session."""
        self.waited_ms: int | None = None
        """How long the command waited for locks, in all. It is None if it took no lock."""
        self.crashed_holder: Record | None = None
        """The last holder of a lock that this command took, if that holder crashed."""
        self._stdout = stdout if stdout is not None else NoStdout()

    def set_command_line(self, command_line: CommandLine) -> None:
        """Replace what is known of the command line. The parser calls this at each level."""
        self.command_line = command_line

    def select_fields(self, fields: "FieldTree") -> None:
        """Restrict the response to these members of `data`. Only the parser calls this."""
        self.fields = fields

    @property
    def command(self) -> str:
        """The name of the command with dots, such as `config.set`."""
        return self.command_line.command

    @property
    def options(self) -> GlobalOptions:
        """The options that every command takes, as given on the command line."""
        return self.command_line.options

    @property
    def dry_run(self) -> bool:
        """Whether --dry-run was given: the command must not change anything."""
        return self.command_line.dry_run

    def begin(self) -> None:
        """Apply the options that concern every command, before the command itself runs.

        Raise InvalidValues if one of them has a wrong value, and OSError if the directory of --cwd
        cannot be entered.
        """
        if self.options.cwd is not None:
            _change_directory(self.options.cwd)
        self._limit_time()
        variable_name = env_variable("FORMAT")
        environment_format = os.environ.get(variable_name)
        if environment_format:
            check("format", environment_format, variable_name)
        # A wrong id is an error even if the command does not need a session.
        _ = self.session_id

    def _limit_time(self) -> None:
        """Start the time limit of --timeout, or of its environment variable."""
        if self.options.timeout is not None:
            # The parser has checked the option, but nothing has checked the variable.
            self.signals.limit(parse_limit(self.options.timeout))
            return
        variable_name = env_variable("TIMEOUT")
        text = os.environ.get(variable_name)
        if not text:
            return
        try:
            seconds = parse_limit(text)
        except ValueError as error:
            message = f"Invalid value for {variable_name}: {error}"
            raise InvalidValues(Mistake(variable_name, "INVALID_VALUE", message, text)) from error
        self.signals.limit(seconds)

    # Settings and places

    @cached_property
    def settings(self) -> Settings:
        """The settings that apply to this command."""
        return Settings(
            lambda: self.workspace_or_none,
            self.options.settings(),
            warn=self.warn,
        )

    @cached_property
    def cwd(self) -> Path:
        """The current directory. Raise FileNotFound if it has been removed."""
        try:
            return Path.cwd()
        except FileNotFoundError:
            raise FileNotFound("the current directory") from None

    @cached_property
    def workspace_or_none(self) -> Path | None:
        """The directory of the workspace, or None outside of a workspace."""
        return find_workspace(self.cwd)

    @property
    def workspace(self) -> Path:
        """The directory of the workspace. Raise NoWorkspace outside of one."""
        if self.workspace_or_none is None:
            raise NoWorkspace(directory=str(self.cwd))
        return self.workspace_or_none

    def jobs(self) -> int:
        """Return how many jobs may run at the same time: the setting, or one for each processor."""
        setting: int | None = self.settings.value("jobs")
        if setting is not None:
            return setting
        processors = os.cpu_count()
        return 1 if processors is None else processors

    # The session

    @property
    def given_session_id(self) -> str | None:
        """The session id that the caller gave, if any."""
        if self.options.session_id is not None:
            return self.options.session_id
        return os.environ.get(env_variable("SESSION_ID"))

    @cached_property
    def session_id(self) -> str:
        """The id that the caller gave, or a random one. Raise InvalidValues if it is wrong."""
        session_id = self.given_session_id
        if session_id is None:
            return f"run-{self.request_id}"
        # Most callers give no id, so that most commands need not import this.
        from .session_id import check_session_id

        if self.options.session_id is not None:
            source = "--session-id"
        else:
            source = env_variable("SESSION_ID")
        return check_session_id(session_id, source)

    @cached_property
    def session_directory(self) -> Path:
        """The directory of the session, opened on first use.

        A shared lock on it keeps `session clean` away until the command ends.
        """
        from .safety.session import open_session

        self.uses_session = True
        session = open_session(
            session_root(), self.session_id, self.make_lock, PATIENT_WAIT_SECONDS
        )
        return self.exit_stack.enter_context(session)

    # Locks

    @cached_property
    def lock_record(self) -> "Record":
        """What other processes read about the holder of a lock, if this command holds it."""
        from .safety.lock_record import describe_me

        return describe_me(self.session_id, self.command)

    def make_lock(self, path: Path, name: str) -> "Lock":
        """Return a lock. A signal, or the time limit of this command, ends the wait for it.

        From now on, people see on stderr what happens to locks.
        """
        # Commands that take no lock do without these imports, which take several milliseconds.
        from .lock_notices import show_lock_notices
        from .safety.lock import Lock

        show_lock_notices(self.notice, verbose=self.options.verbose > 0)
        return Lock(path, name, self.lock_record, self.signals)

    def patience(self, usual_seconds: float) -> float:
        """Return how many seconds to wait for a lock.

        That is the setting lock_timeout, or `usual_seconds` if the setting is "auto".
        """
        seconds: float | None = self.settings.value("lock_timeout")
        return usual_seconds if seconds is None else seconds

    @contextmanager
    def hold(
        self,
        path: Path,
        name: str,
        mode: Literal["exclusive", "shared"],
        usual_seconds: float,
    ) -> "Iterator[Hold]":
        """Hold a lock until the block ends. `name` is what people call it.

        `usual_seconds` is how long to wait for the lock if no setting says it.
        """
        lock = self.make_lock(path, name)
        timeout_seconds = self.patience(usual_seconds)
        if mode == "exclusive":
            locked = lock.exclusively(timeout_seconds)
        else:
            locked = lock.shared(timeout_seconds)
        with locked as hold:
            self.record_hold(hold)
            yield hold

    def record_hold(self, hold: "Hold") -> None:
        """Remember what the response says about a lock that was taken."""
        waited_before = 0 if self.waited_ms is None else self.waited_ms
        self.waited_ms = waited_before + hold.waited_ms
        if hold.crashed_writer is not None:
            self.crashed_holder = hold.crashed_writer

    @contextmanager
    def editing(self, path: Path, *, dry_run: bool = False) -> "Iterator[TomlEdit]":
        """Lock a settings file until the block ends, and read it.

        In a dry run, the file is not locked, and writing it does nothing: a TomlEdit that has no
        hold ignores it. But a file that could not be written is an error there too.

        If the file has several names (hard links), warn that only one of them has the change.
        """
        from .places import toml_lock
        from .safety.toml_file import (
            TomlEdit,
            editing_toml,
            read_toml,
            refuse_unwritable,
            resolve,
        )

        if dry_run:
            forecast = TomlEdit(read_toml(resolve(path)))
            yield forecast
            if forecast.text != forecast.before.text:
                refuse_unwritable(forecast.before)
            return
        timeout_seconds = self._patience_for_settings()
        with editing_toml(path, timeout_seconds, self.make_lock, toml_lock) as file:
            # A file that is being edited is always locked. Only a dry run has no hold.
            assert file.hold is not None
            self.record_hold(file.hold)
            yield file
            if file.before.links > 1 and file.text != file.before.text:
                link_count = file.before.links
                message = (
                    f"{path} had {link_count} names (hard links). Only this one has the change. "
                    "The others keep the old content."
                )
                self.warn("HARD_LINK", message)

    def _patience_for_settings(self) -> float:
        """Return how many seconds to wait for the lock of a settings file."""
        try:
            return self.patience(PATIENT_WAIT_SECONDS)
        except ToolError as error:
            source = self.settings.find(("lock_timeout",))
            if source.name not in ("project", "user"):
                raise
            # A settings file has a wrong lock_timeout, and `config set` must be able to correct it.
            self.warn(error.code, error.message)
            return PATIENT_WAIT_SECONDS

    # Waiting

    def blocking(
        self,
        function: Callable[[*Ts], T],
        *args: *Ts,
        changes: str | None = None,
    ) -> T:
        """Return `function(*args)`, or raise what it raises.

        Use this for a function that waits for the outside world, for example for a server. Called
        directly, it would ignore Ctrl-C and `--timeout` for as long as it waits. Here, both end the
        command at once. The function then continues in a thread until the process exits. So it must
        not take a lock, start children, or change anything that the rest of the command uses.

        If the function changes something elsewhere, name it in `changes`. When the wait ends early,
        the error then says that it is not known whether the change was made.
        """
        # Importing this at the top would cost each command 0.9 ms.
        from .work.blocking import run_blocking

        return run_blocking(function, args, self.signals, changes)

    def retrying(
        self,
        function: Callable[[*Ts], T],
        *args: *Ts,
        retry_on: tuple[type[Exception], ...],
        retry_policy: "RetryPolicy | None" = None,
        changes: str | None = None,
    ) -> T:
        """Return `function(*args)`, like `blocking`, but try again if it raises one of `retry_on`.

        The pauses become longer and are partly random. Signals and `--timeout` end them, too. Raise
        RetriesExhausted if no attempt succeeds. Use this only for a function that may be called
        several times with the same effect as once.
        """
        # Importing this at the top would cost each command more than 1 ms.
        from .work.retries import RetryPolicy, run_with_retries

        if retry_policy is None:
            retry_policy = RetryPolicy()
        return run_with_retries(
            lambda: self.blocking(function, *args, changes=changes),
            retry_on,
            retry_policy,
            self.signals,
            changes,
            self.progress,
        )

    # Output for people and programs

    @cached_property
    def chosen_format(self) -> "Format | None":
        """The format that an option or a setting selects. It is None if none does."""
        if self.options.format is not None:
            return self.options.format
        if self.options.fields is not None:
            # --fields selects members of the JSON, so it means JSON.
            return "json"
        # A variable, such as TOOL_FORMAT, is one of the sources of the setting.
        # A wrong setting must not hide the response, so the default applies then.
        with suppress(*EXPECTED):
            setting: Format | None = self.settings.value("format")
            return setting
        return None

    def emit(self, event: dict[str, Any]) -> None:
        """Print an event as a line of JSON if the format is jsonl. Other formats have no events."""
        if self.chosen_format == "jsonl":
            self._stdout.write_event(event)

    def take_stdout(self) -> int:
        """Return a descriptor of the real stdout, for a command whose spec says `takes_stdout`.

        The caller closes it. The response of such a command goes to stderr.
        """
        return self._stdout.take_descriptor()

    @property
    def is_watched(self) -> bool:
        """Whether a person watches progress, at a terminal on which a line can be rewritten."""
        is_wanted = not self.options.quiet and not in_ci()
        return is_wanted and os.isatty(STDERR) and os.environ.get("TERM") != "dumb"

    def warn(self, code: str, message: str) -> None:
        """Add a warning to the response. If there are too many, say so once instead."""
        if self._warning_bytes > _MAX_WARNING_BYTES:
            return
        warning = {"code": code, "message": shorten_sentence(message)}
        self._warning_bytes += len(json.dumps(warning))
        if self._warning_bytes > _MAX_WARNING_BYTES:
            left_out = "There are more warnings. They would make the response too long."
            warning = {"code": "MORE_WARNINGS", "message": left_out}
        self.warnings.append(warning)

    def notice(self, line: str) -> None:
        """Print a line on stderr, unless --quiet was given. It is never a reason to fail."""
        if not self.options.quiet:
            write_stderr(f"{printable(line)}\n", self.signals)

    def progress(self, line: str) -> None:
        """Print a line on stderr for a person who watches: at a terminal, or with --verbose."""
        if self.options.verbose > 0 or os.isatty(STDERR):
            self.notice(line)


def _change_directory(directory: str) -> None:
    """Enter the directory of --cwd. An error names its absolute path."""
    if not directory:
        hint = "Pass a directory, or leave out --cwd."
        raise InvalidValues(
            Mistake("--cwd", "INVALID_VALUE", "The value of --cwd is empty", directory, hint)
        )
    try:
        os.chdir(directory)
    except OSError as error:
        error.filename = os.path.abspath(directory)
        raise


def in_ci() -> bool:
    """Return whether a continuous integration service runs the tool."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")
