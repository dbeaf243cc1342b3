"""What a command may ask for: settings, the workspace, locks, a session. Nothing is opened before it is asked for.

Leaving closes everything once, in reverse order, however the call ends.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, TypeVarTuple

from .contract.answer import Size
from .contract.duration import parse_limit
from .contract.errors import InvalidValues, Mistake, NoWorkspace, ToolError
from .contract.file_errors import FileNotFound
from .contract.text import printable
from .places import find_workspace, session_root
from .program import variable
from .safety.signals import Signals
from .settings.known import check
from .settings.precedence import Settings

if TYPE_CHECKING:
    from .safety.lock import Hold, Lock
    from .safety.lock_record import Record
    from .safety.toml_file import TomlEdit

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

PATIENT_SECONDS = 10.0
"""For holders that take milliseconds, where everybody's change can be kept."""
AT_ONCE = 0.0
"""For holders that may run for minutes, where the caller should decide."""


class Context:
    """One call's way to the world."""

    def __init__(self, signals: Signals) -> None:
        self.began = time.monotonic()
        self.signals = signals
        self.options: dict[str, Any] = {}
        """The options that every command takes, as given on the command line."""
        self.dry_run = False
        """Whether --dry-run was given: nothing is changed."""
        self.command = ""
        self.warnings: list[dict[str, str]] = []
        self.meta: dict[str, Any] = {}
        self.request_id = os.urandom(8).hex()
        self.emit: Callable[[dict[str, Any]], None] = lambda event: None
        """One line of progress for --format jsonl; other forms have none."""
        self.size = Size()
        """How much of the answer is wanted."""
        self.take_stdout: Callable[[], int] = lambda: os.dup(1)
        """The descriptor of stdout, for a command whose spec says takes_stdout; its answer goes to stderr."""
        self.opened = ExitStack()
        """What is closed when the call ends, in reverse order: a part enters here what it opens."""

    def begin(self) -> None:
        """Apply the options that concern every command; called when the whole command line has been understood."""
        if "cwd" in self.options:
            try:
                os.chdir(self.options["cwd"])
            except OSError as error:
                error.filename = os.path.abspath(self.options["cwd"])
                raise
        self.size.is_full = "full" in self.options
        if timeout := self.options.get("timeout") or os.environ.get(variable("TIMEOUT")):
            try:
                self.signals.limit(parse_limit(timeout))
            except ValueError as error:
                problem = f"{variable('TIMEOUT')}: {error}"
                raise InvalidValues(Mistake(variable("TIMEOUT"), "INVALID_VALUE", problem, timeout)) from error
        if form := os.environ.get(variable("FORMAT")):
            check("format", form, variable("FORMAT"))
        _ = self.session_id

    @cached_property
    def settings(self) -> Settings:
        """What applies to this call."""
        return Settings(lambda: self.workspace_or_none, self.options)

    @cached_property
    def cwd(self) -> Path:
        try:
            return Path.cwd()
        except FileNotFoundError:
            raise FileNotFound("the current directory") from None

    @cached_property
    def workspace_or_none(self) -> Path | None:
        return find_workspace(self.cwd)

    @property
    def workspace(self) -> Path:
        if self.workspace_or_none is None:
            raise NoWorkspace(directory=str(self.cwd))
        return self.workspace_or_none

    @cached_property
    def session_id(self) -> str:
        source, value = "--session-id", self.options.get("session_id")
        if value is None:
            source, value = variable("SESSION_ID"), os.environ.get(variable("SESSION_ID"))
        if value is None:
            return f"run-{self.request_id}"
        from .session_id import check_session_id

        return check_session_id(value, source)

    @cached_property
    def session_directory(self) -> Path:
        """Opened for this call, and kept from being cleaned until it ends."""
        from .safety.session import open_session

        session = open_session(session_root(), self.session_id, self.make_lock, PATIENT_SECONDS)
        return self.opened.enter_context(session)

    @cached_property
    def me(self) -> "Record":
        """What others read about the owner of a lock. From here on this call says what happens to its locks."""
        from .lock_notices import show_lock_notices
        from .safety.lock_record import describe_me

        show_lock_notices(self.say, verbose=bool(self.options.get("verbose")))
        return describe_me(self.session_id, self.command)

    def make_lock(self, path: Path, name: str) -> "Lock":
        from .safety.lock import Lock

        return Lock(path, name, self.me, self.signals)

    def patience(self, usual_seconds: float) -> float:
        """How long to wait for a lock; `usual_seconds` is what this command waits where no setting says it."""
        asked: float | None = self.settings.value("lock_timeout")
        return usual_seconds if asked is None else asked

    @contextmanager
    def hold(self, path: Path, name: str, mode: Literal["exclusive", "shared"], patience: float) -> "Iterator[Hold]":
        """Hold a lock for as long as the block lasts."""
        lock, seconds = self.make_lock(path, name), self.patience(patience)
        with lock.exclusively(seconds) if mode == "exclusive" else lock.shared(seconds) as hold:
            self.note(hold)
            yield hold

    def note(self, hold: "Hold") -> None:
        """The answer says how long a lock was waited for, and whether its last owner crashed."""
        self.meta["waited_ms"] = self.meta.get("waited_ms", 0) + hold.waited_ms
        if hold.crashed_writer is not None:
            fields = ("pid", "command", "started_at")
            self.meta["recovered_from"] = {name: getattr(hold.crashed_writer, name) for name in fields}

    @contextmanager
    def editing(self, path: Path, *, dry_run: bool = False) -> "Iterator[TomlEdit]":
        """A settings file, locked until the block ends; in a dry run it is not locked, and writing it does nothing."""
        from .places import toml_lock
        from .safety.toml_file import TomlEdit, editing_toml, read_toml, resolve

        if dry_run:
            yield TomlEdit(read_toml(resolve(path)))
            return
        try:
            seconds = self.patience(PATIENT_SECONDS)
        except ToolError as error:  # a wrong lock_timeout in a file must not keep a caller from correcting it
            if self.settings.find(("lock_timeout",)).name not in ("project", "user"):
                raise
            self.warn(error.code, error.message)
            seconds = PATIENT_SECONDS
        with editing_toml(path, seconds, self.make_lock, toml_lock) as file:
            assert file.hold is not None
            self.note(file.hold)
            yield file
            if file.before.links > 1 and file.text != file.before.text:
                self.warn("HARD_LINK", f"{path} had {file.before.links} names; only this one has the change.")

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

    def jobs(self) -> int:
        """How many things may run at once."""
        return self.settings.value("jobs") or os.cpu_count() or 1

    def warn(self, code: str, message: str) -> None:
        self.warnings.append({"code": code, "message": message})

    def say(self, line: str) -> None:
        """Progress and notices, for people: on stderr, and never a reason to fail."""
        if not self.options.get("quiet"):
            write_stderr(f"{printable(line)}\n", self.signals)

    def tell(self, line: str) -> None:
        """A notice on stderr: with --verbose, and at a terminal."""
        if self.options.get("verbose") or os.isatty(2):
            self.say(line)


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def write_stderr(text: str, signals: Signals) -> None:
    with suppress(OSError):
        signals.write(2, text.encode("utf-8", "backslashreplace"))
