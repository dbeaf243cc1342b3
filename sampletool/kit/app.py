"""The entry point: it takes a command line, and prints one response.

This is the only module that builds a response. Whatever a command returns or raises ends here: a
result, an error that the tool expects, or a bug.
"""

import errno
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

from . import completion
from .call_log import append, call_of
from .command_folder import CommandFolder
from .command_line import CommandLine
from .context import Context
from .contract.answer import (
    SCHEMA_VERSION,
    Answer,
    Presentation,
    Result,
    render,
    result_meta,
)
from .contract.errors import ExitStatus, InternalError, ToolError
from .contract.expected import EXPECTED, to_tool_error
from .contract.file_errors import from_os_error
from .contract.library_errors import interrupted_when_done
from .contract.text import redact
from .global_options import HelpRequested, format_in, whole_tool
from .parts import command_packages
from .places import state_directory
from .program import PACKAGE, PROGRAM, __version__, variable
from .safety.clock import utc
from .safety.errors import Interrupted, SafetyError
from .safety.signals import Signals, die_by
from .stdout import Stdout, write_response, write_stderr

Outcome = Result | ToolError | HelpRequested
"""How a command ended. It may also have received a signal, which its context knows."""

_LAST_RESORT = (
    b'{"ok":false,"error":{"code":"INTERNAL_ERROR",'
    b'"message":"The tool failed, and could not report the failure.",'
    b'"suggestion":"The report is on stderr.","retryable":false,"exit_code":1,"context":{}},'
    b'"data":null,"warnings":[],"meta":{"schema_version":"2.0","exit_code":1}}\n'
)
"""The response if building a response fails."""


def main(argv: list[str] | None = None) -> int:
    """Run one command line, by default that of this process, and return the exit code.

    If a signal stopped the command, do not return, but let the signal end this process.
    """
    args = sys.argv[1:] if argv is None else argv
    if completion.is_asked(args):
        return completion.serve(args, root(args), Context(Signals()))
    try:
        # Only a test passes `argv`. Its process has to go on afterwards.
        return _run_and_respond(args, ends_process=argv is None)
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            return _respond_to_bug(error)
        # Running a command needs three descriptors, but a response needs none.
        too_many_open_files = from_os_error(error, "stdout")
        content = refuse(too_many_open_files, command="")
        return write_response(1, content, too_many_open_files.exit_status, Signals())
    except Exception as bug:
        return _respond_to_bug(bug)


def call(args: list[str], signals: Signals) -> bytes:
    """Run one command line in this process, for a server. Return the response as a line of JSON.

    This may change the current directory, so make only one call at a time.
    """
    context = Context(signals)
    outcome = _run(args, context)
    if isinstance(outcome, HelpRequested):
        outcome = InternalError("HelpRequested", None)
    return _build_response(outcome, context, Presentation()).stdout


def refuse(error: ToolError, command: str) -> bytes:
    """Return the response, a line of JSON, of a command that could not be run."""
    context = Context(Signals())
    context.understand(CommandLine(command=command.replace(" ", ".")))
    return render(_build_answer(error, context), Presentation()).stdout


def root(args: list[str]) -> CommandFolder:
    """Return the command for the whole tool. Its own options are missing if `args` has none."""
    # Building the options takes as long as building a command. So skip it for `tool config get`.
    begins_with_command = bool(args) and args[0].isidentifier()
    if begins_with_command and args[0] not in ("help", "version"):
        options = {}
    else:
        options = whole_tool()
    return CommandFolder(command_packages(), PROGRAM, import_module(PACKAGE).__doc__, options)


def _run_and_respond(args: list[str], *, ends_process: bool) -> int:
    """Run one command line, and print its response. Return the exit code."""
    signals = Signals()
    signals.install()
    try:
        stdout = Stdout(signals)
    except OSError:
        # There are too few descriptors. Give back the two that the pipe for signals takes.
        signals.uninstall()
        raise
    try:
        context = Context(signals, stdout)
        outcome = _run(args, context)
        if isinstance(outcome, HelpRequested):
            screen = stdout.screen(context.options.color)
            content = f"{outcome.text(stdout.width(), screen.color)}\n".encode()
            exit_code = stdout.write(content, ExitStatus.OK)
        else:
            exit_code = _print_response(args, outcome, context, stdout)
    finally:
        stdout.close()
        # If the process ends now, it may as well keep its handlers: a late signal changes nothing.
        if not ends_process:
            signals.uninstall()
    if signals.received is not None and exit_code == 128 + signals.received:
        die_by(signals.received)
    return exit_code


