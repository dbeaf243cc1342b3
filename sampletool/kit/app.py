"""The front door: argv in, one answer and an exit status out. The only place that makes an answer."""

import errno
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from typing import Any

from . import completion
from .call_log import append, call_of
from .command_folder import CommandFolder
from .context import Context, in_ci, write_stderr
from .contract.answer import FORMATS, PIPE, SCHEMA_VERSION, Answer, Format, Result, Screen, json_line, render
from .contract.errors import ExitStatus, InternalError, ToolError
from .contract.expected import EXPECTED, to_tool_error
from .contract.file_errors import from_os_error
from .contract.library_errors import interrupted_when_done
from .contract.text import redact
from .global_options import HelpAsked, whole_tool
from .parts import command_packages
from .places import state_directory
from .program import PACKAGE, PROGRAM, __version__, variable
from .safety.clock import utc
from .safety.errors import Interrupted, SafetyError
from .safety.signals import Signals, die_by
from .stdout import Stdout, write

Outcome = Result | ToolError | HelpAsked
_LAST_RESORT = (
    b'{"ok":false,"error":{"code":"INTERNAL_ERROR","message":"The tool failed, and so did telling how.",'
    b'"suggestion":"The report is on stderr.","retryable":false,"exit_code":1,"context":{}},'
    b'"data":null,"warnings":[],"meta":{"schema_version":"1.0","exit_code":1}}\n'
)


def main(argv: list[str] | None = None) -> int:
    """One call. Returns the exit status, or dies by the signal that ended the call."""
    args = sys.argv[1:] if argv is None else argv
    if completion.is_asked(args):
        return completion.serve(args, root(args), Context(Signals()))
    try:
        try:
            return _answer_call(args, ends_process=argv is None)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            # The pipe for signals and the copy of stdout need three descriptors, a response needs none.
            too_many_open_files = from_os_error(error, "stdout")
            content = refuse(too_many_open_files, command="")
            return write(1, content, too_many_open_files.exit_status, Signals())
    except Exception:  # not even an answer could be made: a fault right here
        import traceback

        write_stderr(redact(traceback.format_exc()), Signals())
        return write(1, _LAST_RESORT, ExitStatus.INTERNAL, Signals())


def _answer_call(args: list[str], *, ends_process: bool) -> int:
    signals = Signals()
    signals.install()

    try:
        stdout = Stdout(signals)
    except OSError:
        # There are too few descriptors. The pipe for signals has two of them.
        signals.uninstall()
        raise
    try:
        context = Context(signals)
        form = cache(partial(_format, args, context, stdout))

        def emit(event: dict[str, Any]) -> None:
            if form() == "jsonl":
                stdout.tell(json_line(event))

        context.emit, context.take_stdout = emit, stdout.take
        outcome = _run(args, context)
        status: int
        if isinstance(outcome, HelpAsked):
            said = outcome.text(stdout.width(), stdout.screen().colour)
            status, content, notices = ExitStatus.OK, f"{said}\n".encode(), ""
        else:
            status, content, notices = _rendered(outcome, context, form, stdout.screen())
        status = stdout.write(content, status)
        write_stderr(notices, signals)
    finally:
        stdout.close()
        if not ends_process:  # to the end of the process a signal is recorded, and changes nothing any more
            signals.uninstall()
    if signals.received is not None and status == 128 + signals.received:
        die_by(signals.received)
    return status


def call(args: list[str], signals: Signals) -> bytes:
    """The line of JSON of a call in this process, for a server. It may change the current directory: one at a time."""
    context = Context(signals)
    return _rendered(_run(args, context), context)[1]


def refuse(error: ToolError, command: str) -> bytes:
    """The line of JSON of a call that could not be made."""
    context = Context(Signals())
    context.command = command.replace(" ", ".")
    return _rendered(error, context)[1]


def root(args: list[str]) -> CommandFolder:
    """Its own options are made only where they can be meant: making them takes as long as making a command's."""
    options = {} if args and args[0].isidentifier() and args[0] not in ("help", "version") else whole_tool()
    return CommandFolder(command_packages(), PROGRAM, import_module(PACKAGE).__doc__, options)


def _run(args: list[str], context: Context) -> Outcome:
    """What the command returned; or why everything could not be given back, unless there was a failure before."""
    outcome = _returned(args, context)
    try:
        context.opened.close()
    except Exception as surprise:
        failed = (
            to_tool_error(surprise)
            if isinstance(surprise, (ToolError, SafetyError))
            else _crash_when_closed(surprise, context)
        )
        return outcome if isinstance(outcome, ToolError) else failed
    return outcome


