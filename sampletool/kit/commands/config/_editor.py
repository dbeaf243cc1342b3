"""Run the user's text editor at the terminal, and wait until the user closes it."""

import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...context import Context
from ...contract.errors import ExitStatus, ToolError
from ...safety.errors import SafetyError
from ...safety.orphans import end_all
from ...safety.processes import descendants_of, is_running, start_ticks
from ...safety.signals import Signals

_VARIABLES = ("VISUAL", "EDITOR")
"""Variables that name the editor. The first one that is not empty wins."""

_KEYBOARD_SIGNALS = (signal.SIGINT, signal.SIGQUIT)
"""Signals that a terminal sends for Ctrl-C and Ctrl-\\, to each process that runs in it."""

_GRACE_SECONDS = 5.0
"""How long an editor may save its own files after SIGTERM, before SIGKILL ends it."""


class NoTerminal(ToolError):
    """The command opens an editor, but stdin or stderr is not a terminal."""

    code, exit_status = "NO_TERMINAL", ExitStatus.PRECONDITION
    sentence = "Cannot open an editor: {stream} is not a terminal."
    advice = (
        "Run the command in a terminal, without redirecting {stream}. "
        "In a script, use `{PROGRAM} config set KEY VALUE` instead."
    )  # fmt: skip


class NoEditor(ToolError):
    """VISUAL and EDITOR are not set, or their value cannot be parsed."""

    code, exit_status = "NO_EDITOR", ExitStatus.PRECONDITION
    sentence = "Cannot open an editor: {reason}."
    advice = "Set VISUAL to your text editor, for example with `export VISUAL=nano`."


class EditorFailed(ToolError):
    """The editor could not be started, was killed, or exited with a code other than 0."""

    code, exit_status = "EDITOR_FAILED", ExitStatus.PRECONDITION
    sentence = 'The editor "{editor}" {reason}. Nothing was changed.'
    advice = "Check the value of VISUAL or EDITOR, then run the command again."


def find_editor() -> list[str]:
    """Return the command line of the user's editor. Raise NoEditor if there is none."""
    for variable_name in _VARIABLES:
        value = os.environ.get(variable_name, "").strip()
        if not value:
            continue
        try:
            return shlex.split(value)
        except ValueError as error:
            reason = f"{variable_name} cannot be split into words ({str(error).lower()})"
            raise NoEditor(reason=reason) from error
    raise NoEditor(reason="neither VISUAL nor EDITOR is set")


def refuse_without_terminal() -> None:
    """Raise NoTerminal unless a person can use an editor here."""
    # Nothing is checked about stdout. While a command runs, descriptor 1 leads to stderr, so the
    # editor is shown at the terminal even in `x=$(tool config edit)`.
    for descriptor, stream in ((0, "stdin"), (2, "stderr")):
        if not os.isatty(descriptor):
            raise NoTerminal(stream=stream)


def run_editor(editor: list[str], path: Path, context: Context) -> None:
    """Open a file in the editor, and return when the user has closed it.

    Raise EditorFailed if the editor fails. If the process is asked to stop by SIGTERM, SIGHUP or
    the deadline, end the editor and raise Interrupted or DeadlineExceeded.
    """
    with _keyboard_belongs_to_editor() as ignore_keyboard:
        try:
            process = subprocess.Popen([*editor, str(path)])
        except OSError as error:
            reason = f"cannot be started: {(error.strerror or str(error)).lower()}"
            raise EditorFailed(editor=editor[0], reason=reason) from error
        ignore_keyboard()
        try:
            exit_code = context.blocking(process.wait)
        except (SafetyError, OSError):
            # OSError: there is no room for another thread to wait in.
            _end(process, context.signals)
            raise
    if exit_code < 0:
        raise EditorFailed(editor=editor[0], reason=f"was killed by signal {-exit_code}")
    if exit_code > 0:
        raise EditorFailed(editor=editor[0], reason=f"exited with code {exit_code}")


@contextmanager
def _keyboard_belongs_to_editor() -> Iterator[Callable[[], None]]:
    """Do not react to Ctrl-C and Ctrl-\\ until the block ends. Start the editor in the block.

    The editor must not inherit that: in many editors, Ctrl-C means something. A process inherits
    ignored signals when it is started, but no handlers. So these signals have a handler until the
    editor is started. Then call the function that is yielded, which ignores them. (A handler
    would be enough to survive, but each wait of this process would return at once afterwards.)
    """
    previous_handlers = {}
    for number in _KEYBOARD_SIGNALS:
        handler = signal.getsignal(number)
        # nohup and `&` in a script start this process with ignored signals. They stay ignored.
        if handler != signal.SIG_IGN:
            previous_handlers[number] = handler
            signal.signal(number, lambda _number, _frame: None)

    def ignore() -> None:
        for number in previous_handlers:
            signal.signal(number, signal.SIG_IGN)

    try:
        yield ignore
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes], signals: Signals) -> None:
    """Ask the editor to exit, so that it can save its recovery file. Then kill it.

    Do the same with the processes that it has started: the command may be a script that starts the
    real editor, which would then save into a directory that has been removed.

    The editor has no process group of its own. Ctrl-Z must stop this process together with the
    editor. Otherwise the shell would wait for this process, and the user would see no prompt.
    """
    starts = {pid: start_ticks(pid) for pid in descendants_of(process.pid)}

    def find_descendants() -> list[int]:
        # Their parents may have exited meanwhile, so do not look for descendants again.
        return [pid for pid in starts if is_running(pid) and start_ticks(pid) == starts[pid]]

    process.terminate()
    end_all(find_descendants, signals)
    try:
        process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