def _respond_to_bug(bug: Exception) -> int:
    """Print the response, and a report on stderr, if not even a response could be built."""
    write_stderr(_crash_report(bug), Signals())
    return write_response(1, _LAST_RESORT, ExitStatus.INTERNAL, Signals())


# Running the command


def _run(args: list[str], context: Context) -> Outcome:
    """Run the command, then close what it opened.

    Report a failure to close only if the command itself succeeded.
    """
    outcome = _run_command(args, context)
    try:
        context.exit_stack.close()
    except (ToolError, SafetyError) as error:
        failure = to_tool_error(error)
    except Exception as bug:
        failure = _report_bug_after_closing(bug, context)
    else:
        return outcome
    return outcome if isinstance(outcome, ToolError) else failure


def _run_command(args: list[str], context: Context) -> Outcome:
    """Return what the command returned, or the error that it ended with."""
    try:
        command = root(args)
        outcome = command.main(args=args, prog_name=PROGRAM, standalone_mode=False, obj=context)
        if not hasattr(outcome, "lines"):
            raise TypeError(f"{context.command} returned {outcome!r}, not a result")
        result: Result = outcome
        return result
    except HelpRequested as request:
        return request
    except EXPECTED as error:
        return to_tool_error(error)
    except (Exception, SystemExit) as bug:
        return _report_bug(bug, context)


def _report_bug(bug: BaseException, context: Context) -> ToolError:
    """Write a crash report into the session's directory, or to stderr if that is impossible."""
    report = _crash_report(bug)
    kind = type(bug).__name__
    try:
        path = context.session_directory / f"crash-{context.request_id}.txt"
        path.write_text(report, errors="backslashreplace")
        return InternalError(kind, str(path))
    except Exception:
        write_stderr(report, context.signals)
        return InternalError(kind, None)


def _crash_report(bug: BaseException) -> str:
    """Return the traceback, without passwords."""
    # Importing this at the top would cost each command 2 ms.
    import traceback

    return redact("".join(traceback.format_exception(bug)))


def _report_bug_after_closing(bug: Exception, context: Context) -> ToolError:
    """Write a crash report, then close the session again: the report has opened it."""
    error = _report_bug(bug, context)
    with suppress(Exception):
        context.exit_stack.close()
    return error


# Building the response


class _Response(NamedTuple):
    """What this process prints, and how it exits."""

    stdout: bytes
    stderr: str
    exit_code: int


def _print_response(
    args: list[str],
    outcome: Result | ToolError,
    context: Context,
    stdout: Stdout,
) -> int:
    """Print the response in the format that the caller wants. Return the exit code."""
    chosen_format = context.chosen_format
    if chosen_format is None:
        # If the command line is wrong, the parser may not have come to the option.
        chosen_format = format_in(args)
    if chosen_format is None:
        chosen_format = getattr(outcome, "default_format", None)
    is_default = chosen_format is None
    how = Presentation(
        format=stdout.default_format() if chosen_format is None else chosen_format,
        screen=stdout.screen(context.options.color),
        fields=context.fields,
        is_quiet=context.options.quiet and _only_changes_something(context),
        # A caller who did not choose JSON may be a person who redirects stdout to a file.
        error_also_on_stderr=is_default and not stdout.is_stderr(),
    )
    response = _build_response(outcome, context, how)
    exit_code = stdout.write(response.stdout, response.exit_code)
    write_stderr(response.stderr, context.signals)
    return exit_code