def _returned(args: list[str], context: Context) -> Outcome:
    """What the command returned, or why it could not."""
    try:
        outcome = root(args).main(args=args, prog_name=PROGRAM, standalone_mode=False, obj=context)
        if not hasattr(outcome, "lines"):
            raise TypeError(f"{context.command} returned {outcome!r}, not a result")
        return outcome  # type: ignore[no-any-return]
    except HelpAsked as asked:
        return asked
    except EXPECTED as error:
        return to_tool_error(error)
    except (Exception, SystemExit) as surprise:
        return _crash(surprise, context)


def _crash(surprise: BaseException, context: Context) -> ToolError:
    import traceback

    text = redact("".join(traceback.format_exception(surprise)))
    kind = type(surprise).__name__
    try:
        report = context.session_directory / f"crash-{context.request_id}.txt"
        report.write_text(text, errors="backslashreplace")
        return InternalError(kind, str(report))
    except Exception:
        write_stderr(text, context.signals)
        return InternalError(kind, None)


def _crash_when_closed(surprise: BaseException, context: Context) -> ToolError:
    """Report a crash after everything was given back: the report opens the session, which is given back too."""
    error = _crash(surprise, context)
    with suppress(Exception):
        context.opened.close()
    return error


def _rendered(
    outcome: Outcome, context: Context, form: Callable[[], Format] = lambda: "json", screen: Screen = PIPE
) -> tuple[int, bytes, str]:
    """The exit status, what goes to stdout, and what to stderr."""
    try:
        answer = _answer(outcome, context)
        content, notices = render(answer, form(), screen, context.size)
    except Exception as surprise:
        context.meta.clear()
        answer = _answer(_crash_when_closed(surprise, context), context)
        content, notices = render(answer, form())
    with suppress(*EXPECTED):
        if context.settings.value("call_log"):  # before the answer is written: a call whose answer was read is there
            append(state_directory(), call_of(answer))
    return answer.meta["exit_code"], content, notices


def _answer(outcome: Outcome, context: Context) -> Answer:
    error = outcome if isinstance(outcome, ToolError) else None
    result: Any = error.data if error else outcome
    if context.signals.received is not None:
        error = _stopped_by(context.signals.received, error)
    status = error.exit_status if error else getattr(outcome, "exit_status", ExitStatus.OK)
    meta = {
        "command": context.command,
        "request_id": context.request_id,
        "session_id": _or_none(lambda: context.session_id),
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "timestamp": utc(),
        "duration_ms": round((time.monotonic() - context.began) * 1000),
        "cwd": _or_none(os.getcwd),
        "exit_code": status,
        "dry_run": context.dry_run or None,
        "trace_id": os.environ.get(variable("TRACE_ID")) or None,
        **context.meta,
    }
    return Answer(result, error, context.warnings, {name: value for name, value in meta.items() if value is not None})


def _stopped_by(signal_number: int, error: ToolError | None) -> ToolError:
    """Return the error of a command that has received a signal.

    `error` is what the command failed with, or None if it had done its work.
    """
    if error is None:
        return interrupted_when_done(signal_number)
    # The hint of INTERRUPTED says that nothing is changed halfway. With an unknown outcome, this may be false.
    if error.code == "INTERRUPTED" or error.context.get("outcome") == "unknown":
        return error
    return to_tool_error(Interrupted(signal_number))


def _format(args: list[str], context: Context, stdout: Stdout) -> Format:
    """Flag, environment, settings; else text for a person at a terminal. A broken setting must not hide an answer."""
    asked = context.options.get("format") or _format_in(args)
    with suppress(*EXPECTED):
        asked = asked or context.settings.value("format")
    if asked in (*FORMATS, "raw"):
        return asked
    return "json" if in_ci() or not stdout.is_terminal() else "text"


def _format_in(args: list[str]) -> str | None:
    """Where parsing failed the options may not have been seen: the answer still has the form that was asked for."""
    own = args[: args.index("--")] if "--" in args else args
    asked = re.search(r"(?<![^\0])--(?:(json|raw)|format[=\0](\w+))(?![^\0])", "\0".join(own))
    return asked[1] or asked[2] if asked else None


def _or_none(ask: Callable[[], str]) -> str | None:
    with suppress(*EXPECTED):
        return ask()
    return None