def _only_changes_something(context: Context) -> bool:
    """Return whether a success of this command says nothing that its caller asked for."""
    spec = context.command_line.spec
    if spec is None or spec.prints_value:
        return False
    # --raw asks for a value, and --dry-run for a forecast.
    if context.options.format == "raw" or context.dry_run:
        return False
    return spec.effect not in ("nothing", "scratch")


def _build_response(
    outcome: Result | ToolError,
    context: Context,
    how: Presentation,
) -> _Response:
    """Return what to print, and add a line to the log of commands."""
    try:
        answer = _build_answer(outcome, context)
        rendered = render(answer, how)
    except Exception as bug:
        # For example, the result has a member that JSON cannot represent.
        answer = _build_answer(_report_bug_after_closing(bug, context), context)
        rendered = render(answer, replace(how, fields=None))
    # Before the response is printed: whoever has read a response finds it in the log.
    _log_command(answer, context)
    return _Response(rendered.stdout, rendered.stderr, exit_code=answer.meta["exit_code"])


def _build_answer(outcome: Result | ToolError, context: Context) -> Answer:
    """Return the response to a command that ended like this."""
    error: ToolError | None
    result: Any
    if isinstance(outcome, ToolError):
        error = outcome
        result = error.data
    else:
        error = None
        result = outcome
    if context.signals.received is not None:
        error = _stopped_by(context.signals.received, error)
    if error is not None:
        exit_code = error.exit_status
    else:
        # A command can succeed with another exit code, like that of a program that it ran.
        exit_code = getattr(result, "exit_status", ExitStatus.OK)
    meta = _meta(context, exit_code) | result_meta(result)
    return Answer(result, error, context.warnings, meta)


def _stopped_by(signal_number: int, error: ToolError | None) -> ToolError:
    """Return the error of a command that has received a signal.

    `error` is what the command failed with, or None if it had done its work.
    """
    if error is None:
        return interrupted_when_done(signal_number)
    # The hint of INTERRUPTED says that nothing is changed halfway. With an unknown outcome, this
    # may be false.
    if error.code == "INTERRUPTED" or error.context.get("outcome") == "unknown":
        return error
    return to_tool_error(Interrupted(signal_number))


def _meta(context: Context, exit_code: int) -> dict[str, Any]:
    """Return the member `meta` of a response. What does not apply is left out."""
    meta: dict[str, Any] = {
        "command": context.command,
        "request_id": context.request_id,
        "schema_version": SCHEMA_VERSION,
        "tool_version": __version__,
        "timestamp": utc(),
        "exit_code": exit_code,
    }
    if context.given_session_id is not None or context.uses_session:
        _add_if_known(meta, "session_id", lambda: context.session_id)
    if context.options.verbose > 0:
        meta["duration_ms"] = _duration_ms(context)
        _add_if_known(meta, "cwd", os.getcwd)
    if context.dry_run:
        meta["dry_run"] = True
    trace_id = os.environ.get(variable("TRACE_ID"))
    if trace_id:
        meta["trace_id"] = trace_id
    if context.fields is not None:
        meta["fields"] = context.options.fields
    if context.waited_ms is not None:
        meta["waited_ms"] = context.waited_ms
    crashed = context.crashed_holder
    if crashed is not None:
        meta["recovered_from"] = {
            "pid": crashed.pid,
            "command": crashed.command,
            "started_at": crashed.started_at,
        }
    return meta


def _log_command(answer: Answer, context: Context) -> None:
    """Add a line to the log of commands, unless the settings forbid it."""
    meta = {**answer.meta, "duration_ms": _duration_ms(context)}
    _add_if_known(meta, "session_id", lambda: context.session_id)
    _add_if_known(meta, "cwd", os.getcwd)
    # A command must not fail because its log cannot be written.
    with suppress(*EXPECTED):
        if context.settings.value("call_log"):
            append(state_directory(), call_of(replace(answer, meta=meta)))


def _duration_ms(context: Context) -> int:
    return round((time.monotonic() - context.started_at) * 1000)


def _add_if_known(meta: dict[str, Any], name: str, find: Callable[[], str]) -> None:
    """Add a member to `meta`, unless finding its value fails."""
    with suppress(*EXPECTED):
        meta[name] = find()
